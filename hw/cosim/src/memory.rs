//! The host's memory as a card sees it: regions mapped for the card, at addresses that are not
//! pointers, checked as an IOMMU would.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use pollux_card_model::{FUNCTIONS, Host, ReadError};
use pollux_mempool::{Iova, IovaMap, MemoryRegion};

/// The memory that a simulated card reaches.
#[derive(Default)]
pub struct HostMemory {
    /// Accesses that an IOMMU would have refused: outside all mappings of their function, or without
    /// the right to master the bus.
    pub trespasses: u64,
    /// How the next reads fail, one after the other; `None` is a successful read.
    pub read_errors: VecDeque<Option<ReadError>>,
    /// Interrupts, by vector, with or without a listener.
    pub interrupts: [u64; 8],
    /// A bit for each function that may master the bus.
    pub(crate) masters: u8,
    pub(crate) is_scattered: bool,
    /// Listeners of each function, by vector.
    pub(crate) events: [Vec<OwnedFd>; FUNCTIONS],
    mapped: Vec<Mapped>,
    maps: u64,
}

struct Mapped {
    id: u64,
    function: u8,
    region: Arc<MemoryRegion>,
    addresses: IovaMap,
}

impl HostMemory {
    /// Regions that the card reaches at present.
    #[must_use]
    pub fn mapped(&self) -> usize {
        self.mapped.len()
    }

    /// The next number of a mapping.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.maps += 1;
        self.maps
    }

    pub(crate) fn add(
        &mut self,
        id: u64,
        function: u8,
        region: Arc<MemoryRegion>,
        addresses: IovaMap,
    ) {
        self.mapped.push(Mapped {
            id,
            function,
            region,
            addresses,
        });
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.mapped.retain(|mapped| mapped.id != id);
    }

    fn reach(&mut self, function: u8, at: u64, len: usize) -> Option<NonNull<u8>> {
        let mut theirs = self
            .mapped
            .iter()
            .filter(|mapped| mapped.function == function);
        let found = theirs.find_map(|mapped| {
            let offset = mapped.addresses.offset_of(Iova(at), len).ok()?;
            mapped.region.ptr_at(offset, len).ok()
        });
        let found =
            found.filter(|_| self.masters.checked_shr(function.into()).unwrap_or(0) & 1 == 1);
        self.trespasses += u64::from(found.is_none());
        found
    }
}

impl Host for HostMemory {
    fn read(&mut self, function: u8, at: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let from = self
            .reach(function, at, out.len())
            .ok_or(ReadError::Unsupported)?;
        if let Some(Some(error)) = self.read_errors.pop_front() {
            return Err(error);
        }
        for (i, byte) in out.iter_mut().enumerate() {
            // SAFETY: `reach` has found that a region, which `self` keeps alive, has `out.len()`
            // bytes from there. Volatile, as a device reads: no reference to them is formed.
            *byte = unsafe { from.add(i).read_volatile() };
        }
        Ok(())
    }

    fn write(&mut self, function: u8, at: u64, bytes: &[u8]) {
        let Some(to) = self.reach(function, at, bytes.len()) else {
            return;
        };
        for (i, &byte) in bytes.iter().enumerate() {
            // SAFETY: `reach` has found that a region, which `self` keeps alive, has `bytes.len()`
            // bytes from there. Volatile, as a device writes.
            unsafe { to.add(i).write_volatile(byte) };
        }
    }

    fn interrupt(&mut self, function: u8, vector: u16) {
        let vector = usize::from(vector);
        if let Some(count) = self.interrupts.get_mut(vector) {
            *count += 1;
        }
        let listeners = self.events.get(usize::from(function));
        if let Some(event) = listeners.and_then(|events| events.get(vector)) {
            // A full counter is readable already.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }
}
