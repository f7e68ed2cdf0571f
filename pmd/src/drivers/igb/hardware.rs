//! The physical function's device: reset, link, and the filters in front of the receive queues.

use pollux_mempool::time::Ns;

use super::message::{group_hash, words_mac};
use super::registers::{
    CTRL, CTRL_EXT, CTRL_EXT_DRIVER_LOADED, CTRL_EXT_PF_RESET_DONE, CTRL_FORCE_DUPLEX,
    CTRL_FORCE_SPEED, CTRL_MASTER_DISABLE, CTRL_RESET, CTRL_SET_LINK_UP, EEC, EEC_AUTO_READ_DONE,
    EIMC, ICR, IMC, IMS_LINK, IOVTCL, IOVTCL_REUSE, LONGEST, MDIC, MDIC_ERROR, MDIC_READY,
    MDIC_WRITE, MRQC, MTA, RAH, RAH_VALID, RAL, RCTL, RCTL_BROADCAST, RCTL_ENABLE, RCTL_LONG,
    RCTL_MULTICAST_ALL, RCTL_STRIP_CRC, RCTL_UNICAST_ALL, RCTL_VLAN_FILTER, RETA, RLPML, RSSRK,
    RXCSUM, RXCSUM_HASH, RXCSUM_IP, RXCSUM_UDP_TCP, STATUS, STATUS_MASTER_ENABLED, STATUS_PORT,
    SW_FW_SYNC, SWSM, SWSM_BOTH, SWSM_SOFTWARE, TCTL, TCTL_ENABLE, TCTL_PAD,
};
use crate::bus::Bus;
use crate::clock::Clock;
use crate::driver::filter::{Filter, Multicast};
use crate::driver::rss::{Rss, RssKey};
use crate::drivers::intel::RSS_KEY;
use crate::drivers::intel::link::{GONE, speed};
use crate::net::MacAddr;

/// How long the device may take for what takes it microseconds, or for a reset a millisecond.
const PATIENCE: Ns = Ns(100_000_000);

/// What must pass after a reset is begun before anything is asked (section 4.2.1.6.1).
const RESET_TAKES: Ns = Ns(1_000_000);

/// How frames are shared out (section 8.10, MRQC): by hash to queues; by address to pools.
const BY_HASH: u32 = 2;
const BY_POOL: u32 = 3;
/// What is hashed: addresses and ports of TCP and UDP over IPv4 and IPv6, else addresses.
const HASHED: u32 = 0b1111_0011 << 16;

/// The device of a physical function.
#[derive(Clone)]
pub(super) struct Hardware<B, C> {
    pub(super) bus: B,
    pub(super) clock: C,
}

/// A fault of the device, with its remedy.
type HardwareError = &'static str;

impl<B: Bus, C: Clock> Hardware<B, C> {
    /// Stops all that the device does and has it begin anew (section 4.5). The virtual functions
    /// see that their physical one is being reset.
    ///
    /// # Errors
    /// It is gone, or does not come back.
    pub(super) fn reset(&self) -> Result<(), HardwareError> {
        let Self { bus, .. } = self;
        self.mask_interrupts();
        bus.write32(RCTL.at, 0);
        bus.write32(TCTL.at, 0);
        // What it has begun to fetch and to write comes to its end first (section 5.2.3.3). One
        // that does not end is reset all the same.
        let control = bus.read32(CTRL.at);
        bus.write32(CTRL.at, control | CTRL_MASTER_DISABLE);
        self.wait(|| bus.read32(STATUS.at) & STATUS_MASTER_ENABLED == 0);
        bus.write32(CTRL.at, control | CTRL_RESET);
        self.clock.pause(RESET_TAKES);
        if self.status() == GONE {
            return Err("it is gone: all its registers read ones; plug it in again");
        }
        let back = self.wait(|| {
            // One that has not taken the zeros above has not taken the reset either.
            let is_off =
                bus.read32(RCTL.at) & RCTL_ENABLE == 0 && bus.read32(TCTL.at) & TCTL_ENABLE == 0;
            is_off && bus.read32(CTRL.at) & CTRL_RESET == 0
        });
        // The device loads its address and more from its EEPROM, if it has one (section 8.4). The
        // result is not checked here: `mac` checks the address.
        self.wait(|| bus.read32(EEC.at) & EEC_AUTO_READ_DONE != 0);
        self.mask_interrupts();
        back.then_some(())
            .ok_or("it does not come back from a reset; reset it by its slot, or power it off")
    }

