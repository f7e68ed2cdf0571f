//! Pages of the card's TLB.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pollux_mempool::IovaMap;
use pollux_mempool::time::Ns;
use zerocopy::FromBytes;

use super::layouts::TlbFault;
use super::nic::Nic;
use super::registers::{card, functions, tlb};
use crate::bus::{Bus, BusError, Device};
use crate::event::EventRecord;

/// The memory that the card's lists may write, in pages, and which of them are in its TLB. The card
/// holds an access to another page and reports it; the page then gets an entry.
///
/// Memory has virtual addresses of its own, other than those of the process and of the bus, so
/// that an untranslated address is detected at once. Clones are the same TLB: its locks are taken
/// where lists begin and end, and where a page is missing.
pub(super) struct Tlb<D: Device>(Arc<Mutex<Table<D>>>);

impl<D: Device> Clone for Tlb<D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Table<D: Device> {
    nic: Nic<D>,
    /// In the order of their virtual addresses.
    pages: Vec<Page>,
    /// The virtual address of the page of each entry.
    entries: Vec<Option<u64>>,
    /// The next entry to replace.
    next: usize,
    /// Number of areas of memory so far, and of requests to unmap.
    areas: u64,
    unmapped: u32,
}

#[derive(Clone, Copy)]
struct Page {
    at: u64,
    len: usize,
    bus: u64,
}

/// Virtual address of the first area of memory, and the distance between two.
const FIRST: u64 = 1 << 56;
const APART: u64 = 1 << 40;

/// Sizes of a page.
const LEAST: usize = 4 << 10;
const MOST: usize = 1 << 30;

/// Records that the event queue of faults has space for besides those of buffers: a fault of each port,
/// and those that are free while there is room (hw/docs/operations.md, A full queue).
pub(super) const FAULTS: usize = 8;

/// Maximum time that the card holds an access to a page without an entry. Long enough for a poll
/// loop that is interrupted for a moment; the other payloads of that port wait meanwhile.
const PATIENCE: Ns = Ns(200_000);

/// Reason of a fault: no entry covers the address.
const NO_ENTRY: u32 = 0;

impl<D: Device> Tlb<D> {
    /// No entry is used after a reset. An event queue reports missing pages of this function.
    pub(super) fn new(nic: &Nic<D>, queue: usize) -> Self {
        // How long a chunk waits is function 0's to decide, for all.
        if nic.is_first() {
            let timeout = nic.cycles(card::CORE_KHZ, PATIENCE);
            nic.bus.write32(nic.at.tlb + tlb::TIMEOUT.at, timeout);
        }
        let register = functions::FAULT_CTRL.of(nic.share.function);
        let control = functions::FAULT_CTRL_EVENT_FAULT | (nic.queue(queue) as u32) << 8;
        nic.bus.write32(nic.at.functions + register, control);
        Self(Arc::new(Mutex::new(Table {
            nic: nic.clone(),
            pages: Vec::new(),
            entries: vec![None; nic.has.tlb_entries],
            next: 0,
            areas: 0,
            unmapped: 0,
        })))
    }

    fn table(&self) -> MutexGuard<'_, Table<D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the first `len` bytes of memory, a multiple of 4 KiB, in pages as large as its bus
    /// addresses allow; returns its virtual address. A page gets an entry at once if one is free,
    /// otherwise when it is written to.
    ///
    /// # Errors
    /// The device does not see 4 KiB of it contiguously.
    pub(super) fn add(&self, memory: &IovaMap, len: usize) -> Result<u64, BusError> {
        let mut table = self.table();
        let address = |offset, len| memory.iova(offset, len).map(|iova| iova.0);
        let error = |what: &dyn ToString| table.nic.error(what.to_string());
        let first = address(0, LEAST).map_err(|what| error(&what))?;
        // As far from a multiple of the largest page as its bus address: then contiguous memory takes
        // few pages.
        let start = FIRST + table.areas * APART + first % MOST as u64;
        let mut pages = Vec::new();
        let mut offset = 0;
        while offset < len {
            let at = start + offset as u64;
            let bus = address(offset, LEAST).map_err(|what| error(&what))?;
            let sizes = (LEAST.trailing_zeros()..=MOST.trailing_zeros()).rev();
            let largest = sizes.map(|log2| 1_usize << log2).find(|&size| {
                let mask = size as u64 - 1;
                size <= len - offset && (at | bus) & mask == 0 && address(offset, size).is_ok()
            });
            let Some(len) = largest else {
                return Err(error(&format!(
                    "the memory of its list has a page of 4 KiB at the bus address {bus:#x}, which is \
                     not a multiple of that: memory has to be mapped for it by whole pages"
                )));
            };
            pages.push(Page { at, len, bus });
            offset += len;
        }
        table.areas += 1;
        for page in pages {
            table.pages.push(page);
            if let Some(entry) = table.entries.iter().position(Option::is_none) {
                table.enter(entry, page);
            }
        }
        Ok(start)
    }

