//! What the card reaches of our memory, and the pages of its TLB.

use std::sync::Arc;

use pollux_mempool::MemoryRegion;
use zerocopy::FromBytes;

use super::layouts::TlbFault;
use super::nic::Nic;
use super::registers::tlb;
use crate::bus::{Bus, BusError, Device, DmaMapping};
use crate::event::{EventRecord, RegionOptions};

/// A region that the card reaches, in one piece whose address is a multiple of its length.
pub(super) struct Page {
    /// The memory that was made, which is no pool's, whatever region the mapping says it is of.
    pub(super) region: Arc<MemoryRegion>,
    pub(super) mapping: DmaMapping,
    /// Where it begins in its region.
    pub(super) offset: usize,
    /// Where it begins for the card.
    pub(super) bus: u64,
}

/// Memory of `len` bytes, a power of two from a page of 4 KiB up, that one page of the card's TLB
/// covers, and nothing else is in it. Regions begin at pages of the processor; where that is not
/// enough, one twice as long has such a piece in it.
///
/// # Errors
/// Memory that cannot be had, or that the card cannot be given in one piece.
pub(super) fn page<D: Device>(
    nic: &Nic<D>,
    len: usize,
    options: &RegionOptions,
) -> Result<Page, BusError> {
    let map = |bytes| {
        let region = options.build(bytes);
        let region = Arc::new(region.map_err(|error| nic.error(error.to_string()))?);
        let mapping = nic.device.map(&region, nic.grant)?;
        Ok((region, mapping))
    };
    let start = |mapping: &DmaMapping, offset| {
        let found = mapping.addresses().iova(offset, len);
        found.map_err(|error| nic.error(error.to_string()))
    };
    let mask = len as u64 - 1;
    let (region, mapping) = map(len)?;
    let bus = start(&mapping, 0)?.0;
    if bus & mask == 0 {
        let offset = 0;
        return Ok(Page {
            region,
            mapping,
            offset,
            bus,
        });
    }
    drop(mapping);
    let (region, mapping) = map(len * 2)?;
    let first = start(&mapping, 0)?.0;
    let offset = (first.wrapping_neg() & mask) as usize;
    let bus = start(&mapping, offset)?.0;
    if bus & mask != 0 {
        return Err(nic.error(format!(
            "no {len} bytes of memory are in one piece for it; use larger pages or an IOMMU"
        )));
    }
    Ok(Page {
        region,
        mapping,
        offset,
        bus,
    })
}

/// The pages that the card's lists may write, and those of them that are in its TLB: an access to
/// another is dropped, and told as a fault, upon which that page gets an entry.
///
/// Pages are at addresses of their own: not ours, and not those on the bus, so that an address which
/// nobody translated is found out at once.
pub(super) struct Tlb<D: Device> {
    nic: Nic<D>,
    /// Length and bus address of each page.
    pages: Vec<(usize, u64)>,
    /// The page of each entry that is used.
    entries: Vec<usize>,
    /// The entry that makes way next.
    next: usize,
}

/// Where the first page begins; each has so many bytes for itself.
const FIRST: u64 = 1 << 56;
const APART: u64 = 1 << 40;

/// Faults that may wait for room in their event queue (hw/docs/operations.md, A full queue).
pub(super) const FAULTS: usize = 8;

/// Reason of a fault: no entry covers the place.
const NO_ENTRY: u32 = 0;

impl<D: Device> Tlb<D> {
    /// No entry is used after a reset. Faults are told by an event queue.
    pub(super) fn new(nic: &Nic<D>, queue: usize) -> Self {
        let control = tlb::CTRL_EVENT_FAULT | (queue as u32) << 8;
        nic.bus.write32(nic.at.tlb + tlb::CTRL.at, control);
        Self {
            nic: nic.clone(),
            pages: Vec::new(),
            entries: Vec::new(),
            next: 0,
        }
    }

    /// Adds a page of `len` bytes at `bus`; returns its virtual address. As long as there are entries
    /// it has one, and else when it is written to.
    pub(super) fn add(&mut self, len: usize, bus: u64) -> u64 {
        let page = self.pages.len();
        self.pages.push((len, bus));
        if self.entries.len() < self.nic.has.tlb_entries {
            self.entries.push(page);
            self.enter(self.entries.len() - 1);
        }
        address(page)
    }

    /// Gives a page that was written to without an entry one; `false` if an event tells of no such
    /// fault.
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
            // Another fault of the same page, before this one, or who else took it away.
            Some(entry) if self.is_valid(entry) => return true,
            Some(entry) => entry,
            None => self.make_way(page),
        };
        self.enter(entry);
        true
    }

    /// The entry for a page that has none: those of all others in turn.
    fn make_way(&mut self, page: usize) -> usize {
        let entry = self.next;
        self.next = (self.next + 1) % self.entries.len().max(1);
        if let Some(used) = self.entries.get_mut(entry) {
            *used = page;
        }
        entry
    }

    fn control(&self, entry: usize) -> usize {
        self.nic.at.tlb + tlb::ENTRY_CTRL.of(entry)
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
        nic.write64(at + tlb::ENTRY_VIRTUAL.of(entry), address(page));
        nic.write64(at + tlb::ENTRY_BUS.of(entry), bus);
        let control = tlb::ENTRY_CTRL_VALID | len.trailing_zeros() << 8;
        nic.bus.write32(self.control(entry), control);
    }
}

/// Where the card sees a page.
fn address(page: usize) -> u64 {
    FIRST + page as u64 * APART
}
