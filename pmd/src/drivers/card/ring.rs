//! A ring of descriptors in memory that the card reads.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::IntoBytes;

use super::layouts::TxDescriptor;
use super::nic::{GONE, Nic};
use super::registers::tx;
use crate::bus::{Bus, BusError, Device, DmaMapping};

/// Fewest and most descriptors of a ring.
pub(super) const LEAST: usize = 8;
pub(super) const MOST: usize = 1 << 16;

/// Words of 64 bits in a descriptor.
const WORDS: usize = size_of::<TxDescriptor>() / size_of::<u64>();

/// Descriptors of a ring that is to have at least so many.
pub(super) fn size_for(asked: usize) -> usize {
    asked.max(LEAST).next_power_of_two()
}

/// The ring of a port. What is in it is only ever written here: the card's word about it comes by
/// events.
pub(super) struct Ring<D: Device> {
    nic: Nic<D>,
    number: usize,
    /// First word of the region, which is page aligned.
    start: NonNull<AtomicU64>,
    /// A power of two.
    size: usize,
    _region: Arc<pollux_mempool::MemoryRegion>,
}

// SAFETY: the words belong to no thread, are there as long as the region, and are only accessed by
// atomics.
unsafe impl<D: Device> Send for Ring<D> {}

impl<D: Device> Ring<D> {
    /// Sets ring `number` up with `size` descriptors, a power of two from [`LEAST`] to [`MOST`],
    /// whose events go to `queue`. The mapping is to be kept as long as the card runs.
    ///
    /// # Errors
    /// Memory that cannot be had, or that the card cannot be given.
    pub(super) fn new(
        nic: &Nic<D>,
        number: usize,
        size: usize,
        queue: usize,
    ) -> Result<(Self, DmaMapping), BusError> {
        let refused = |error: &dyn ToString| nic.error(error.to_string());
        let bytes = size * size_of::<TxDescriptor>();
        let region = nic.device.memory().build(bytes);
        let region = region.map_err(|error| refused(&error))?;
        let region = Arc::new(region);
        let mapping = nic.device.map(&region, nic.grant)?;
        let base = mapping.addresses().iova(0, bytes);
        let base = base.map_err(|error| refused(&error))?;
        nic.write64(nic.at.tx + tx::RING_BASE.of(number), base.0);
        let ring = Self {
            nic: nic.clone(),
            number,
            start: region.as_ptr().cast(),
            size,
            _region: region,
        };
        ring.enable(queue);
        Ok((ring, mapping))
    }

    /// Begins anew with descriptor 0, of which none is posted.
    pub(super) fn enable(&self, queue: usize) {
        let size = self.size.trailing_zeros() << 8;
        let control = tx::RING_CTRL_ENABLE | size | (queue as u32) << 16;
        self.nic
            .bus
            .write32(self.nic.at.tx + tx::RING_PRODUCER.of(self.number), 0);
        self.nic
            .bus
            .write32(self.nic.at.tx + tx::RING_CTRL.of(self.number), control);
    }

    /// Descriptors in it.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Where number `at`, counted on over the laps, is in the ring.
    #[inline(always)]
    pub(super) fn slot(&self, at: u32) -> usize {
        at as usize & (self.size - 1)
    }

    /// Writes a descriptor, which the card reads when it is told of it.
    #[inline(always)]
    pub(super) fn write(&self, at: u32, descriptor: &TxDescriptor) {
        let first = self.slot(at) * WORDS;
        let (words, _) = descriptor.as_bytes().as_chunks();
        for (i, &word) in words.iter().enumerate() {
            // SAFETY: a slot is below the size, and the region has `size` descriptors of `WORDS`
            // words; it lives as long as `self`, and is accessed by atomics alone.
            let place = unsafe { self.start.add(first + i).as_ref() };
            place.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    /// Tells the card of all descriptors before number `at`: a write to a register is performed
    /// after all writes to memory before it.
    #[inline(always)]
    pub(super) fn ring_doorbell(&self, at: u32) {
        let doorbell = self.nic.at.tx + tx::RING_PRODUCER.of(self.number);
        self.nic.bus.write32(doorbell, at);
    }

    /// Has the card fetch nothing more, and waits until it has read all that it had fetched. Returns
    /// whether the card says so.
    pub(super) fn stop(&self) -> bool {
        let at = self.nic.at.tx;
        self.nic.bus.write32(at + tx::RING_CTRL.of(self.number), 0);
        let status = at + tx::RING_STATUS.of(self.number);
        let mut is_idle = false;
        self.nic.wait(|| match self.nic.bus.read32(status) {
            // A card that is gone says nothing.
            GONE => true,
            status => {
                is_idle = status & tx::RING_STATUS_IDLE != 0;
                is_idle
            }
        });
        is_idle
    }
}
