//! Circular list of persistent receive buffers, after NaNet's CLOP.
//!
//! Payloads of one stream are put into the buffers in turn. A buffer that is full, or whose oldest
//! payload has waited for the timeout, is announced by an event and belongs to the reader from
//! then until it is dropped, in any order; a stream that comes round to a buffer which is still
//! with the reader refuses payloads until it is back. Nothing is allocated after the start.

mod device;
mod format;
mod reader;
mod writer;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_mempool::region::{MemoryRegion, RegionError};
use pollux_mempool::time::Ns;

use super::RegionOptions;
use crate::clock::Clock;
pub(crate) use device::DeviceClop;
pub use format::{
    ClopEvent, ClopPayload, ClopReason, ClopRecord, Framing, MalformedRecord, Payloads,
};
pub use reader::{BadEvent, ClopBuffer, ClopReader};
pub use writer::{ClopWriter, PayloadInfo, Refused};

/// Most buffers in a list.
const MAX_BUFFERS: usize = 1 << 16;

/// Buffers begin at cache lines, so that the two sides never share one.
const LINE: usize = 64;

/// Largest buffer, in bytes.
const MAX_SIZE: usize = 1 << 30;

/// Why a list of buffers could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClopError {
    /// The number of buffers is out of bounds.
    #[error("a list of {0} buffers: it must have 1 to {MAX_BUFFERS}")]
    Buffers(usize),
    /// The size of a buffer is out of bounds or no multiple of a cache line.
    #[error(
        "buffers of {0} B: the size must be a multiple of {LINE} B from {LINE} to {MAX_SIZE} B"
    )]
    Size(usize),
    /// The stride of bare payloads is out of bounds.
    #[error(
        "a stride of {stride} B in buffers of {size} B: it must be 1 B to the size of a buffer"
    )]
    Stride {
        /// Stride asked for, in bytes.
        stride: usize,
        /// Size of a buffer, in bytes.
        size: usize,
    },
    /// The memory could not be had.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// What a list of buffers is made of.
#[derive(Clone, Debug)]
pub struct ClopConfig {
    /// Stream that the list serves; its events carry it.
    pub stream: u16,
    /// Number of buffers, 1 to 65 536. With one, nothing is received while the reader has it.
    pub buffers: usize,
    /// Bytes in each buffer: a multiple of 64, up to 1 GiB.
    pub size: usize,
    /// How long the oldest payload of a buffer waits at most before the buffer is announced. With
    /// zero, whatever is there is announced at the next poll.
    pub timeout: Ns,
    /// How payloads lie in a buffer.
    pub framing: Framing,
    /// The memory.
    pub memory: RegionOptions,
}

impl Default for ClopConfig {
    /// Stream 0: 16 buffers of 64 KiB with records, announced after 100 us at the latest (a tenth
    /// of the millisecond that a level-0 trigger has).
    fn default() -> Self {
        Self {
            stream: 0,
            buffers: 16,
            size: 64 << 10,
            timeout: Ns(100_000),
            framing: Framing::Records,
            memory: RegionOptions::default(),
        }
    }
}

impl ClopConfig {
    /// Bytes of all buffers.
    pub(crate) fn bytes(&self) -> usize {
        self.buffers.saturating_mul(self.size)
    }

    /// Refuses what no list can have.
    pub(crate) fn check(&self) -> Result<(), ClopError> {
        let &Self {
            buffers,
            size,
            framing,
            ..
        } = self;
        if !(1..=MAX_BUFFERS).contains(&buffers) {
            return Err(ClopError::Buffers(buffers));
        }
        if !(LINE..=MAX_SIZE).contains(&size) || size % LINE != 0 {
            return Err(ClopError::Size(size));
        }
        if let Framing::Bare { stride } = framing
            && !(1..=size).contains(&stride)
        {
            return Err(ClopError::Stride { stride, size });
        }
        Ok(())
    }
}

/// A list of buffers, before its two sides part.
pub struct Clop {
    shared: Arc<Shared>,
    timeout: u64,
}

impl Clop {
    /// Makes the buffers. The timeout is counted on `clock`.
    ///
    /// # Errors
    /// A size out of its limits, or memory that cannot be had; the message names the limit.
    pub fn new(config: &ClopConfig, clock: &impl Clock) -> Result<Self, ClopError> {
        config.check()?;
        let region = Arc::new(config.memory.build(config.bytes())?);
        Ok(Self {
            shared: Arc::new(Shared::new(config, region, 0)?),
            timeout: clock.to_cycles(config.timeout),
        })
    }

