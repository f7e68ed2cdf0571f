//! The card and its access to the host's memory.

use std::collections::{BTreeSet, HashMap};

use super::msix::Vectors;
use super::record::Record;
use super::state::{Faults, List, PORTS, Port, Queue, Ring, Timing};
use super::store::Store;
use crate::registers::{clop, event, host};
use crate::simulated::{Host, ReadError, TimingInput};

/// A cycle of the core, and of the ports, in picoseconds.
pub(super) const CORE_PS: u64 = 4000;
pub(super) const NET_PS: u64 = 6400;

/// Longest payload of a write, and longest read: what the host of PCIe Gen3 commonly sets.
pub(super) const MAX_PAYLOAD: usize = 256;
pub(super) const MAX_READ: usize = 512;

/// No request crosses a page (PCIe 4.0 section 2.2.7).
pub(super) const PAGE: u64 = 4096;

/// A software card.
pub struct SoftCard {
    pub(super) store: Store,
    pub(super) now: u64,
    /// Time of the last reset: stamps count from there.
    pub(super) epoch: u64,
    /// The function that accesses registers.
    pub(super) function: u8,
    /// A bit for each function.
    pub(super) bus_master: u8,
    pub(super) msix: u8,
    pub(super) ports: Vec<Port>,
    pub(super) queues: Vec<Queue>,
    /// Queues whose interrupt is armed: few of them, so that a step does not look at all.
    pub(super) armed: BTreeSet<usize>,
    pub(super) vectors: Vectors,
    /// An event, its function and its queue, that the host bus has not accepted.
    pub(super) on_its_way: Option<(u8, usize, Record)>,
    pub(super) lists: Vec<List>,
    pub(super) rings: Vec<Ring>,
    pub(super) arp_age: Vec<HashMap<usize, u64>>,
    pub(super) timing: Timing,
    /// Pulses at the connector that have not been processed.
    pub(super) pulses: Vec<TimingInput>,
    pub(super) faults: Faults,
    /// Deadline of the host for a read without completion.
    pub(super) unanswered: Option<u64>,
    /// A reset waits for that read.
    pub(super) resetting: bool,
}

impl Default for SoftCard {
    fn default() -> Self {
        Self::new()
    }
}

impl SoftCard {
    /// A card in power-on state.
    #[must_use]
    pub fn new() -> Self {
        Self {
            store: Store::new(),
            now: 0,
            epoch: 0,
            function: 0,
            bus_master: 0,
            msix: 0,
            ports: (0..PORTS).map(|_| Port::default()).collect(),
            queues: vec![Queue::default(); event::QUEUE_BASE.count],
            armed: BTreeSet::new(),
            vectors: Vectors::default(),
            on_its_way: None,
            lists: vec![List::default(); clop::LIST_BASE.count],
            rings: (0..PORTS).map(|_| Ring::default()).collect(),
            arp_age: vec![HashMap::new(); PORTS],
            timing: Timing::default(),
            pulses: Vec::new(),
            faults: Faults::default(),
            unanswered: None,
            resetting: false,
        }
    }

    /// The stamp counter.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp_at(self.now)
    }

    /// Its value at a moment, in picoseconds.
    pub(super) fn stamp_at(&self, moment: u64) -> u64 {
        moment.saturating_sub(self.epoch) / NET_PS
    }

    /// Whether it is quiesced.
    pub(super) fn is_quiet(&self) -> bool {
        self.resetting || self.store.get(host::THIS.at + host::CTRL.at) & 1 == 1
    }

    pub(super) fn host_count(&mut self, register: crate::Register) {
        self.store.count(host::THIS.at + register.at, 1);
    }

    /// Whether a function may reach memory.
    pub(super) fn is_master(&self, function: u8) -> bool {
        self.bus_master >> function & 1 == 1
    }

    /// Writes memory, in requests of the host's limits.
    pub(super) fn dma_write(
        &mut self,
        host: &mut dyn Host,
        function: u8,
        mut at: u64,
        mut bytes: &[u8],
    ) {
        while !bytes.is_empty() {
            let page = (PAGE - at % PAGE) as usize;
            let (piece, rest) = bytes.split_at(bytes.len().min(page).min(MAX_PAYLOAD));
            if self.is_master(function) {
                self.host_count(host::WRITES);
                host.write(function, at, piece);
            } else {
                self.host_count(host::WR_DISCARDED);
            }
            at = at.wrapping_add(piece.len() as u64);
            bytes = rest;
        }
    }

    /// Reads memory. A read without completion is [open](Self::is_waiting) from then on.
    pub(super) fn dma_read(
        &mut self,
        host: &mut dyn Host,
        function: u8,
        mut at: u64,
        len: usize,
    ) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; len];
        let mut left = &mut bytes[..];
        if !self.is_master(function) {
            self.host_count(host::RD_DISCARDED);
            return Err(ReadError::Unsupported);
        }
        while !left.is_empty() {
            let page = (PAGE - at % PAGE) as usize;
            let n = left.len().min(page).min(MAX_READ);
            let (piece, rest) = left.split_at_mut(n);
            self.host_count(host::READS);
            if let Err(error) = host.read(function, at, piece) {
                match error {
                    ReadError::Unsupported => self.host_count(host::RD_UNSUPPORTED),
                    ReadError::Abort => self.host_count(host::RD_ABORT),
                    ReadError::Poisoned => self.host_count(host::RD_POISONED),
                    ReadError::Unanswered => {
                        let timeout = self.store.get(host::THIS.at + host::TIMEOUT.at);
                        self.unanswered = Some(self.now + u64::from(timeout) * CORE_PS);
                    }
                }
                return Err(error);
            }
            at = at.wrapping_add(n as u64);
            left = rest;
        }
        Ok(bytes)
    }

    /// Whether a read waits for its timeout. As completions are used in order, all later reads wait
    /// as well.
    pub(super) fn is_waiting(&self) -> bool {
        self.unanswered.is_some()
    }

    /// Abandons a read without completion in time.
    pub(super) fn give_up(&mut self) {
        if self
            .unanswered
            .take_if(|until| *until <= self.now)
            .is_some()
        {
            self.host_count(host::RD_TIMEOUT);
            if self.resetting {
                self.store.reset();
                self.clear();
            }
        }
    }
}