    fn mask_interrupts(&self) {
        self.bus.write32(IMC.at, u32::MAX);
        self.bus.write32(EIMC.at, u32::MAX);
    }

    fn wait(&self, done: impl FnMut() -> bool) -> bool {
        self.clock.wait(PATIENCE, done)
    }

    /// The device's permanent MAC address, from its EEPROM or from the hypervisor. The reset loads
    /// it (section 8.10, RAL and RAH).
    ///
    /// # Errors
    /// There is none.
    pub(super) fn mac(&self) -> Result<MacAddr, String> {
        let [low, high] = [RAL.of(0), RAH.of(0)].map(|at| self.bus.read32(at));
        let mac = words_mac([low, high]);
        if high & RAH_VALID == 0 || !mac.is_unicast() {
            let remedy = "set one with the vendor's tool, or in the hypervisor";
            return Err(format!(
                "its EEPROM holds no unicast MAC address, but {mac}: {remedy}"
            ));
        }
        Ok(mac)
    }

    /// Has the PHY agree with its peer on the fastest that both can. That takes seconds; a reset
    /// of the device alone is none of the PHY, whose link may be up still: it stays as it is.
    ///
    /// # Errors
    /// The PHY does not answer.
    pub(super) fn start_link(&self) -> Result<(), HardwareError> {
        /// The PHY's control register, and its bits for "agree" and "again" (IEEE 802.3 section
        /// 22.2.4.1).
        const CONTROL: u32 = 0;
        const AGREE: u32 = 1 << 12;
        const AGAIN: u32 = 1 << 9;
        let control = self.bus.read32(CTRL.at) & !(CTRL_FORCE_SPEED | CTRL_FORCE_DUPLEX);
        self.bus.write32(CTRL.at, control | CTRL_SET_LINK_UP);
        if speed(self.status()).is_some() {
            return Ok(());
        }
        let answers = self.with_phy(|| {
            let phy = 1 << 21;
            let value = MDIC_WRITE | phy | CONTROL << 16 | AGREE | AGAIN;
            self.bus.write32(MDIC.at, value);
            let ready = self.wait(|| self.bus.read32(MDIC.at) & MDIC_READY != 0);
            ready && self.bus.read32(MDIC.at) & MDIC_ERROR == 0
        });
        answers
            .then_some(())
            .ok_or("its PHY does not answer; reset it by its slot, or power it off")
    }

    /// The PHY is shared with the device's firmware (section 4.7): it is asked for first. What a
    /// program that was killed has left locked is taken after a while.
    fn with_phy<T>(&self, work: impl FnOnce() -> T) -> T {
        let Self { bus, .. } = self;
        let port = (bus.read32(STATUS.at) & STATUS_PORT) >> STATUS_PORT.trailing_zeros();
        let (ours, firmware) = (2 << (port & 1), 2 << (port & 1) << 16);
        let locked = |change: &dyn Fn(u32) -> Option<u32>| {
            self.wait(|| bus.read32(SWSM.at) & SWSM_SOFTWARE == 0);
            self.wait(|| {
                bus.write32(SWSM.at, SWSM_SOFTWARE | SWSM_BOTH);
                bus.read32(SWSM.at) & SWSM_BOTH != 0
            });
            let changed = change(bus.read32(SW_FW_SYNC.at));
            if let Some(value) = changed {
                bus.write32(SW_FW_SYNC.at, value);
            }
            bus.write32(SWSM.at, 0);
            changed.is_some()
        };
        self.wait(|| locked(&|users| (users & firmware == 0).then_some(users | ours)));
        let done = work();
        locked(&|users| Some(users & !ours));
        done
    }

