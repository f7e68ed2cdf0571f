//! What a running device reaches of our memory: its rings, and the pool's frames.

use std::sync::Arc;

use pollux_mempool::Mempool;

use super::descriptors::Ring;
use crate::bus::{BusError, Device, DmaMapping};
use crate::drivers::dma::DeviceAddresses;

/// Memory that a device reaches until this is dropped.
pub(crate) struct Memory {
    rings: DmaMapping,
    _frames: DmaMapping,
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
    ) -> Result<Self, BusError> {
        let region = device.memory().build((rings * Ring::bytes(size)).max(1));
        let region = region.map_err(|error| BusError::Device {
            device: device.name().into(),
            what: error.to_string(),
        })?;
        let rings = device.map(&Arc::new(region))?;
        let frames = device.map(pool.region())?;
        let mut addresses = DeviceAddresses::new();
        addresses.add(pool.region(), frames.addresses());
        Ok(Self {
            rings,
            _frames: frames,
            addresses,
            size,
        })
    }

    /// A ring by number.
    ///
    /// # Errors
    /// The device does not see it in one piece.
    pub(crate) fn ring<D: Device>(&self, device: &D, index: usize) -> Result<Ring, BusError> {
        let ring = Ring::new(&self.rings, index * Ring::bytes(self.size), self.size);
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