    /// The side that fills the buffers, and the side that gets them.
    #[must_use]
    pub fn split(self) -> (ClopWriter, ClopReader) {
        let reader = ClopReader::new(Arc::clone(&self.shared));
        (ClopWriter::new(self.shared, self.timeout), reader)
    }
}

/// The buffers, and whose each of them is.
struct Shared {
    /// First byte of the first buffer, in the region.
    start: NonNull<u8>,
    _region: Arc<MemoryRegion>,
    /// For each buffer: 2 x lap while it is the writer's in that lap of the list, 2 x lap + 1 while
    /// it is the reader's. An event is plain data that anybody can make up; exclusive access rests
    /// on these words alone.
    turns: Box<[AtomicU64]>,
    size: usize,
    stream: u16,
    framing: Framing,
}

// SAFETY: the buffers belong to no thread, and are there as long as the region; who may touch which
// of them, `turns` says.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// A list whose buffers, all the writer's, begin `offset` bytes into a region.
    fn new(
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
    fn buffer(&self, index: usize) -> *mut u8 {
        debug_assert!(index < self.turns.len());
        // SAFETY: the region has `turns.len() * size` bytes from `start` on (checked in `new`).
        unsafe { self.start.as_ptr().add(index * self.size) }
    }

    /// Whether the writer may use the buffer in this lap.
    #[inline]
    fn is_writers(&self, at: Place) -> bool {
        // Acquire pairs with the Release in `to_writer`: the reader's accesses are over.
        self.turns[at.index].load(Ordering::Acquire) == at.lap << 1
    }

    /// Gives the buffer to the reader.
    #[inline]
    fn to_reader(&self, at: Place) {
        // Release pairs with the Acquire in `is_readers`: the payloads are written.
        self.turns[at.index].store(at.lap << 1 | 1, Ordering::Release);
    }

    /// Whether the reader may use the buffer in this lap.
    #[inline]
    fn is_readers(&self, at: Place) -> bool {
        // Acquire pairs with the Release in `to_reader`: the payloads can be read.
        self.turns[at.index].load(Ordering::Acquire) == at.lap << 1 | 1
    }

    /// Whether the buffer has come back from the reader, who had it in this lap.
    #[inline]
    fn is_returned(&self, at: Place) -> bool {
        self.is_writers(Place {
            lap: at.lap + 1,
            ..at
        })
    }

    /// Gives the buffer back to the writer, for its next lap.
    #[inline]
    fn to_writer(&self, at: Place) {
        // Release pairs with the Acquire in `is_writers`: our accesses are over.
        self.turns[at.index].store((at.lap + 1) << 1, Ordering::Release);
    }
}

/// A position in the endless sequence of buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    /// Buffers before this one, wrapping.
    serial: u32,
    /// Number of the buffer in the list.
    index: usize,
    /// Times that the list has been gone through.
    lap: u64,
}

impl Place {
    #[inline]
    fn next(self, buffers: usize) -> Self {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn sizes_out_of_their_limits_are_refused_by_name() {
        let refusal = |config: ClopConfig| {
            Clop::new(&config, &ManualClock::new())
                .err()
                .unwrap()
                .to_string()
        };
        let fine = ClopConfig {
            size: 128,
            ..ClopConfig::default()
        };
        for buffers in [0, MAX_BUFFERS + 1, usize::MAX] {
            assert!(
                refusal(ClopConfig {
                    buffers,
                    ..fine.clone()
                })
                .contains("1 to 65536")
            );
        }
        for size in [0, 63, 65, 100, MAX_SIZE + LINE, usize::MAX] {
            assert!(
                refusal(ClopConfig {
                    size,
                    ..fine.clone()
                })
                .contains("multiple of 64 B from 64")
            );
        }
        for stride in [0, 129] {
            let framing = Framing::Bare { stride };
            assert!(
                refusal(ClopConfig {
                    framing,
                    ..fine.clone()
                })
                .contains("1 B to the size")
            );
        }
        let huge = ClopConfig {
            buffers: MAX_BUFFERS,
            size: MAX_SIZE,
            ..fine
        };
        assert!(matches!(
            Clop::new(&huge, &ManualClock::new()),
            Err(ClopError::Region(_))
        ));
    }
}
