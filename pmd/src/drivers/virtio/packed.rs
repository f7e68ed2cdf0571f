//! Packed ring in memory: virtio 1.2 section 2.8. Accesses of both sides.
//!
//! The other side may write any of it at any time, so all accesses are atomic and each value is
//! read once. A descriptor's length, id and flags are adjacent and accessed as one word: one store
//! publishes them, so flags are never visible without the rest.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU16, AtomicU64};

use super::Descriptor;
use super::areas::RingMemory;

/// `VIRTQ_DESC_F_AVAIL` and `VIRTQ_DESC_F_USED`: available, and used, in a lap with this wrap
/// counter (section 2.8.1).
const AVAILABLE: u16 = 1 << 7;
const USED: u16 = 1 << 15;

/// Event suppression structures (section 2.8.10): offset of the flags, and
/// `RING_EVENT_FLAGS_DISABLE`.
const EVENT_FLAGS: usize = 2;
const QUIET: u16 = 1;

/// A position in a ring, with the wrap counter of the lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Less than the size of its ring.
    slot: u32,
    wrap: bool,
}

impl Position {
    /// Start of a fresh ring: the first slot, with the wrap counter set.
    pub(super) const START: Self = Self {
        slot: 0,
        wrap: true,
    };

    /// The position in vhost's format: the wrap counter is bit 15.
    pub(super) fn base(self) -> u16 {
        self.slot as u16 | u16::from(self.wrap) << 15
    }
}

/// A packed ring, for both sides.
pub(super) struct Packed {
    memory: RingMemory,
    size: u32,
}

impl Packed {
    pub(super) fn new(memory: &RingMemory) -> Self {
        debug_assert!(memory.is_packed());
        Self {
            memory: memory.clone(),
            size: memory.size().into(),
        }
    }

    #[inline(always)]
    pub(super) fn size(&self) -> u16 {
        self.size as u16
    }

    /// The position in vhost's format; `None` if the ring has no such slot.
    pub(super) fn position(&self, base: u16) -> Option<Position> {
        let slot = u32::from(base & 0x7fff);
        (slot < self.size).then_some(Position {
            slot,
            wrap: base >> 15 == 1,
        })
    }

    /// The position `n` slots further on, at most a whole lap.
    #[inline(always)]
    pub(super) fn after(&self, at: Position, n: u16) -> Position {
        let slot = at.slot + u32::from(n);
        debug_assert!(slot < 2 * self.size);
        if slot < self.size {
            Position { slot, ..at }
        } else {
            Position {
                slot: slot - self.size,
                wrap: !at.wrap,
            }
        }
    }

    #[inline(always)]
    fn descriptor(&self, at: Position) -> &[AtomicU64; 2] {
        let base = self.memory.at().descriptors.cast::<[AtomicU64; 2]>();
        // A position of another ring could lie outside this one.
        let slot = at.slot.min(self.size - 1);
        // SAFETY: the area has `size` descriptors of 16 bytes, aligned to 16, and is accessed by
        // atomics alone.
        unsafe { base.add(slot as usize).as_ref() }
    }

    /// Driver: writes the address of a buffer; the next two functions make it available.
    #[inline(always)]
    pub(super) fn write_address(&self, at: Position, address: u64) {
        self.descriptor(at)[0].store(address, Relaxed);
    }

    /// Driver: the word that makes a descriptor available.
    #[inline(always)]
    pub(super) fn available_word(at: Position, len: u32, id: u16, flags: u16) -> u64 {
        let lap = if at.wrap { AVAILABLE } else { USED };
        u64::from(len) | u64::from(id) << 32 | u64::from(flags | lap) << 48
    }

    /// Device: the word that makes a descriptor used.
    #[inline(always)]
    pub(super) fn used_word(at: Position, len: u32, id: u16) -> u64 {
        let lap = if at.wrap { AVAILABLE | USED } else { 0 };
        u64::from(len) | u64::from(id) << 32 | u64::from(lap) << 48
    }

    /// Passes a descriptor to the other side, together with all descriptors behind it that were
    /// written before.
    #[inline(always)]
    pub(super) fn publish(&self, at: Position, word: u64) {
        // Release: pairs with the Acquire in `used` or `available` of the other side; the address,
        // descriptors behind this one, and the bytes of frames are written before.
        self.descriptor(at)[1].store(word, Release);
    }

    /// Driver: id and length of a used buffer at this position, if any.
    #[inline(always)]
    pub(super) fn used(&self, at: Position) -> Option<(u16, u32)> {
        // Acquire: pairs with the Release in `publish` of the device's side.
        let word = self.descriptor(at)[1].load(Acquire);
        let lap = (word >> 48) as u16 & (AVAILABLE | USED);
        let expected = if at.wrap { AVAILABLE | USED } else { 0 };
        (lap == expected).then_some(((word >> 32) as u16, word as u32))
    }

    /// Device: the available descriptor at this position, if any.
    #[inline(always)]
    pub(super) fn available(&self, at: Position) -> Option<Descriptor> {
        let descriptor = self.rest(at);
        let expected = if at.wrap { AVAILABLE } else { USED };
        (descriptor.flags & (AVAILABLE | USED) == expected).then_some(descriptor)
    }

    /// Device: a descriptor behind the head of a chain, which is available with the head.
    #[inline(always)]
    pub(super) fn rest(&self, at: Position) -> Descriptor {
        let [address, rest] = self.descriptor(at);
        // Acquire: pairs with the Release in `publish` of the driver's side.
        let word = rest.load(Acquire);
        Descriptor::of_packed([address.load(Relaxed), word])
    }

    fn driver_events(&self) -> &AtomicU16 {
        // SAFETY: inside the area of 4 bytes, which is aligned to 4 and accessed by atomics alone.
        unsafe { self.memory.at().driver.add(EVENT_FLAGS).cast().as_ref() }
    }

    fn device_events(&self) -> &AtomicU16 {
        // SAFETY: as above.
        unsafe { self.memory.at().device.add(EVENT_FLAGS).cast().as_ref() }
    }

    /// Driver: disables notifications.
    pub(super) fn quiet_device(&self) {
        self.driver_events().store(QUIET, Relaxed);
    }

    /// Driver: enables notifications. A fence orders later reads of the ring after this.
    pub(super) fn listen_to_device(&self) {
        self.driver_events().store(0, Relaxed);
    }

    /// Device: disables notifications.
    pub(super) fn quiet_driver(&self) {
        self.device_events().store(QUIET, Relaxed);
    }

    /// Driver: whether the device requests notifications. A fence orders the read after the
    /// publication.
    pub(super) fn device_listens(&self) -> bool {
        self.device_events().load(Relaxed) != QUIET
    }

    /// Device: whether the driver requests notifications. A fence orders the read after the
    /// publication.
    pub(super) fn driver_listens(&self) -> bool {
        self.driver_events().load(Relaxed) != QUIET
    }
}
