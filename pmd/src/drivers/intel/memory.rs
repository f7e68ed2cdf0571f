//! What a running device reaches of our memory: its rings, and the pool's frames.

use std::sync::Arc;

use pollux_mempool::{IovaMap, MemoryRegion, Mempool};

use super::descriptors::Ring;
use crate::bus::{BusError, Device};
use crate::drivers::dma::DeviceAddresses;
use crate::grant::MemoryGrant;
use crate::quarantine::Quarantine;

/// Memory that a device reaches until the quarantine that it was lent by is settled.
pub(crate) struct Memory {
    rings: Arc<MemoryRegion>,
    /// Where the device sees it.
    rings_at: IovaMap,
    addresses: DeviceAddresses,
    size: usize,
}

impl Memory {
    /// Memory for so many rings of `size` descriptors, which is a power of two, and the pool's.
    ///
    /// # Errors
    /// Memory that cannot be had, or that the device cannot be given.
    pub(crate) fn new<D: Device>(
        device: &D,
        pool: &Mempool,
        rings: usize,
        size: usize,
        (grant, quarantine): (MemoryGrant, &Quarantine),
    ) -> Result<Self, BusError> {
        let region = device.memory().build((rings * Ring::bytes(size)).max(1));
        let region = region.map_err(|error| BusError::Device {
            device: device.name().into(),
            what: error.to_string(),
        })?;
        let rings = Arc::new(region);
        let mapping = device.map(&rings, grant)?;
        let rings_at = mapping.addresses().clone();
        quarantine.lend(mapping);
        let mapping = device.map(pool.region(), grant)?;
        let mut addresses = DeviceAddresses::new();
        addresses.add(pool.region(), mapping.addresses());
        quarantine.lend(mapping);
        Ok(Self {
            rings,
            rings_at,
            addresses,
            size,
        })
    }

    /// A ring by number.
    ///
    /// # Errors
    /// The device does not see it in one piece.
    pub(crate) fn ring<D: Device>(&self, device: &D, index: usize) -> Result<Ring, BusError> {
        let offset = index * Ring::bytes(self.size);
        let ring = Ring::new(&self.rings, &self.rings_at, offset, self.size);
        ring.ok_or_else(|| BusError::Device {
            device: device.name().into(),
            what: "a ring is not in one piece for it; use larger pages or an IOMMU".into(),
        })
    }

    /// Where the device finds the pool's buffers.
    pub(crate) fn addresses(&self) -> DeviceAddresses {
        self.addresses.clone()
    }
}
