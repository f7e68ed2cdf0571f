//! The card as a whole: what it is, where its blocks of registers are, and how it comes to rest.

use std::sync::Arc;

use pollux_mempool::time::Ns;

use super::registers::{card, clop, event, host, port, timing, tlb, tx};
use crate::bus::registers::Register;
use crate::bus::{Bus, BusError, Claim, Claims, Device};
use crate::clock::Clock;
use crate::grant::MemoryGrant;
use crate::quarantine::Quarantine;

/// The cards that have a driver, by the addresses of their [`Device`]s: two that program one device
/// would each have it write to memory that is the other's to give.
static DRIVEN: Claims<usize> = Claims::new();

/// Bytes of BAR 0.
const WINDOW: usize = 128 << 10;

/// "PLUX".
const MAGIC: u32 = 0x5855_4c50;

/// The version of the register map that this driver knows; minor versions only add.
const MAJOR: u32 = 1;

/// Most blocks in a list of them: the window has no room for more.
const MAX_BLOCKS: usize = WINDOW / card::SIZE;

/// Most ports of a card, and so of its numbers of lists.
pub(super) const MAX_PORTS: usize = 4;

/// Lists of a port: its streams, the catch-all, and numbers that nothing has.
pub(super) const LISTS: usize = 32;

/// The list of a port that takes what is no stream's.
pub(super) const CATCH_ALL: usize = 16;

/// Longest wait for the card to do what it was told; a read that is not answered fails after
/// [`READ_TIMEOUT`].
pub(super) const PATIENCE: Ns = Ns(100_000_000);

/// Completion timeout: within what PCIe recommends (10 ms is the least of the range B, PCIe 4.0
/// section 7.5.3.16), and below [`PATIENCE`].
const READ_TIMEOUT: Ns = Ns(20_000_000);

/// What all registers read where there is no device any more.
pub(super) const GONE: u32 = u32::MAX;

/// Where the blocks are, in bytes from the start of the window.
#[derive(Clone, Copy, Default)]
pub(super) struct Blocks {
    pub(super) card: usize,
    pub(super) host: usize,
    pub(super) timing: usize,
    pub(super) event: usize,
    pub(super) tlb: usize,
    pub(super) tx: usize,
    pub(super) clop: usize,
    pub(super) ports: [usize; MAX_PORTS],
}

/// How much of everything there is.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) ports: usize,
    pub(super) event_queues: usize,
    pub(super) tx_rings: usize,
    pub(super) tlb_entries: usize,
}

/// The card, its registers, and the time in its world. Clones are the same card.
pub(super) struct Nic<D: Device> {
    /// No other driver has the card. Dropped before the device.
    claim: Arc<Claim<usize>>,
    pub(super) device: Arc<D>,
    /// For what is mapped for the card.
    pub(super) grant: MemoryGrant,
    pub(super) bus: D::Bus,
    pub(super) clock: D::Clock,
    pub(super) at: Blocks,
    pub(super) has: Counts,
}

impl<D: Device> Clone for Nic<D> {
    fn clone(&self) -> Self {
        Self {
            claim: self.claim.clone(),
            device: self.device.clone(),
            bus: self.bus.clone(),
            clock: self.clock.clone(),
            ..*self
        }
    }
}

impl<D: Device> Nic<D> {
    /// Finds out what the device is.
    ///
    /// # Errors
    /// It is no such card, or one of another version, or it lacks what this driver needs, or another
    /// driver has it.
    pub(super) fn new(device: Arc<D>, grant: MemoryGrant) -> Result<Self, BusError> {
        let claim = DRIVEN
            .take(Arc::as_ptr(&device).addr())
            .ok_or_else(|| BusError::Device {
                device: device.name().into(),
                what: "this program has a port or streams on it already: stop and drop those first"
                    .into(),
            })?;
        let bus = device.bar(0, WINDOW)?;
        let clock = device.clock();
        let (at, has) = (Blocks::default(), Counts::default());
        let mut nic = Self {
            claim: Arc::new(claim),
            device,
            grant,
            bus,
            clock,
            at,
            has,
        };
        nic.identify()?;
        nic.walk()?;
        nic.count()?;
        Ok(nic)
    }

