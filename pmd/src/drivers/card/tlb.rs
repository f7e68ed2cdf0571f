//! Pages of the card's TLB.

use zerocopy::FromBytes;

use super::layouts::TlbFault;
use super::nic::Nic;
use super::registers::tlb;
use crate::bus::{Bus, Device};
use crate::event::EventRecord;

/// The pages that the card's lists may write, and which of them are in its TLB. The card drops an
/// access to another page and reports a fault; the page then gets an entry.
///
/// Pages have virtual addresses of their own, other than those of the process and of the bus, so
/// that an untranslated address is detected at once.
pub(super) struct Tlb<D: Device> {
    nic: Nic<D>,
    /// Length and bus address of each page.
    pages: Vec<(usize, u64)>,
    /// The page of each used entry.
    entries: Vec<usize>,
    /// The next entry to replace.
    next: usize,
}

/// Virtual address of the first page, and the distance between pages.
const FIRST: u64 = 1 << 56;
const APART: u64 = 1 << 40;

/// Maximum number of faults that wait for space in their event queue (hw/docs/operations.md, A full
/// queue).
pub(super) const FAULTS: usize = 8;

/// Reason of a fault: no entry covers the address.
const NO_ENTRY: u32 = 0;

impl<D: Device> Tlb<D> {
    /// No entry is used after a reset. An event queue reports faults.
    pub(super) fn new(nic: &Nic<D>, queue: usize) -> Self {
        // Faults are told to function 0 only: another one has an entry for each page.
        if nic.is_first() {
            let control = tlb::CTRL_EVENT_FAULT | (nic.queue(queue) as u32) << 8;
            nic.bus.write32(nic.at.tlb + tlb::CTRL.at, control);
        }
        Self {
            nic: nic.clone(),
            pages: Vec::new(),
            entries: Vec::new(),
            next: 0,
        }
    }

    /// Adds a page of `len` bytes at `bus`; returns its virtual address. The page gets an entry at
    /// once if one is free, otherwise when it is written to.
    pub(super) fn add(&mut self, len: usize, bus: u64) -> u64 {
        let page = self.pages.len();
        self.pages.push((len, bus));
        if self.entries.len() < self.nic.has.tlb_entries {
            self.entries.push(page);
            self.enter(self.entries.len() - 1);
        }
        address(page)
    }

    /// Gives an entry to a page that was written to without one; `false` if the event does not
    /// report such a fault.
    #[cold]
    pub(super) fn answer(&mut self, event: &EventRecord) -> bool {
        let Ok(fault) = TlbFault::read_from_bytes(&event.payload) else {
            return false;
        };
        let page = fault.address.get().checked_sub(FIRST);
        let page = page.map(|behind| (behind / APART) as usize);
        let found = page.filter(|&page| {
            let into = fault.address.get() - address(page);
            let len = self.pages.get(page).map_or(0, |&(len, _)| len);
            into < len as u64 && fault.reason.get() == NO_ENTRY && fault.function.get() == 0
        });
        let Some(page) = found else { return false };
        let entry = match self.entries.iter().position(|&used| used == page) {
            // Another fault of the same page, before this one, or an intermediate replacement.
            Some(entry) if self.is_valid(entry) => return true,
            Some(entry) => entry,
            None => self.make_way(page),
        };
        self.enter(entry);
        true
    }

    /// The entry for a page that has none: round robin over all.
    fn make_way(&mut self, page: usize) -> usize {
        let entry = self.next;
        self.next = (self.next + 1) % self.entries.len().max(1);
        if let Some(used) = self.entries.get_mut(entry) {
            *used = page;
        }
        entry
    }

    fn control(&self, entry: usize) -> usize {
        self.nic.at.tlb + tlb::ENTRY_CTRL.of(self.nic.entry(entry))
    }

    fn is_valid(&self, entry: usize) -> bool {
        self.nic.bus.read32(self.control(entry)) & tlb::ENTRY_CTRL_VALID != 0
    }

    /// Writes an entry.
    fn enter(&self, entry: usize) {
        let page = self.entries.get(entry).copied().unwrap_or(0);
        let Some(&(len, bus)) = self.pages.get(page) else {
            return;
        };
        let (nic, at) = (&self.nic, self.nic.at.tlb);
        nic.bus.write32(self.control(entry), 0);
        let number = nic.entry(entry);
        nic.write64(at + tlb::ENTRY_VIRTUAL.of(number), address(page));
        nic.write64(at + tlb::ENTRY_BUS.of(number), bus);
        let control = tlb::ENTRY_CTRL_VALID | len.trailing_zeros() << 8;
        nic.bus.write32(self.control(entry), control);
    }
}

/// Virtual address of a page.
fn address(page: usize) -> u64 {
    FIRST + page as u64 * APART
}
