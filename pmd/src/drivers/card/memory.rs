//! What the card reaches of our memory, and the pages of its TLB.

use std::sync::Arc;

use super::nic::Nic;
use super::registers::tlb;
use crate::bus::{Bus, BusError, Device, DmaMapping};
use crate::event::RegionOptions;

/// A region that the card reaches, in one piece whose address is a multiple of its length.
pub(super) struct Page {
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
        let region = region.map_err(|error| nic.error(error.to_string()))?;
        nic.device.map(&Arc::new(region))
    };
    let start = |mapping: &DmaMapping, offset| {
        let found = mapping.addresses().iova(offset, len);
        found.map_err(|error| nic.error(error.to_string()))
    };
    let mask = len as u64 - 1;
    let mapping = map(len)?;
    let bus = start(&mapping, 0)?.0;
    if bus & mask == 0 {
        let offset = 0;
        return Ok(Page {
            mapping,
            offset,
            bus,
        });
    }
    drop(mapping);
    let mapping = map(len * 2)?;
    let first = start(&mapping, 0)?.0;
    let offset = (first.wrapping_neg() & mask) as usize;
    let bus = start(&mapping, offset)?.0;
    if bus & mask != 0 {
        return Err(nic.error(format!(
            "no {len} bytes of memory are in one piece for it; use larger pages or an IOMMU"
        )));
    }
    Ok(Page {
        mapping,
        offset,
        bus,
    })
}

/// The card's TLB. Its pages are at addresses of their own: not ours, and not those on the bus, so
/// that an address which nobody translated is found out at once.
pub(super) struct Tlb {
    used: usize,
}

/// Where the page of the first entry begins; each has so many bytes for itself.
const FIRST: u64 = 1 << 56;
const APART: u64 = 1 << 40;

impl Tlb {
    /// No entry is used after a reset.
    pub(super) fn new() -> Self {
        Self { used: 0 }
    }

    /// Has the next entry stand for a page of `len` bytes at `bus`; returns its virtual address.
    ///
    /// # Errors
    /// All entries are used.
    pub(super) fn add<D: Device>(
        &mut self,
        nic: &Nic<D>,
        len: usize,
        bus: u64,
    ) -> Result<u64, BusError> {
        let entry = self.used;
        if entry >= nic.has.tlb_entries {
            return Err(nic.error(format!(
                "its TLB has {entry} entries, one for each list of buffers: use fewer streams"
            )));
        }
        self.used += 1;
        let at = nic.at.tlb;
        let address = FIRST + entry as u64 * APART;
        nic.bus.write32(at + tlb::ENTRY_CTRL.of(entry), 0);
        nic.write64(at + tlb::ENTRY_VIRTUAL.of(entry), address);
        nic.write64(at + tlb::ENTRY_BUS.of(entry), bus);
        nic.bus.write32(
            at + tlb::ENTRY_CTRL.of(entry),
            tlb::ENTRY_CTRL_VALID | len.trailing_zeros() << 8,
        );
        Ok(address)
    }
}