    pub(super) fn error(&self, what: impl Into<String>) -> BusError {
        let (device, what) = (self.device.name().into(), what.into());
        BusError::Device { device, what }
    }

    fn identify(&self) -> Result<(), BusError> {
        let magic = self.bus.read32(card::MAGIC.at);
        if magic != MAGIC {
            return Err(self.error(format!(
                "its magic number is {magic:#x} and not {MAGIC:#x}: it is no such card, or its \
                 gateware is not loaded"
            )));
        }
        let version = self.bus.read32(card::VERSION.at);
        let (major, minor) = (version >> 16, version & card::VERSION_MINOR);
        if major != MAJOR {
            return Err(self.error(format!(
                "its registers are of version {major}.{minor}, and this driver knows {MAJOR}.x: \
                 load the gateware or build the driver of the other's version"
            )));
        }
        Ok(())
    }

    /// Goes through the list of blocks. Each says where the next one is; they come in order, so
    /// that the list ends whatever the device says.
    fn walk(&mut self) -> Result<(), BusError> {
        let mut found = 0_u32;
        let mut at = 0;
        for _ in 0..MAX_BLOCKS {
            let word = self.bus.read32(at);
            let (kind, version) = (word & card::BLOCK_KIND, word >> 16 & 0xff);
            let (place, size) = match kind {
                card::KIND => (&mut self.at.card, card::SIZE),
                host::KIND => (&mut self.at.host, host::SIZE),
                timing::KIND => (&mut self.at.timing, timing::SIZE),
                event::KIND => (&mut self.at.event, event::SIZE),
                tlb::KIND => (&mut self.at.tlb, tlb::SIZE),
                tx::KIND => (&mut self.at.tx, tx::SIZE),
                clop::KIND => (&mut self.at.clop, clop::SIZE),
                port::KIND => match self.at.ports.get_mut((word >> 24) as usize) {
                    Some(place) => (place, port::SIZE),
                    None => return Err(self.error("it has more ports than there can be")),
                },
                // Of a later minor version.
                _ => (&mut 0, 0),
            };
            *place = at;
            found |= 1 << (kind & 31);
            if size > 0 && (version != 1 || at + size > WINDOW) {
                return Err(self.error(format!(
                    "its block of kind {kind} at {at:#x} is of version {version}, or not inside \
                     its window: this driver knows version 1"
                )));
            }
            match self.bus.read32(at + card::NEXT.at) as usize {
                0 => break,
                next if next > at && next <= WINDOW - 8 && next.is_multiple_of(4) => at = next,
                next => {
                    return Err(self.error(format!(
                        "its block at {at:#x} says that the next one is at {next:#x}"
                    )));
                }
            }
        }
        let all = [
            card::KIND,
            host::KIND,
            timing::KIND,
            event::KIND,
            tlb::KIND,
            tx::KIND,
            clop::KIND,
            port::KIND,
        ];
        match all.iter().find(|&&kind| found >> kind & 1 == 0) {
            None => Ok(()),
            Some(kind) => Err(self.error(format!("it has no block of registers of kind {kind}"))),
        }
    }

    fn count(&mut self) -> Result<(), BusError> {
        let has = self.bus.read32(self.at.card + card::HAS.at);
        let entries = self.bus.read32(self.at.card + card::ENTRIES.at);
        let ports = (has & card::HAS_PORTS) as usize;
        let blocks = self.at.ports.iter().take_while(|&&at| at > 0).count();
        if entries & card::ENTRIES_TLB == 0 {
            return Err(self.error("it says that its TLB has no entry: lists need one"));
        }
        if ports == 0 || ports > blocks {
            return Err(self.error(format!(
                "it says that it has {ports} ports, and has registers of {blocks}"
            )));
        }
        self.has = Counts {
            ports,
            event_queues: ((has >> 16 & 0xff) as usize).min(event::QUEUE_BASE.count),
            tx_rings: ((has >> 24) as usize).min(tx::RING_BASE.count).min(ports),
            tlb_entries: ((entries & card::ENTRIES_TLB) as usize).min(tlb::ENTRY_CTRL.count),
        };
        Ok(())
    }

