//! Memory of a running device: its rings, and the frames of the pools.

use pollux_mempool::Mempool;

use super::descriptors::{Ring, ring_size};
use crate::bus::{BusError, Device};
use crate::drivers::dma::{DeviceAddresses, DmaBuffer};
use crate::event::RegionOptions;
use crate::grant::MemoryGrant;
use crate::port::PortConfig;
use crate::quarantine::Quarantine;

/// Memory that a device reaches until the quarantine that it was lent by is settled.
pub(crate) struct Memory {
    /// Of each NUMA node one, with the rings that are to be on it.
    rings: Vec<DmaBuffer>,
    /// By ring: its buffer, its offset there, and its descriptors.
    places: Vec<Place>,
    addresses: DeviceAddresses,
}

struct Place {
    buffer: usize,
    offset: usize,
    size: usize,
}

impl Memory {
    /// Memory for the rings of the receive queues, those of the transmit queues behind them, and the
    /// pools.
    ///
    /// # Errors
    /// Memory that cannot be had, or that the device cannot be given.
    pub(crate) fn new<D: Device>(
        device: &D,
        config: &PortConfig,
        lent: (MemoryGrant, &Quarantine),
    ) -> Result<Self, BusError> {
        let own = device.memory();
        // Of each node, how many bytes its rings need.
        let mut nodes: Vec<(Option<u32>, usize)> = Vec::new();
        let mut places = Vec::new();
        for (size, node) in config.rings().map(ring_size).zip(config.numa_nodes()) {
            let node = node.or(own.numa_node);
            let buffer = nodes.iter().position(|(known, _)| *known == node);
            let buffer = buffer.unwrap_or_else(|| {
                nodes.push((node, 0));
                nodes.len() - 1
            });
            let offset = nodes[buffer].1;
            nodes[buffer].1 += Ring::bytes(size);
            places.push(Place {
                buffer,
                offset,
                size,
            });
        }
        let rings = nodes.into_iter().map(|(numa_node, len)| {
            let memory = RegionOptions { numa_node, ..own };
            DmaBuffer::alloc(device, &memory, len, lent)
        });
        let rings = rings.collect::<Result<_, _>>()?;
        let mut addresses = DeviceAddresses::new();
        for pool in config.pools().into_iter().map(Mempool::region) {
            let frames = DmaBuffer::share(device, pool, lent)?;
            addresses.add(frames.region(), frames.addresses());
        }
        Ok(Self {
            rings,
            places,
            addresses,
        })
    }

    /// A ring by number.
    ///
    /// # Errors
    /// The device does not see it in one piece.
    pub(crate) fn ring<D: Device>(&self, device: &D, index: usize) -> Result<Ring, BusError> {
        let place = self.places.get(index);
        let ring = place.and_then(|place| {
            let buffer = self.rings.get(place.buffer)?;
            Ring::new(buffer, place.offset, place.size)
        });
        ring.ok_or_else(|| BusError::Device {
            device: device.name().into(),
            what: "a ring is not in one piece for it; use larger pages or an IOMMU".into(),
        })
    }

    /// Where the device finds the pools' buffers.
    pub(crate) fn addresses(&self) -> DeviceAddresses {
        self.addresses.clone()
    }
}
