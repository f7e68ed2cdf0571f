//! Access to the card: identification, register blocks, reset and stop.

use std::sync::Arc;

use pollux_mempool::time::Ns;
use pollux_mempool::{Iova, IovaMap};

use super::registers::{card, clop, event, functions, host, port, timing, tlb, tx};
use crate::bus::exclusive::Exclusive;
use crate::bus::registers::Register;
use crate::bus::{Bus, BusError, Device};
use crate::clock::Clock;
use crate::grant::MemoryGrant;
use crate::quarantine::Quarantine;

/// Length of BAR 0 in bytes.
const WINDOW: usize = 128 << 10;

/// "PLUX".
const MAGIC: u32 = 0x5855_4c50;

/// The version of the register map that this driver supports; minor versions only add registers.
const MAJOR: u32 = 3;

/// Event queues and transmit rings begin at multiples of this number of bytes.
const UNIT: u64 = 64;

/// Maximum number of entries in the list of blocks: the window cannot hold more.
const MAX_BLOCKS: usize = WINDOW / card::SIZE;

/// Maximum number of ports of a card, which limits the list numbers.
pub(super) const MAX_PORTS: usize = 4;

/// Number of lists of a port: its streams, the default list, and unused numbers.
pub(super) const LISTS: usize = 32;

/// The default list of a port, for frames of no stream.
pub(super) const DEFAULT_LIST: usize = 16;

/// Maximum time that the card may take to execute a command; a read without an answer fails after
/// [`READ_TIMEOUT`].
pub(super) const PATIENCE: Ns = Ns(100_000_000);

/// Completion timeout: within PCIe's recommendation (the minimum of range B is 10 ms, PCIe 4.0
/// section 7.5.3.16), and below [`PATIENCE`].
const READ_TIMEOUT: Ns = Ns(20_000_000);

/// Value of all registers if the device is gone.
pub(super) const GONE: u32 = u32::MAX;

/// Offsets of the register blocks in the window, in bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Blocks {
    pub(super) card: usize,
    pub(super) host: usize,
    pub(super) functions: usize,
    pub(super) timing: usize,
    pub(super) event: usize,
    pub(super) tlb: usize,
    pub(super) tx: usize,
    pub(super) clop: usize,
    pub(super) ports: [usize; MAX_PORTS],
}

/// Numbers of resources.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) ports: usize,
    pub(super) event_queues: usize,
    pub(super) tx_rings: usize,
    pub(super) tlb_entries: usize,
}

/// The function that this is, and the first of each kind of its resources (hw/docs/functions.md).
#[derive(Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) function: usize,
    pub(super) port: usize,
    pub(super) queue: usize,
    pub(super) page: usize,
}

// The reset of a function is commanded and told like that of the card.
const _: () = assert!(card::CTRL_RESET == functions::FUNCTION_CTRL_RESET);
const _: () = assert!(card::STATUS_RESETTING == functions::FUNCTION_STATUS_RESETTING);

/// Entries of the TLB that have one owner.
const GROUP: usize = 16;

/// The first run of resources of an owner, of so many: where it begins, and how many there are. A word has
/// the owners of eight.
fn run_of(words: &[u32], all: usize, function: usize) -> (usize, usize) {
    let word = |n: usize| words.get(n / 8).copied().unwrap_or(0);
    let is_own = |&n: &usize| (word(n) >> (4 * (n % 8)) & 7) as usize == function;
    let first = (0..all).find(is_own).unwrap_or(all);
    (first, (first..all).take_while(is_own).count())
}

/// The card: registers, and clock. Clones are the same card.
pub(super) struct Nic<D: Device> {
    pub(super) device: Exclusive<D>,
    /// For mappings.
    pub(super) grant: MemoryGrant,
    pub(super) bus: D::Bus,
    pub(super) clock: D::Clock,
    pub(super) at: Blocks,
    pub(super) has: Counts,
    pub(super) share: Share,
}

impl<D: Device> Clone for Nic<D> {
    fn clone(&self) -> Self {
        Self {
            device: self.device.clone(),
            bus: self.bus.clone(),
            clock: self.clock.clone(),
            ..*self
        }
    }
}

