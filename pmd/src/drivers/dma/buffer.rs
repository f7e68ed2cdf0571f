//! DMA buffers: memory that is not freed before the device is proven to have released it.

use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::{IovaMap, MemoryRegion};

use crate::bus::{BusError, Device, DmaMapping, DmaMemory};
use crate::event::RegionOptions;
use crate::grant::MemoryGrant;
use crate::quarantine::Quarantine;

/// Memory that a device accesses by its own addresses.
///
/// Each buffer belongs to a [`Quarantine`], which owns the mapping: device access and memory last
/// until the quarantine is settled by a proof that the device has released it. A driver that drops
/// or forgets this value earlier frees nothing.
pub struct DmaBuffer {
    region: Arc<MemoryRegion>,
    addresses: IovaMap,
    /// For programs that drop the port's quarantine first: memory that a queue still uses keeps its
    /// owner.
    _quarantine: Quarantine,
}

impl DmaBuffer {
    /// Allocates `len` bytes of zeroed memory.
    ///
    /// # Errors
    /// The memory is not available, or cannot be mapped for the device.
    pub fn alloc<D: Device>(
        device: &D,
        memory: &RegionOptions,
        len: usize,
        lent: (MemoryGrant, &Quarantine),
    ) -> Result<Self, BusError> {
        Self::share(device, &build(device, memory, len)?, lent)
    }

    /// Allocates `len` bytes of zeroed memory, a power of two, whose device address is a multiple of
    /// `len`. Returns where they begin in the buffer, which has twice the length if regions do not
    /// begin at such addresses.
    ///
    /// # Errors
    /// As for [`alloc`](Self::alloc), or the device does not see the memory contiguously.
    pub fn alloc_aligned<D: Device>(
        device: &D,
        memory: &RegionOptions,
        len: usize,
        (grant, quarantine): (MemoryGrant, &Quarantine),
    ) -> Result<(Self, usize), BusError> {
        let error = |what| BusError::Device {
            device: device.name().into(),
            what,
        };
        let twice = len.checked_mul(2).filter(|_| len.is_power_of_two());
        let twice = twice.ok_or_else(|| error(format!("{len} bytes are not a power of two")))?;
        let mask = len as u64 - 1;
        for total in [len, twice] {
            let region = build(device, memory, total)?;
            let mapping = device.map(&region, grant)?;
            let at = |offset| mapping.addresses().iova(offset, len);
            let first = mapping.addresses().iova(0, 1);
            let offset = first.map_or(0, |iova| (iova.0.wrapping_neg() & mask) as usize);
            if at(offset).is_ok_and(|iova| iova.0 & mask == 0) {
                return Ok((Self::lend(mapping, region, quarantine), offset));
            }
            // The device was not given the address: the mapping ends here.
        }
        Err(error(format!(
            "no {len} bytes of memory are in one piece for it; use larger pages or an IOMMU"
        )))
    }

    /// Maps memory that has other users: that of a pool, or of a queue.
    ///
    /// # Errors
    /// The memory cannot be mapped for the device.
    pub fn share<D: DmaMemory>(
        device: &D,
        region: &Arc<MemoryRegion>,
        (grant, quarantine): (MemoryGrant, &Quarantine),
    ) -> Result<Self, BusError> {
        let mapping = device.map(region, grant)?;
        Ok(Self::lend(mapping, region.clone(), quarantine))
    }

    /// The memory is `region`, whichever one the mapping names.
    fn lend(mapping: DmaMapping, region: Arc<MemoryRegion>, quarantine: &Quarantine) -> Self {
        let addresses = mapping.addresses().clone();
        quarantine.lend(mapping);
        Self {
            region,
            addresses,
            _quarantine: quarantine.clone(),
        }
    }

    /// The memory.
    #[must_use]
    pub fn region(&self) -> &Arc<MemoryRegion> {
        &self.region
    }

    /// Addresses at which the device sees it.
    #[must_use]
    pub fn addresses(&self) -> &IovaMap {
        &self.addresses
    }

    /// `len` bytes at an offset: their address for this process and for the device; `None` if they
    /// are out of bounds, or not contiguous for the device.
    #[must_use]
    pub fn piece(&self, offset: usize, len: usize) -> Option<(NonNull<u8>, u64)> {
        let at = self.region.ptr_at(offset, len).ok()?;
        Some((at, self.addresses.iova(offset, len).ok()?.0))
    }
}

fn build<D: Device>(
    device: &D,
    memory: &RegionOptions,
    len: usize,
) -> Result<Arc<MemoryRegion>, BusError> {
    let region = memory.build(len.max(1)).map_err(|error| BusError::Device {
        device: device.name().into(),
        what: error.to_string(),
    })?;
    Ok(Arc::new(region))
}
