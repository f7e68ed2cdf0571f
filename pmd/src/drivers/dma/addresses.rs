//! Device addresses of packet buffers.

use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::IovaMap;
use pollux_mempool::region::MemoryRegion;

/// A memory range that is contiguous for the device.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: usize,
    len: usize,
    /// Device address minus virtual address.
    shift: u64,
}

impl Window {
    #[inline(always)]
    fn address(&self, at: usize, len: usize) -> Option<u64> {
        let into = at.wrapping_sub(self.start);
        (into < self.len && len <= self.len - into).then(|| (at as u64).wrapping_add(self.shift))
    }
}

/// A region, and the table of its device addresses.
#[derive(Clone)]
struct Mapped {
    start: usize,
    region: Arc<MemoryRegion>,
    map: IovaMap,
}

/// The regions that a device can access, and the device address of each of their bytes. Keeps the
/// regions alive.
///
/// A lookup takes the same time whether or not the device sees a region in one piece: an address in
/// the first piece of the first region costs a comparison, any other one look into the table of its
/// region. Regions are few: one for each pool.
#[derive(Clone, Default)]
pub struct DeviceAddresses {
    /// The window of most buffers; empty if there is none.
    first: Option<Window>,
    regions: Vec<Mapped>,
}

impl DeviceAddresses {
    /// A device without regions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a region that the device can access at the addresses of `map`. Add the region of most
    /// buffers first: it is checked first.
    pub fn add(&mut self, region: &Arc<MemoryRegion>, map: &IovaMap) {
        let start = region.as_ptr().addr().get();
        if let (None, Some(run)) = (self.first, map.contiguous_runs().first()) {
            self.first = Some(Window {
                start,
                len: run.len,
                shift: run.iova.0.wrapping_sub(start as u64),
            });
        }
        self.regions.push(Mapped {
            start,
            region: region.clone(),
            map: map.clone(),
        });
    }

    /// Size of the smallest page of its regions.
    pub(crate) fn page_size(&self) -> usize {
        let pages = self.regions.iter().map(|mapped| mapped.region.page_size());
        pages.min().unwrap_or(4096)
    }

    /// The device address of `len` bytes at `at`; `None` if the device cannot access all of them
    /// contiguously.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, at: NonNull<u8>, len: usize) -> Option<u64> {
        let at = at.addr().get();
        match self.first.and_then(|window| window.address(at, len)) {
            None => self.in_tables(at, len),
            found => found,
        }
    }

    /// Out of line, so that the callers' loops stay short.
    #[inline(never)]
    fn in_tables(&self, at: usize, len: usize) -> Option<u64> {
        let regions = &self.regions;
        let mapped = regions
            .iter()
            .find(|mapped| at.wrapping_sub(mapped.start) < mapped.region.len())?;
        mapped.map.find(at - mapped.start, len).map(|iova| iova.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_mempool::Iova;
    use pollux_mempool::region::PageSize;

    use super::*;

    const PAGE: usize = 4096;

    fn region() -> Arc<MemoryRegion> {
        let region = MemoryRegion::builder(8 * PAGE).pages(PageSize::Kib4);
        Arc::new(region.build().unwrap())
    }

    #[test]
    fn bytes_of_each_run_of_each_region_have_the_address_of_its_map() {
        // Runs of one, three and four pages; one run; and pages that all lie apart.
        let pages = |list: [u64; 8]| list.map(|page| Iova(page * PAGE as u64));
        let regions = [region(), region(), region()];
        let maps = [
            IovaMap::paged(&regions[0], pages([9, 20, 21, 22, 1, 2, 3, 4])).unwrap(),
            IovaMap::offset(&regions[1], 1 << 40).unwrap(),
            IovaMap::paged(&regions[2], pages([7, 5, 3, 1, 107, 105, 103, 101])).unwrap(),
        ];
        assert!(IovaMap::paged(&regions[0], [Iova(0)]).is_err());
        let mut addresses = DeviceAddresses::new();
        for (region, map) in regions.iter().zip(&maps) {
            addresses.add(region, map);
        }
        for (region, map) in regions.iter().zip(&maps) {
            for offset in (0..region.len()).step_by(PAGE / 4) {
                let at = region.ptr_at(offset, 1).unwrap();
                for len in [1, PAGE / 4, PAGE, PAGE + 1, 3 * PAGE, 8 * PAGE + 1] {
                    let expected = map.iova(offset, len).ok().map(|iova| iova.0);
                    assert_eq!(addresses.of(at, len), expected, "{offset} {len}");
                }
            }
            let outside = region.as_ptr().addr().get() - 1;
            let outside = NonNull::without_provenance(outside.try_into().unwrap());
            assert_eq!(addresses.of(outside, 2), None);
        }
    }
}