    /// Takes memory away from the card, which goes on with the rest: returns once the card has no
    /// access to it any more, or `false` if the card does not say so in time.
    pub(super) fn remove(&self, start: u64) -> bool {
        let mut table = self.table();
        let is_here = |at: u64| (start..start + APART - MOST as u64).contains(&at);
        table.pages.retain(|page| !is_here(page.at));
        for entry in 0..table.entries.len() {
            let used = table.entries.get_mut(entry);
            if let Some(used) = used.filter(|used| used.is_some_and(is_here)) {
                *used = None;
                table.nic.bus.write32(table.control(entry), 0);
            }
        }
        table.unmap()
    }

    /// Gives an entry to a page that was written to without one; `false` if the event does not
    /// report such an access.
    #[cold]
    pub(super) fn answer(&self, event: &EventRecord) -> bool {
        let Ok(fault) = TlbFault::read_from_bytes(&event.payload) else {
            return false;
        };
        let (mut table, at) = (self.table(), fault.address.get());
        let is_own = fault.function.get() as usize == table.nic.share.function;
        if fault.reason.get() != NO_ENTRY || !is_own {
            return false;
        }
        let behind = table.pages.partition_point(|page| page.at <= at);
        let page = behind.checked_sub(1).and_then(|n| table.pages.get(n));
        let page = page.filter(|page| at - page.at < page.len as u64).copied();
        let Some(page) = page else {
            // Of memory that was removed meanwhile, or of none.
            return table.areas > 0 && (FIRST..FIRST + table.areas * APART).contains(&at);
        };
        let used = |used: &Option<u64>| *used == Some(page.at);
        let entry = match table.entries.iter().position(used) {
            // Another fault of the same page, before this one, or an intermediate replacement.
            Some(entry) if table.is_valid(entry) => return true,
            Some(entry) => entry,
            None => table.make_way(),
        };
        table.enter(entry, page);
        true
    }
}

impl<D: Device> Table<D> {
    /// The entry for a page that has none: a free one, otherwise round robin over all.
    fn make_way(&mut self) -> usize {
        if let Some(free) = self.entries.iter().position(Option::is_none) {
            return free;
        }
        let entry = self.next;
        self.next = (self.next + 1) % self.entries.len().max(1);
        entry
    }

    fn control(&self, entry: usize) -> usize {
        self.nic.at.tlb + tlb::ENTRY_CTRL.of(self.nic.entry(entry))
    }

    fn is_valid(&self, entry: usize) -> bool {
        self.nic.bus.read32(self.control(entry)) & tlb::ENTRY_CTRL_VALID != 0
    }

    /// Writes an entry.
    fn enter(&mut self, entry: usize, page: Page) {
        let (nic, at) = (&self.nic, self.nic.at.tlb);
        nic.bus.write32(self.control(entry), 0);
        let number = nic.entry(entry);
        nic.write64(at + tlb::ENTRY_VIRTUAL.of(number), page.at);
        nic.write64(at + tlb::ENTRY_BUS.of(number), page.bus);
        nic.bus.write32(at + tlb::ENTRY_KEY.of(number), 0);
        let control = tlb::ENTRY_CTRL_VALID | page.len.trailing_zeros() << 8;
        nic.bus.write32(self.control(entry), control);
        if let Some(used) = self.entries.get_mut(entry) {
            *used = Some(page.at);
        }
    }

    /// Waits until the card uses no invalid entry. A virtual function cannot ask.
    fn unmap(&mut self) -> bool {
        if !self.nic.is_first() {
            return false;
        }
        self.unmapped = self.unmapped.wrapping_add(1);
        let (nic, at, number) = (&self.nic, self.nic.at.tlb, self.unmapped);
        nic.bus.write32(at + tlb::INVALIDATE.at, number);
        nic.wait(|| nic.bus.read32(at + tlb::INVALIDATED.at) == number || nic.is_gone())
    }
}
