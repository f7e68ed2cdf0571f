//! The device as a whole: reset, address, PHY, link, and how it comes to rest.

use std::sync::Arc;

use pollux_mempool::time::Ns;

use super::registers::{
    CTRL, CTRL_ASDE, CTRL_FRCDPLX, CTRL_FRCSPD, CTRL_MASTER_DISABLE, CTRL_RFCE, CTRL_RST, CTRL_SLU,
    CTRL_TFCE, CTRL_VME, EECD, EECD_AUTO_RD, EXTCNF_CTRL, EXTCNF_CTRL_MDIO_OWNER, ICR, ICR_LSC,
    IMC, MDIC, MDIC_DATA, MDIC_ERROR, MDIC_READ, MDIC_READY, MDIC_WRITE, RAH, RAH_ADDRESS, RAH_AV,
    RAL, RCTL, RCTL_EN, STATUS, STATUS_MASTER_ENABLE, TCTL, TCTL_EN, WINDOW,
};
use crate::bus::exclusive::Exclusive;
use crate::bus::{Bus, BusError, Device};
use crate::clock::Clock;
use crate::drivers::intel::link::GONE;
use crate::net::MacAddr;
use crate::quarantine::Quarantine;

/// Longest wait for something that takes microseconds to a few milliseconds.
const PATIENCE: Ns = Ns(100_000_000);

/// After a reset, registers are not touched for so long (section 10.2.2.1).
const AFTER_RESET: Ns = Ns(1_000_000);

/// A frame of 9 KiB takes 74 us at 1 Gb/s.
const SETTLE: Ns = Ns(100_000);

/// The device, its registers, and the time in its world. Clones are the same device.
pub(super) struct Nic<D: Device> {
    pub(super) device: Exclusive<D>,
    pub(super) bus: D::Bus,
    pub(super) clock: D::Clock,
}

impl<D: Device> Clone for Nic<D> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            bus: self.bus.clone(),
            clock: self.clock.clone(),
        }
    }
}

impl<D: Device> Nic<D> {
    pub(super) fn new(device: Arc<D>) -> Result<Self, BusError> {
        let device = Exclusive::new(device)?;
        let bus = device.bar(0, WINDOW)?;
        let clock = device.clock();
        Ok(Self { device, bus, clock })
    }

    fn error(&self, what: &str) -> BusError {
        let (device, what) = (self.device.name().into(), what.into());
        BusError::Device { device, what }
    }

    /// Whether the device has left its slot.
    pub(super) fn is_gone(&self) -> bool {
        self.bus.read32(STATUS.at) == GONE
    }

    /// Waits until `done`; `false` if it takes longer than it can. Registers of a device that is
    /// gone are all ones, so that each wait has an end.
    fn wait(&self, done: impl Fn() -> bool) -> bool {
        self.clock.wait(PATIENCE, done)
    }

    /// Brings it to rest: no interrupts, no frames, and no access to memory any more, whatever it
    /// was doing and for whom (section 4.6.1).
    fn quiesce(&self) {
        self.bus.write32(IMC.at, u32::MAX);
        self.bus.write32(RCTL.at, 0);
        self.bus.write32(TCTL.at, 0);
        self.end_access();
    }

    /// Has its accesses to memory come to their end, until it is reset, or waits for that as long
    /// as is reasonable (section 10.2.2.1: no new requests on the bus from here on). It proves
    /// nothing: the register of a device that is gone reads all ones.
    fn end_access(&self) {
        let control = self.bus.read32(CTRL.at);
        self.bus.write32(CTRL.at, control | CTRL_MASTER_DISABLE);
        self.wait(|| self.bus.read32(STATUS.at) & STATUS_MASTER_ENABLE == 0 || self.is_gone());
    }

    /// Switches receiving off, when all queues have come back, and those that send are finished.
    /// What the device has received is in memory then.
    pub(super) fn end_receiving(&self) {
        self.bus.write32(RCTL.at, 0);
        // What is in the device comes to its end.
        self.clock.pause(SETTLE);
        self.end_access();
    }

    /// Sets all its registers to what they are after power on, the address as in the NVM
    /// (section 4.6.2).
    ///
    /// # Errors
    /// It is gone, or does not come back.
    pub(super) fn reset(&self) -> Result<(), BusError> {
        self.quiesce();
        let control = self.bus.read32(CTRL.at);
        self.bus.write32(CTRL.at, control | CTRL_RST);
        self.clock.pause(AFTER_RESET);
        if self.is_gone() {
            return Err(self.error("it is gone: all its registers read ones; plug it in again"));
        }
        let is_back = || {
            let read_nvm = self.bus.read32(EECD.at) & EECD_AUTO_RD != 0;
            // One that has not taken the zeros that `quiesce` writes has not taken the reset either.
            let is_off =
                self.bus.read32(RCTL.at) & RCTL_EN == 0 && self.bus.read32(TCTL.at) & TCTL_EN == 0;
            read_nvm && is_off && self.bus.read32(CTRL.at) & CTRL_RST == 0
        };
        if !self.wait(is_back) {
            let what = "it does not come back from a reset; reset it by its slot, or power it off";
            return Err(self.error(what));
        }
        // The reset has let interrupts be; causes that are old are forgotten.
        self.bus.write32(IMC.at, u32::MAX);
        self.bus.read32(ICR.at);
        Ok(())
    }

