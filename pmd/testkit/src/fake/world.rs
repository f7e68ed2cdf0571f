//! What a fake device reaches of the world outside it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_mempool::{Iova, IovaMap, MemoryRegion};
use pollux_pmd::bus::BUS_MASTER;
use pollux_pmd::event::RegionOptions;

/// What a model can reach of the world outside it.
#[derive(Default)]
pub struct World {
    /// Nanoseconds since it was made.
    pub now: u64,
    /// What memory that is made for the device is to be like.
    pub memory: RegionOptions,
    /// Accesses that an IOMMU would have refused: outside all mappings, or without the right to
    /// master the bus.
    pub faults: u64,
    /// No IOMMU holds the device back: what was mapped for it once it reaches from then on.
    pub no_iommu: bool,
    /// The device [counts in real time](pollux_pmd::bus::Device::counts_in_real_time).
    pub real_time: bool,
    /// The device masters the bus even if its command register forbids it.
    pub stubborn: bool,
    pub(super) mapped: Vec<Mapped>,
    pub(super) next: u64,
    /// Bytes of the regions that have been mapped at narrow addresses.
    pub(super) narrow_bytes: u64,
    pub(super) command: u32,
    pub(super) interrupts: Vec<OwnedFd>,
}

pub(super) struct Mapped {
    pub(super) id: u64,
    pub(super) region: Arc<MemoryRegion>,
    pub(super) addresses: IovaMap,
}

impl World {
    /// Reads memory at a device's address; false, and nothing read, where it may not.
    pub fn read(&mut self, at: u64, out: &mut [u8]) -> bool {
        let Some(from) = self.reach(at, out.len()) else {
            return false;
        };
        for (i, byte) in out.iter_mut().enumerate() {
            // SAFETY: `reach` has found that the region, which `self` keeps alive, has `out.len()`
            // bytes from there. Volatile, as a device reads: no reference to them is formed.
            *byte = unsafe { from.add(i).read_volatile() };
        }
        true
    }

    /// Writes memory at a device's address; false, and nothing written, where it may not.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> bool {
        let Some(to) = self.reach(at, bytes.len()) else {
            return false;
        };
        for (i, &byte) in bytes.iter().enumerate() {
            // SAFETY: `reach` has found that the region, which `self` keeps alive, has
            // `bytes.len()` bytes from there. Volatile, as a device writes.
            unsafe { to.add(i).write_volatile(byte) };
        }
        true
    }

    /// Signals a vector; nothing happens where it is not switched on.
    pub fn interrupt(&mut self, vector: u16) {
        if let Some(event) = self.interrupts.get(usize::from(vector)) {
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    /// The stretches that the device reaches, as (its address, bytes): for an adversary to choose
    /// from.
    #[must_use]
    pub fn reachable(&self) -> Vec<(u64, usize)> {
        self.stretches(|_| true)
    }

    /// Those outside a region.
    #[must_use]
    pub fn reachable_beside(&self, region: &MemoryRegion) -> Vec<(u64, usize)> {
        self.stretches(|mapped| mapped.as_ptr() != region.as_ptr())
    }

    fn stretches(&self, wanted: impl Fn(&MemoryRegion) -> bool) -> Vec<(u64, usize)> {
        let mapped = self.mapped.iter().filter(|mapped| wanted(&mapped.region));
        let runs = mapped.flat_map(|mapped| mapped.addresses.contiguous_runs());
        runs.map(|run| (run.iova.0, run.len)).collect()
    }

    /// Puts another word in the place of the one at a device's address, a multiple of eight, while
    /// the driver may be at it: what of the old one is in `mask`, with `bits` turned. Nothing
    /// happens where it may not.
    pub fn change(&mut self, at: u64, mask: u64, bits: u64) {
        let word = self.reach(at, 8).map(<*mut u8>::cast::<u64>);
        if let Some(word) = word.filter(|word| word.is_aligned()) {
            // SAFETY: `reach` has found that the region, which `self` keeps alive, has eight bytes
            // there, and they are aligned. All concurrent accesses are atomic, as those of drivers
            // to their rings are: of such words, but for the smaller fields of virtio's. What two
            // atomics of different sizes do to each other Rust leaves open; LLVM, and the
            // processor, take each byte by itself.
            let word = unsafe { AtomicU64::from_ptr(word) };
            let old = word.load(Ordering::Relaxed);
            word.store(old & mask ^ bits, Ordering::Relaxed);
        }
    }

    /// What the command register holds.
    pub(super) fn command(&self) -> u32 {
        self.command | if self.stubborn { BUS_MASTER } else { 0 }
    }

    fn reach(&mut self, at: u64, len: usize) -> Option<*mut u8> {
        let found = self.mapped.iter().find_map(|mapped| {
            let offset = mapped.addresses.offset_of(Iova(at), len).ok()?;
            mapped.region.ptr_at(offset, len).ok()
        });
        let found = found.filter(|_| self.command() & BUS_MASTER != 0);
        self.faults += u64::from(found.is_none());
        found.map(std::ptr::NonNull::as_ptr)
    }
}