impl<D: Device> Nic<D> {
    /// Identifies the device.
    ///
    /// # Errors
    /// The device is not a card of this kind, has another version, lacks a required resource, or is
    /// claimed by another driver.
    pub(super) fn new(device: Arc<D>, grant: MemoryGrant) -> Result<Self, BusError> {
        let device = Exclusive::new(device)?;
        let bus = device.bar(0, WINDOW)?;
        let clock = device.clock();
        let (at, has) = (Blocks::default(), Counts::default());
        let mut nic = Self {
            device,
            grant,
            bus,
            clock,
            at,
            has,
            share: Share::default(),
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

    /// Bus address of `len` bytes that the card accesses in units of 64 bytes: of any other address it
    /// would write or read nothing.
    ///
    /// # Errors
    /// The device does not see them contiguously, or not at a multiple of 64.
    pub(super) fn base(&self, of: &str, memory: &IovaMap, len: usize) -> Result<u64, BusError> {
        let base = memory.iova(0, len);
        let Iova(base) = base.map_err(|error| self.error(error.to_string()))?;
        if !base.is_multiple_of(UNIT) {
            return Err(self.error(format!(
                "its {of} would be at the bus address {base:#x}, which is not a multiple of {UNIT}: \
                 memory has to be mapped for it by whole pages"
            )));
        }
        Ok(base)
    }

    fn identify(&self) -> Result<(), BusError> {
        let magic = self.bus.read32(card::MAGIC.at);
        if magic != MAGIC {
            return Err(self.error(format!(
                "its magic number is {magic:#x} and not {MAGIC:#x}: it is another device, or its \
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

    /// Walks the list of blocks. Each block has the offset of the next one. Offsets ascend, so that
    /// the walk ends whatever the device reports.
    fn walk(&mut self) -> Result<(), BusError> {
        let mut found = 0_u32;
        let mut at = 0;
        for _ in 0..MAX_BLOCKS {
            let word = self.bus.read32(at);
            let (kind, version) = (word & card::BLOCK_KIND, word >> 16 & 0xff);
            let (place, size) = match kind {
                card::KIND => (&mut self.at.card, card::SIZE),
                host::KIND => (&mut self.at.host, host::SIZE),
                functions::KIND => (&mut self.at.functions, functions::SIZE),
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
            functions::KIND,
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
        let queues = self.bus.read32(self.at.card + card::EVENT_QUEUES.at);
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
            event_queues: ((queues & card::EVENT_QUEUES_VALUE) as usize)
                .min(event::QUEUE_BASE.count),
            tx_rings: ((has >> 24) as usize).min(tx::RING_BASE.count).min(ports),
            tlb_entries: ((entries & card::ENTRIES_TLB) as usize).min(tlb::ENTRY_CTRL.count),
        };
        self.take_share()
    }

    /// Of all resources, keeps those of this function: of each kind the first run.
    fn take_share(&mut self) -> Result<(), BusError> {
        let function = (self.bus.read32(self.at.card + card::FUNCTION.at) & 7) as usize;
        let owners = |register: Register| -> Vec<u32> {
            let at = |word| self.at.functions + register.of(word);
            (0..register.count)
                .map(|word| self.bus.read32(at(word)))
                .collect()
        };
        let groups = self.has.tlb_entries.div_ceil(GROUP);
        let (port, ports) = run_of(&owners(functions::PORTS), self.has.ports, function);
        let (queue, queues) = run_of(
            &owners(functions::QUEUE_OWNERS),
            self.has.event_queues,
            function,
        );
        let (group, groups) = run_of(&owners(functions::PAGES), groups, function);
        if ports == 0 || queues == 0 || groups == 0 {
            return Err(self.error(format!(
                "its function {function} owns {ports} ports, {queues} event queues and {groups} \
                 groups of pages, and needs one of each: function 0 assigns them"
            )));
        }
        self.at.ports.rotate_left(port);
        self.has.tx_rings = self.has.tx_rings.saturating_sub(port).min(ports);
        self.has.ports = ports;
        self.has.event_queues = queues;
        self.has.tlb_entries = (groups * GROUP).min(self.has.tlb_entries - group * GROUP);
        self.share = Share {
            function,
            port,
            queue,
            page: group * GROUP,
        };
        Ok(())
    }

    /// Whether this is function 0, which has the registers of the host bus and of the time.
    pub(super) fn is_first(&self) -> bool {
        self.share.function == 0
    }

    /// The card's number of a ring, an event queue, an entry of the TLB of this function.
    pub(super) fn ring(&self, ring: usize) -> usize {
        self.share.port + ring
    }

    pub(super) fn queue(&self, queue: usize) -> usize {
        self.share.queue + queue
    }

    pub(super) fn entry(&self, entry: usize) -> usize {
        self.share.page + entry
    }

    /// Whether the device has been removed.
    pub(super) fn is_gone(&self) -> bool {
        self.bus.read32(self.at.card + card::MAGIC.at) == GONE
    }

    /// Waits until `done`; `false` after the maximum time.
    pub(super) fn wait(&self, done: impl FnMut() -> bool) -> bool {
        self.clock.wait(PATIENCE, done)
    }

    /// Reads a 64-bit counter: a read of the lower half latches the upper one.
    pub(super) fn read64(&self, at: usize) -> u64 {
        let low = self.bus.read32(at);
        u64::from(self.bus.read32(at + 4)) << 32 | u64::from(low)
    }

    /// Writes a 64-bit register: the write of the upper half makes it effective.
    pub(super) fn write64(&self, at: usize, value: u64) {
        self.bus.write32(at, value as u32);
        self.bus.write32(at + 4, (value >> 32) as u32);
    }

    /// A time in cycles of a clock of the card, whose frequency a register has in kHz.
    pub(super) fn cycles(&self, khz: Register, time: Ns) -> u32 {
        let khz = self.bus.read32(self.at.card + khz.at);
        let cycles = u128::from(time.0) * u128::from(khz) / 1_000_000;
        u32::try_from(cycles).unwrap_or(u32::MAX)
    }

    /// Address of a register of a port.
    pub(super) fn port(&self, port: usize, register: Register) -> usize {
        self.at.ports.get(port).map_or(0, |at| at + register.at)
    }

    /// Resets the card, or another function than 0 alone, and leaves it at rest. A previous owner
    /// may have been killed during reception.
    ///
    /// # Errors
    /// The card does not complete its reset.
    pub(super) fn reset(&self) -> Result<(), BusError> {
        let (command, status) = if self.is_first() {
            self.quiesce();
            (self.at.card + card::CTRL.at, self.at.card + card::STATUS.at)
        } else {
            let at = |register: Register| self.at.functions + register.of(self.share.function);
            (at(functions::FUNCTION_CTRL), at(functions::FUNCTION_STATUS))
        };
        // The reset quiesces (once more), and may wait for a read that is not answered.
        self.bus.write32(command, card::CTRL_RESET);
        if !self.wait(|| self.bus.read32(status) & card::STATUS_RESETTING == 0) {
            return Err(self.error(if self.is_gone() {
                "it is gone: it does not answer any more"
            } else {
                "does not come back from its reset: power it off and on"
            }));
        }
        if self.is_first() {
            self.bus.write32(self.at.host + host::CTRL.at, 0);
        }
        Ok(())
    }

    /// Checks that the ports have a clock, before their registers are written; forgets that they lost it before.
    ///
    /// # Errors
    /// They have none: the card discards what is written there.
    pub(super) fn need_ports(&self) -> Result<(), BusError> {
        let (status, flags) = (card::STATUS.at, card::FLAGS.at);
        if !self.wait(|| self.bus.read32(self.at.card + status) & card::STATUS_NET != 0) {
            return Err(self.error(
                "its ports have no clock, as the PLL of their transceivers is not locked: check the reference clock",
            ));
        }
        self.bus.write32(self.at.card + flags, card::FLAGS_NET_LOST);
        Ok(())
    }

    /// Whether the ports were reset since, or their clock stood: they have to be set up anew.
    pub(super) fn has_lost_ports(&self) -> bool {
        let flags = self.bus.read32(self.at.card + card::FLAGS.at);
        flags & card::FLAGS_NET_LOST != 0
    }

    /// Stops the card and revokes its access to memory. The proof that it is at rest comes from its
    /// configuration space or from the IOMMU and settles the quarantine; without a proof the
    /// quarantine keeps what the card may still write.
    ///
    /// # Errors
    /// As for [`reset`](Self::reset).
    pub(super) fn rest(&self, quarantine: &Quarantine) -> Result<(), BusError> {
        let reset = self.reset();
        let cut_off = self.cut_off();
        quarantine.settle(cut_off);
        reset
    }

    /// Makes the card begin no further requests, and waits for those in flight. A card that does
    /// not report their end loses its access to memory.
    pub(super) fn quiesce(&self) {
        for port in 0..self.has.ports {
            self.bus.write32(self.port(port, port::MAC_CTRL), 0);
        }
        let at = self.at.host;
        self.bus.write32(at + host::CTRL.at, host::CTRL_QUIESCE);
        let status = at + host::STATUS.at;
        // The answer is ordered behind all writes, so memory is free when it reports the end. All
        // ones is not an answer.
        let idle = self.wait(|| {
            let status = self.bus.read32(status);
            status & host::STATUS_IDLE != 0 || status == GONE
        });
        if !idle || self.is_gone() {
            self.cut_off();
        }
    }

    /// Disables bus mastering; returns whether that is proven.
    pub(super) fn cut_off(&self) -> bool {
        self.device.cut_off()
    }

    /// Enables bus mastering, within the limits of the host.
    ///
    /// # Errors
    /// The refusal of the bus.
    pub(super) fn connect(&self) -> Result<(), BusError> {
        if self.is_first() {
            let cycles = self.cycles(card::CORE_KHZ, READ_TIMEOUT);
            let at = self.at.host;
            self.bus.write32(at + host::TIMEOUT.at, cycles);
            self.bus
                .write32(at + host::QUARANTINE.at, cycles.saturating_mul(4));
        }
        self.device.set_bus_master(true)
    }
}
