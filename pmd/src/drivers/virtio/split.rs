//! Split ring in memory: virtio 1.2 section 2.7. Accesses of both sides.
//!
//! The other side may write any of it at any time, so all accesses are atomic, each value is read
//! once, and every index is reduced modulo the size of the ring, a power of two.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use super::areas::RingMemory;
use super::{Descriptor, Piece};

/// `VIRTQ_DESC_F_NEXT`: the chain continues.
pub(super) const NEXT: u16 = 1;
/// `VIRTQ_DESC_F_WRITE`: the device writes the buffer.
pub(super) const WRITE: u16 = 2;
/// `VIRTQ_DESC_F_INDIRECT`: the buffer is a table of descriptors.
pub(super) const INDIRECT: u16 = 4;
/// Set in the flags of the available or the used ring: notifications are disabled
/// (`VIRTQ_AVAIL_F_NO_INTERRUPT`, `VIRTQ_USED_F_NO_NOTIFY`).
const QUIET: u16 = 1;

/// Offsets of the flags, the index and the first entry of either ring.
const FLAGS: usize = 0;
const INDEX: usize = 2;
const ENTRIES: usize = 4;

/// The words of a descriptor.
#[inline(always)]
pub(super) fn words(piece: Piece, flags: u16, next: u16) -> [u64; 2] {
    let rest = u64::from(piece.len) | u64::from(flags) << 32 | u64::from(next) << 48;
    [piece.address, rest]
}

/// A split ring, for both sides.
pub(super) struct Split {
    memory: RingMemory,
    mask: u32,
}

impl Split {
    pub(super) fn new(memory: &RingMemory) -> Self {
        debug_assert!(!memory.is_packed());
        Self {
            memory: memory.clone(),
            mask: u32::from(memory.size()) - 1,
        }
    }

    #[inline(always)]
    pub(super) fn size(&self) -> u16 {
        (self.mask + 1) as u16
    }

    /// The slot of a free-running index. Indices are kept in 32 bits, of which the ring shows 16: a
    /// wider load behind a narrower store would wait until the store reaches the cache.
    #[inline(always)]
    pub(super) fn slot(&self, index: u32) -> u16 {
        (index & self.mask) as u16
    }

    #[inline(always)]
    fn descriptor(&self, slot: u16) -> &[AtomicU64; 2] {
        let at = self.memory.at().descriptors.cast::<[AtomicU64; 2]>();
        // SAFETY: the area has `mask + 1` descriptors of 16 bytes, aligned to 16, and is accessed
        // by atomics alone.
        unsafe { at.add(usize::from(self.slot(slot.into()))).as_ref() }
    }

    /// Writes a descriptor; the index publishes it.
    #[inline(always)]
    pub(super) fn write(&self, slot: u16, piece: Piece, flags: u16, next: u16) {
        for (to, word) in self.descriptor(slot).iter().zip(words(piece, flags, next)) {
            to.store(word, Relaxed);
        }
    }

    /// Reads a descriptor.
    #[inline(always)]
    pub(super) fn read(&self, slot: u16) -> Descriptor {
        let [address, rest] = self.descriptor(slot);
        Descriptor::of_split([address.load(Relaxed), rest.load(Relaxed)])
    }

    #[inline(always)]
    fn driver(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: all offsets here lie in the area of 4 + 2 * (mask + 1) bytes and are even; it is
        // aligned to 2 and accessed by atomics alone.
        unsafe { self.memory.at().driver.add(offset).cast().as_ref() }
    }

    #[inline(always)]
    fn device(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: as above, for the area of 4 + 8 * (mask + 1) bytes; only its head is accessed so.
        unsafe { self.memory.at().device.add(offset).cast().as_ref() }
    }

    #[inline(always)]
    fn used_entry(&self, index: u32) -> &[AtomicU32; 2] {
        let offset = ENTRIES + 8 * usize::from(self.slot(index));
        // SAFETY: inside the area of 4 + 8 * (mask + 1) bytes, which is aligned to 4 and accessed
        // by atomics alone.
        unsafe { self.memory.at().device.add(offset).cast().as_ref() }
    }

    /// Device: head of the chain that was made available at `index`.
    #[inline(always)]
    pub(super) fn available(&self, index: u32) -> &AtomicU16 {
        self.driver(ENTRIES + 2 * usize::from(self.slot(index)))
    }

    /// Driver: publishes the available entries before `index`.
    #[inline(always)]
    pub(super) fn publish_available(&self, index: u32) {
        // Release: pairs with the Acquire in `available_index` of the device's side; descriptors,
        // entries and the bytes of frames are written before.
        self.driver(INDEX).store(index as u16, Release);
    }

    /// Device: index up to which buffers are available.
    #[inline(always)]
    pub(super) fn available_index(&self) -> u16 {
        // Acquire: pairs with the Release in `publish_available` of the driver's side.
        self.driver(INDEX).load(Acquire)
    }

    /// Device: writes the used entry of the chain `id`, with `len` bytes written.
    #[inline(always)]
    pub(super) fn write_used(&self, index: u32, id: u16, len: u32) {
        let [head, written] = self.used_entry(index);
        head.store(u32::from(id), Relaxed);
        written.store(len, Relaxed);
    }

    /// Driver: the chain that was used at `index`, and the number of bytes written.
    #[inline(always)]
    pub(super) fn read_used(&self, index: u32) -> (u32, u32) {
        let [head, written] = self.used_entry(index);
        (head.load(Relaxed), written.load(Relaxed))
    }

    /// Device: publishes the used entries before `index`.
    #[inline(always)]
    pub(super) fn publish_used(&self, index: u32) {
        // Release: pairs with the Acquire in `used_index` of the driver's side; entries and the
        // bytes of received frames are written, and those of sent ones read, before.
        self.device(INDEX).store(index as u16, Release);
    }

    /// Driver: index up to which buffers are used.
    #[inline(always)]
    pub(super) fn used_index(&self) -> u16 {
        // Acquire: pairs with the Release in `publish_used` of the device's side.
        self.device(INDEX).load(Acquire)
    }

    /// Driver: disables notifications.
    pub(super) fn quiet_device(&self) {
        self.driver(FLAGS).store(QUIET, Relaxed);
    }

    /// Driver: enables notifications. A fence orders later reads of the ring after this.
    pub(super) fn listen_to_device(&self) {
        self.driver(FLAGS).store(0, Relaxed);
    }

    /// Device: disables notifications.
    pub(super) fn quiet_driver(&self) {
        self.device(FLAGS).store(QUIET, Relaxed);
    }

    /// Driver: whether the device requests notifications. A fence orders the read after the
    /// publication.
    #[inline(always)]
    pub(super) fn device_listens(&self) -> bool {
        self.device(FLAGS).load(Relaxed) & QUIET == 0
    }

    /// Device: whether the driver requests notifications. A fence orders the read after the
    /// publication.
    #[inline(always)]
    pub(super) fn driver_listens(&self) -> bool {
        self.driver(FLAGS).load(Relaxed) & QUIET == 0
    }
}
