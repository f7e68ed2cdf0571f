//! Where a device finds our buffers.

use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::IovaMap;
use pollux_mempool::region::MemoryRegion;

/// A stretch of our memory that the device sees in one piece.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: usize,
    len: usize,
    /// The device's address less ours.
    shift: u64,
}

impl Window {
    #[inline(always)]
    fn address(&self, at: usize, len: usize) -> Option<u64> {
        let into = at.wrapping_sub(self.start);
        (into < self.len && len <= self.len - into).then(|| (at as u64).wrapping_add(self.shift))
    }
}

/// The regions that a device can reach, and the address of each of their bytes for it. The regions
/// are kept alive.
#[derive(Clone, Default)]
pub(crate) struct DeviceAddresses {
    /// The window of most buffers; empty if there is none.
    first: Option<Window>,
    others: Vec<Window>,
    regions: Vec<Arc<MemoryRegion>>,
}

impl DeviceAddresses {
    /// A device that reaches nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Lets the device reach a region, at the addresses of `map`. Add the region that most buffers
    /// lie in first: it is looked at first.
    pub(crate) fn add(&mut self, region: &Arc<MemoryRegion>, map: &IovaMap) {
        let base = region.as_ptr().addr().get();
        for run in map.contiguous_runs() {
            let start = base + run.offset;
            let window = Window {
                start,
                len: run.len,
                shift: run.iova.0.wrapping_sub(start as u64),
            };
            match self.first {
                None => self.first = Some(window),
                Some(_) => self.others.push(window),
            }
        }
        self.regions.push(region.clone());
    }

    /// The device's address of `len` bytes at `at`; `None` if it does not reach all of them in one
    /// piece.
    #[inline(always)]
    pub(crate) fn of(&self, at: NonNull<u8>, len: usize) -> Option<u64> {
        let at = at.addr().get();
        match self.first.and_then(|window| window.address(at, len)) {
            None => self.in_others(at, len),
            found => found,
        }
    }

    #[cold]
    fn in_others(&self, at: usize, len: usize) -> Option<u64> {
        self.others
            .iter()
            .find_map(|window| window.address(at, len))
    }
}
