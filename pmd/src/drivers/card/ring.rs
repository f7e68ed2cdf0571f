//! Transmit ring: descriptors in memory that the card reads.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layouts::TxDescriptor;
use super::nic::{GONE, Nic};
use super::registers::tx;
use crate::bus::{Bus, BusError, Device};
use crate::drivers::dma::DmaBuffer;
use crate::quarantine::Quarantine;

/// Minimum and maximum number of descriptors of a ring.
pub(super) const LEAST: usize = 8;
pub(super) const MOST: usize = 1 << 16;

/// 64-bit words in a descriptor.
const WORDS: usize = size_of::<TxDescriptor>() / size_of::<u64>();

/// Ring size for at least so many descriptors.
pub(super) fn size_for(asked: usize) -> usize {
    asked.max(LEAST).next_power_of_two()
}

/// The ring of a port. Only this driver writes it; the card reports by events.
pub(super) struct Ring<D: Device> {
    nic: Nic<D>,
    number: usize,
    /// First word of the region, which is page aligned.
    start: NonNull<AtomicU64>,
    /// A power of two.
    size: usize,
    _memory: DmaBuffer,
}

// SAFETY: the words belong to no thread, exist as long as the region, and are only accessed by
// atomics.
unsafe impl<D: Device> Send for Ring<D> {}

impl<D: Device> Ring<D> {
    /// Sets up ring `number` of the function with `size` descriptors, a power of two from [`LEAST`] to [`MOST`],
    /// whose events go to `queue`.
    ///
    /// # Errors
    /// Memory that is not available, or that the card cannot access.
    pub(super) fn new(
        nic: &Nic<D>,
        number: usize,
        size: usize,
        queue: usize,
        quarantine: &Quarantine,
    ) -> Result<Self, BusError> {
        let bytes = size * size_of::<TxDescriptor>();
        let lent = (nic.grant, quarantine);
        let memory = DmaBuffer::alloc(&*nic.device, &nic.device.memory(), bytes, lent)?;
        let base = nic.base("transmit ring", memory.addresses(), bytes)?;
        let number = nic.ring(number);
        nic.write64(nic.at.tx + tx::RING_BASE.of(number), base);
        let ring = Self {
            nic: nic.clone(),
            number,
            start: memory.region().as_ptr().cast(),
            size,
            _memory: memory,
        };
        ring.enable(queue);
        Ok(ring)
    }

    /// Restarts at descriptor 0, with none posted.
    pub(super) fn enable(&self, queue: usize) {
        let size = self.size.trailing_zeros() << 8;
        let control = tx::RING_CTRL_ENABLE | size | (self.nic.queue(queue) as u32) << 16;
        self.nic
            .bus
            .write32(self.nic.at.tx + tx::RING_PRODUCER.of(self.number), 0);
        self.nic
            .bus
            .write32(self.nic.at.tx + tx::RING_CTRL.of(self.number), control);
    }

    /// Number of descriptors.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Slot of descriptor number `at`, which counts over all laps.
    #[inline(always)]
    pub(super) fn slot(&self, at: u32) -> usize {
        at as usize & (self.size - 1)
    }

    /// Writes a descriptor; the card reads it after the doorbell.
    #[inline(always)]
    pub(super) fn write(&self, at: u32, descriptor: &TxDescriptor) {
        self.write_slot(at, zerocopy::transmute_ref!(descriptor));
    }

    /// Writes data of a packet in the place of a descriptor.
    #[inline(always)]
    pub(super) fn write_slot(&self, at: u32, bytes: &[u8; size_of::<TxDescriptor>()]) {
        let first = self.slot(at) * WORDS;
        let (words, _) = bytes.as_chunks();
        for (i, &word) in words.iter().enumerate() {
            // SAFETY: a slot is below the size, and the region has `size` descriptors of `WORDS`
            // words; it lives as long as `self`, and is accessed by atomics alone.
            let place = unsafe { self.start.add(first + i).as_ref() };
            place.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    /// Rings the doorbell for all descriptors before number `at`: a write to a register is
    /// performed after all earlier writes to memory.
    #[inline(always)]
    pub(super) fn ring_doorbell(&self, at: u32) {
        let doorbell = self.nic.at.tx + tx::RING_PRODUCER.of(self.number);
        self.nic.bus.write32(doorbell, at);
    }

    /// Disables the ring, and waits until the card has read all that it had fetched. Returns
    /// whether the card confirms that.
    pub(super) fn stop(&self) -> bool {
        let at = self.nic.at.tx;
        self.nic.bus.write32(at + tx::RING_CTRL.of(self.number), 0);
        let status = at + tx::RING_STATUS.of(self.number);
        let mut is_idle = false;
        self.nic.wait(|| match self.nic.bus.read32(status) {
            // A card that is gone confirms nothing.
            GONE => true,
            status => {
                is_idle = status & tx::RING_STATUS_IDLE != 0;
                is_idle
            }
        });
        is_idle
    }
}