    /// Stops it for good, and takes its memory away from it. That it is at rest is proven by its
    /// configuration space or by the IOMMU: the quarantine is settled by one of them, and otherwise
    /// keeps what the device may still write. (Registers read after a reset as a device that ignores
    /// resets would have them too.)
    ///
    /// # Errors
    /// As for [`reset`](Self::reset).
    pub(super) fn stop(&self, quarantine: &Quarantine) -> Result<(), BusError> {
        let reset = self.reset();
        let cut_off = self.device.cut_off();
        quarantine.settle(cut_off);
        reset
    }

    /// Its address: the NVM's, which the reset has put into the first filter (sections 10.2.5.18
    /// and 10.2.5.19).
    ///
    /// # Errors
    /// There is none.
    pub(super) fn mac(&self) -> Result<MacAddr, BusError> {
        let (low, high) = (self.bus.read32(RAL.of(0)), self.bus.read32(RAH.of(0)));
        let [a, b, c, d] = low.to_le_bytes();
        let [e, f, ..] = (high & RAH_ADDRESS).to_le_bytes();
        let mac = MacAddr([a, b, c, d, e, f]);
        if high & RAH_AV == 0 || !mac.is_unicast() {
            return Err(self.error(&format!(
                "its NVM holds no unicast MAC address, but {mac}: set one with the vendor's tool, \
                 or in the hypervisor (QEMU: mac=)"
            )));
        }
        Ok(mac)
    }

    /// Lets the link come up (section 4.6.3): the MAC follows what the PHY has negotiated. VLAN
    /// tags stay in the frames, and no pause frames are sent: a frame that finds no descriptor is
    /// lost, and counted, here.
    ///
    /// # Errors
    /// The PHY does not answer.
    pub(super) fn set_link_up(&self) -> Result<(), BusError> {
        let clear =
            CTRL_MASTER_DISABLE | CTRL_FRCSPD | CTRL_FRCDPLX | CTRL_RFCE | CTRL_TFCE | CTRL_VME;
        let control = self.bus.read32(CTRL.at) & !clear;
        self.bus.write32(CTRL.at, control | CTRL_SLU | CTRL_ASDE);
        self.wake_phy()
    }

    /// The driver before may have left the PHY without power: a reset of the MAC does not change
    /// that. It then negotiates anew (IEEE 802.3 section 22.2.4.1).
    fn wake_phy(&self) -> Result<(), BusError> {
        const BMCR: u32 = 0;
        const POWER_DOWN: u32 = 1 << 11;
        const NEGOTIATE: u32 = 1 << 12 | 1 << 9;
        // The PHY has two masters, of which this bit makes one the owner (section 4.6.2).
        let own = || {
            let owner = self.bus.read32(EXTCNF_CTRL.at);
            let is_ours = owner & EXTCNF_CTRL_MDIO_OWNER != 0;
            if !is_ours {
                self.bus
                    .write32(EXTCNF_CTRL.at, owner | EXTCNF_CTRL_MDIO_OWNER);
            }
            is_ours
        };
        let owned = self.wait(own);
        let result = self.phy(MDIC_READ, BMCR, 0).and_then(|control| {
            if control & POWER_DOWN == 0 {
                return Some(0);
            }
            self.phy(MDIC_WRITE, BMCR, control & !POWER_DOWN | NEGOTIATE)
        });
        let owner = self.bus.read32(EXTCNF_CTRL.at);
        self.bus
            .write32(EXTCNF_CTRL.at, owner & !EXTCNF_CTRL_MDIO_OWNER);
        match result {
            Some(_) if owned => Ok(()),
            _ => Err(self.error("its PHY does not answer; reset it by its slot, or power it off")),
        }
    }

    /// Reads or writes a register of the PHY, whose number is 1.
    fn phy(&self, operation: u32, register: u32, data: u32) -> Option<u32> {
        let command = operation | 1 << 21 | register << 16 | data;
        self.bus.write32(MDIC.at, command);
        let answered = self.wait(|| self.bus.read32(MDIC.at) & MDIC_READY != 0);
        let answer = self.bus.read32(MDIC.at);
        (answered && answer & MDIC_ERROR == 0).then_some(answer & MDIC_DATA)
    }

    /// The status register, which tells of the link.
    pub(super) fn status(&self) -> u32 {
        self.bus.read32(STATUS.at)
    }

    /// Whether the link has changed since the last time that this was asked, or longer ago.
    pub(super) fn has_link_changed(&self) -> bool {
        let causes = self.bus.read32(ICR.at);
        if causes == GONE || causes & ICR_LSC == 0 {
            return false;
        }
        // Where other causes are armed, reading alone does not clear it.
        self.bus.write32(ICR.at, ICR_LSC);
        true
    }
}
