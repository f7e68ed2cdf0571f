//! Configuration of a CLOP, and its limits.

use pollux_mempool::region::RegionError;
use pollux_mempool::time::Ns;

use super::format::Framing;
use crate::event::memory::RegionOptions;

/// Maximum number of buffers in a list.
pub(super) const MAX_BUFFERS: usize = 1 << 16;

/// Buffers start at cache lines, so that writer and reader never share one.
pub(super) const LINE: usize = 64;

/// Largest buffer, in bytes.
pub(super) const MAX_SIZE: usize = 1 << 30;

/// Error: a list of buffers could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClopError {
    /// The number of buffers is out of bounds.
    #[error("a list of {0} buffers: it must have 1 to {MAX_BUFFERS}")]
    Buffers(usize),
    /// The size of a buffer is out of bounds or not a multiple of a cache line.
    #[error(
        "buffers of {0} B: the size must be a multiple of {LINE} B from {LINE} to {MAX_SIZE} B"
    )]
    Size(usize),
    /// The stride of bare payloads is out of bounds.
    #[error(
        "a stride of {stride} B in buffers of {size} B: it must be 1 B to the size of a buffer"
    )]
    Stride {
        /// Requested stride, in bytes.
        stride: usize,
        /// Size of a buffer, in bytes.
        size: usize,
    },
    /// The memory is not available.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// Configuration of a list of buffers.
#[derive(Clone, Debug)]
pub struct ClopConfig {
    /// Stream of the list; its events carry the number.
    pub stream: u16,
    /// Number of buffers, 1 to 65 536. With one, nothing is received while the reader holds it.
    pub buffers: usize,
    /// Bytes in each buffer: a multiple of 64, up to 1 GiB.
    pub size: usize,
    /// Longest wait of the oldest payload of a buffer before the buffer is announced. With zero,
    /// every poll announces the payloads that are there.
    pub timeout: Ns,
    /// Layout of payloads in a buffer.
    pub framing: Framing,
    /// The memory.
    pub memory: RegionOptions,
}

impl Default for ClopConfig {
    /// Stream 0: 16 buffers of 64 KiB with records, announced after 100 us at the latest (a tenth
    /// of the millisecond of a level-0 trigger).
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

    /// Refuses an invalid configuration.
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
