//! The device: reset, address, configuration.

use std::sync::Arc;

use pollux_pmd::Clock as _;
use pollux_pmd::bus::exclusive::Exclusive;
use pollux_pmd::bus::{Bus as _, BusError, Device};
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::net::MacAddr;

use crate::registers::{
    BAR, COMMAND, COMMAND_RESET, COMMAND_RX, COMMAND_TX, IDR, INTERRUPTS, MAR, RBSTART, RCR, TCR,
    TCR_BURST_2048, TCR_GAP_STANDARD, WINDOW,
};

/// Longest frame without its check sequence, with one VLAN tag.
pub const LONGEST: usize = 1518;

/// Time limit of operations that take microseconds.
const PATIENCE: Ns = Ns(100_000_000);

/// The device, its registers and its clock. Clones are the same device.
pub struct Nic<D: Device> {
    pub device: Exclusive<D>,
    pub bus: D::Bus,
    pub clock: D::Clock,
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
    pub fn new(device: Arc<D>) -> Result<Self, BusError> {
        let device = Exclusive::new(device)?;
        let bus = device.bar(BAR, WINDOW)?;
        let clock = device.clock();
        Ok(Self { device, bus, clock })
    }

    pub fn error(&self, what: &str) -> BusError {
        let (device, what) = (self.device.name().into(), what.into());
        BusError::Device { device, what }
    }

    pub fn wait(&self, done: impl FnMut() -> bool) -> bool {
        self.clock.wait(PATIENCE, done)
    }

    /// Resets everything but the address; the device is idle then (section 5.4).
    pub fn reset(&self) -> Result<(), BusError> {
        self.bus.write16(INTERRUPTS, 0);
        self.bus.write8(COMMAND, 0);
        self.bus.write8(COMMAND, COMMAND_RESET);
        // All ones, of a device that is gone, have the bit as well.
        if !self.wait(|| self.bus.read8(COMMAND) & COMMAND_RESET == 0) {
            return Err(self.error("it does not come back from a reset, or has been unplugged"));
        }
        self.bus.write16(INTERRUPTS, 0);
        Ok(())
    }

    /// Its address.
    pub fn mac(&self) -> Result<MacAddr, BusError> {
        let [a, b, c, d] = self.bus.read32(IDR.of(0)).to_le_bytes();
        let [e, f, ..] = self.bus.read32(IDR.of(1)).to_le_bytes();
        let mac = MacAddr([a, b, c, d, e, f]);
        mac.is_unicast()
            .then_some(mac)
            .ok_or_else(|| self.error(&format!("its EEPROM holds no address, but {mac}")))
    }

    /// Sets receive ring, receive filter and transmit configuration. Enables both directions first:
    /// otherwise the configuration registers ignore writes (section 5.4).
    pub fn configure(&self, ring: u32, receive: u32, groups: u64) {
        self.bus.write32(RBSTART.at, ring);
        self.bus.write8(COMMAND, COMMAND_RX | COMMAND_TX);
        self.bus.write32(TCR.at, TCR_BURST_2048 | TCR_GAP_STANDARD);
        self.bus.write32(RCR.at, receive);
        self.bus.write32(MAR.of(0), groups as u32);
        self.bus.write32(MAR.of(1), (groups >> 32) as u32);
    }

    /// Disables one direction, when its queue is dropped.
    pub fn disable(&self, direction: u8) {
        let others = (COMMAND_RX | COMMAND_TX) & !direction;
        let command = self.bus.read8(COMMAND);
        self.bus.write8(COMMAND, command & others);
    }
}