    /// The status register, which tells of the link.
    pub(super) fn status(&self) -> u32 {
        self.bus.read32(STATUS.at)
    }

    /// Whether the link has changed since this was asked last, or longer ago: the causes of the
    /// device's interrupts, which are cleared as they are read (section 7.3.4.1).
    pub(super) fn has_link_changed(&self) -> bool {
        let causes = self.bus.read32(ICR.at);
        causes != GONE && causes & IMS_LINK != 0
    }

    /// Shares frames out to `queues` receive queues by a hash of their addresses and ports
    /// (section 7.1.1.7).
    pub(super) fn share_by_hash(&self, queues: u16, rss: &Rss) {
        let Self { bus, .. } = self;
        let key = rss.key.as_ref().map_or(&RSS_KEY[..], RssKey::bytes);
        for (i, word) in key.as_chunks().0.iter().enumerate() {
            bus.write32(RSSRK.of(i), u32::from_le_bytes(*word));
        }
        for i in 0..RETA.count {
            let four = [0, 1, 2, 3].map(|n| rss.queue(4 * i + n, queues) as u8);
            bus.write32(RETA.of(i), u32::from_le_bytes(four));
        }
        bus.write32(MRQC.at, if queues > 1 { BY_HASH | HASHED } else { 0 });
    }

    /// Shares frames out to pools, which `Functions` sets up.
    pub(super) fn share_by_pool(&self) {
        self.bus.write32(MRQC.at, BY_POOL);
    }

    /// What is received by a device whose queues are all the physical function's.
    pub(super) fn set_filter(&self, filter: &Filter) {
        if let Multicast::Listed(groups) = &filter.multicast {
            let mut table = [0_u32; 128];
            for hash in groups.iter().map(|&group| group_hash(group)) {
                if let Some(row) = table.get_mut(usize::from(hash >> 5)) {
                    *row |= 1 << (hash & 31);
                }
            }
            for (i, row) in table.into_iter().enumerate() {
                self.bus.write32(MTA.of(i), row);
            }
        }
    }

    /// Opens the way between queues and wire: `longest` is a frame with a tag and its check
    /// sequence, `vfs` says that there are virtual functions.
    pub(super) fn enable(&self, filter: &Filter, longest: u32, vfs: bool) {
        let Self { bus, .. } = self;
        bus.write32(RXCSUM.at, RXCSUM_IP | RXCSUM_UDP_TCP | RXCSUM_HASH);
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        bus.write32(IOVTCL.at, flag(!vfs, IOVTCL_REUSE));
        // With pools, each of them has a limit of its own.
        bus.write32(RLPML.at, if vfs { LONGEST } else { longest });
        let receive = RCTL_ENABLE | RCTL_BROADCAST | RCTL_STRIP_CRC | RCTL_LONG;
        let all = flag(filter.promiscuous, RCTL_UNICAST_ALL | RCTL_MULTICAST_ALL)
            | flag(filter.multicast == Multicast::All, RCTL_MULTICAST_ALL)
            | flag(vfs, RCTL_VLAN_FILTER);
        bus.write32(TCTL.at, TCTL_ENABLE | TCTL_PAD);
        bus.write32(RCTL.at, receive | all);
    }

    /// Tells the firmware, and the virtual functions, that there is a driver: they may start.
    pub(super) fn admit_functions(&self) {
        let told = CTRL_EXT_DRIVER_LOADED | CTRL_EXT_PF_RESET_DONE;
        let others = self.bus.read32(CTRL_EXT.at);
        self.bus.write32(CTRL_EXT.at, others | told);
    }
}