    /// Whether the device has left its slot.
    pub(super) fn is_gone(&self) -> bool {
        self.bus.read32(self.at.card + card::MAGIC.at) == GONE
    }

    /// Waits until `done`; `false` if it takes longer than it can.
    pub(super) fn wait(&self, done: impl FnMut() -> bool) -> bool {
        self.clock.wait(PATIENCE, done)
    }

    /// Reads a counter of 64 bits: a read of the lower half keeps the upper one.
    pub(super) fn read64(&self, at: usize) -> u64 {
        let low = self.bus.read32(at);
        u64::from(self.bus.read32(at + 4)) << 32 | u64::from(low)
    }

    /// Writes a register of 64 bits: it takes effect with its upper half.
    pub(super) fn write64(&self, at: usize, value: u64) {
        self.bus.write32(at, value as u32);
        self.bus.write32(at + 4, (value >> 32) as u32);
    }

    /// A time in cycles of a clock of the card's, whose frequency a register has in kHz.
    pub(super) fn cycles(&self, khz: Register, time: Ns) -> u32 {
        let khz = self.bus.read32(self.at.card + khz.at);
        let cycles = u128::from(time.0) * u128::from(khz) / 1_000_000;
        u32::try_from(cycles).unwrap_or(u32::MAX)
    }

    /// Where a register of a port is.
    pub(super) fn port(&self, port: usize, register: Register) -> usize {
        self.at.ports.get(port).map_or(0, |at| at + register.at)
    }

    /// Has the card forget all that it was told, and leaves it at rest. Whoever had it before may
    /// have been killed while it was receiving.
    ///
    /// # Errors
    /// It does not come back from its reset.
    pub(super) fn reset(&self) -> Result<(), BusError> {
        self.quiesce();
        // It quiesces once more by itself, and may wait for a read that is not answered.
        self.bus
            .write32(self.at.card + card::CTRL.at, card::CTRL_RESET);
        let status = self.at.card + card::STATUS.at;
        if !self.wait(|| self.bus.read32(status) & card::STATUS_RESETTING == 0) {
            return Err(self.error(if self.is_gone() {
                "it is gone: it does not answer any more"
            } else {
                "does not come back from its reset: power it off and on"
            }));
        }
        self.bus.write32(self.at.host + host::CTRL.at, 0);
        Ok(())
    }

    /// Brings it to rest, and takes its memory away from it. That it is at rest is proven by its
    /// configuration space or by the IOMMU: the quarantine is settled by one of them, and otherwise
    /// keeps what the card may still write.
    ///
    /// # Errors
    /// As for [`reset`](Self::reset).
    pub(super) fn rest(&self, quarantine: &Quarantine) -> Result<(), BusError> {
        let reset = self.reset();
        let cut_off = self.cut_off();
        quarantine.settle(cut_off);
        reset
    }

    /// Has it begin no request any more, and waits for those that it has begun. One that does not
    /// say that they have ended loses its way to memory.
    pub(super) fn quiesce(&self) {
        for port in 0..self.has.ports {
            self.bus.write32(self.port(port, port::MAC_CTRL), 0);
        }
        let at = self.at.host;
        self.bus.write32(at + host::CTRL.at, host::CTRL_QUIESCE);
        let status = at + host::STATUS.at;
        // The answer comes behind all writes, so that memory is free once it says so. All ones is
        // no answer.
        let idle = self.wait(|| {
            let status = self.bus.read32(status);
            status & host::STATUS_IDLE != 0 || status == GONE
        });
        if !idle || self.is_gone() {
            self.cut_off();
        }
    }

    /// Takes its way to memory from it, and returns whether that is proven.
    pub(super) fn cut_off(&self) -> bool {
        self.device.cut_off()
    }

    /// Lets it reach memory, by the limits of its host.
    ///
    /// # Errors
    /// The bus does not let it.
    pub(super) fn connect(&self) -> Result<(), BusError> {
        let cycles = self.cycles(card::CORE_KHZ, READ_TIMEOUT);
        let at = self.at.host;
        self.bus.write32(at + host::TIMEOUT.at, cycles);
        self.bus
            .write32(at + host::QUARANTINE.at, cycles.saturating_mul(4));
        self.device.set_bus_master(true)
    }
}
