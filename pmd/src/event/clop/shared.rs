//! Ownership state of the buffers of a CLOP, shared by writer and reader.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_mempool::region::{MemoryRegion, RegionError};

use super::config::ClopConfig;
use super::format::Framing;

/// The buffers and the ownership state of each.
pub(super) struct Shared {
    /// First byte of the first buffer, in the region.
    start: NonNull<u8>,
    _region: Arc<MemoryRegion>,
    /// For each buffer: 2 x lap while the writer owns it in that lap of the list, 2 x lap + 1 while
    /// the reader does. An event is plain data that can be forged; exclusive access relies on these
    /// words alone.
    pub(super) turns: Box<[AtomicU64]>,
    pub(super) size: usize,
    pub(super) stream: u16,
    pub(super) framing: Framing,
}

// SAFETY: the buffers belong to no thread, and exist as long as the region; `turns` determines
// which side may access which buffer.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// A list whose buffers, all owned by the writer, begin `offset` bytes into a region.
    pub(super) fn new(
        config: &ClopConfig,
        region: Arc<MemoryRegion>,
        offset: usize,
    ) -> Result<Self, RegionError> {
        Ok(Self {
            start: region.ptr_at(offset, config.bytes())?,
            _region: region,
            turns: (0..config.buffers).map(|_| AtomicU64::new(0)).collect(),
            size: config.size,
            stream: config.stream,
            framing: config.framing,
        })
    }

    /// First byte of a buffer. `index` is below the number of buffers.
    #[inline]
    pub(super) fn buffer(&self, index: usize) -> *mut u8 {
        debug_assert!(index < self.turns.len());
        // SAFETY: the region has `turns.len() * size` bytes from `start` on (checked in `new`).
        unsafe { self.start.as_ptr().add(index * self.size) }
    }

    /// Whether the writer may use the buffer in this lap.
    #[inline]
    pub(super) fn is_writers(&self, at: Place) -> bool {
        // Acquire pairs with the Release in `to_writer`: the reader's accesses have ended.
        self.turns[at.index].load(Ordering::Acquire) == at.lap << 1
    }

    /// Gives the buffer to the reader.
    #[inline]
    pub(super) fn to_reader(&self, at: Place) {
        // Release pairs with the Acquire in `is_readers`: the payloads have been written.
        self.turns[at.index].store(at.lap << 1 | 1, Ordering::Release);
    }

    /// Whether the reader may use the buffer in this lap.
    #[inline]
    pub(super) fn is_readers(&self, at: Place) -> bool {
        // Acquire pairs with the Release in `to_reader`: the payloads are readable.
        self.turns[at.index].load(Ordering::Acquire) == at.lap << 1 | 1
    }

    /// Whether the reader, which owned the buffer in this lap, has returned it.
    #[inline]
    pub(super) fn is_returned(&self, at: Place) -> bool {
        self.is_writers(Place {
            lap: at.lap + 1,
            ..at
        })
    }

    /// Returns the buffer to the writer, for its next lap.
    #[inline]
    pub(super) fn to_writer(&self, at: Place) {
        // Release pairs with the Acquire in `is_writers`: the reader's accesses have ended.
        self.turns[at.index].store((at.lap + 1) << 1, Ordering::Release);
    }
}

/// A position in the endless sequence of buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Buffers before this one, wrapping.
    pub(super) serial: u32,
    /// Number of the buffer in the list.
    pub(super) index: usize,
    /// Completed passes over the list.
    pub(super) lap: u64,
}

impl Place {
    #[inline]
    pub(super) fn next(self, buffers: usize) -> Self {
        let serial = self.serial.wrapping_add(1);
        if self.index + 1 < buffers {
            Self {
                serial,
                index: self.index + 1,
                lap: self.lap,
            }
        } else {
            Self {
                serial,
                index: 0,
                lap: self.lap + 1,
            }
        }
    }
}
