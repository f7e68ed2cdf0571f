//! What a pool shall be, and why it cannot.

use super::layout::BufferLayout;
#[cfg(doc)]
use crate::Metadata;
use crate::buffers::{Header, LINE, Place};
use crate::region::{BASE_PAGE, HUGE_PAGE, Lock, MemoryRegion, PageSize, RegionError};
use crate::ring::RingError;

/// Most buffers that a pool may have.
pub const MAX_BUFFERS: usize = 1 << 26;

const _: () = assert!(MAX_BUFFERS <= crate::returns::MAX_ELEMENTS);

/// Largest headroom and data room together, in bytes.
pub const MAX_DATA_ROOM: usize = 1 << 20;

/// What a pool is made of.
#[derive(Clone, Copy, Debug)]
pub struct PoolConfig {
    /// Number of buffers, 1 to 67 108 864.
    pub buffers: usize,
    /// Bytes of data in each buffer behind the headroom; a longer frame becomes a chain. At least
    /// 64; the default, 2048, holds any standard Ethernet frame.
    pub data_room: usize,
    /// Bytes in front of the data of a fresh buffer, for headers that are added later.
    pub headroom: usize,
    /// Page size of the memory. The headers, 64 B a buffer, get pages of their own of this size,
    /// or of 2 MiB if it is 1 GiB.
    pub pages: PageSize,
    /// NUMA node of the memory; `None`: where the kernel puts it.
    pub numa_node: Option<u32>,
    /// Whether the memory must be locked.
    pub lock: Lock,
    /// Whether each buffer has a line of [`Metadata`], another 64 B.
    pub metadata: bool,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            buffers: 8192,
            data_room: 2048,
            headroom: 128,
            pages: PageSize::Auto,
            numa_node: None,
            lock: Lock::Try,
            metadata: false,
        }
    }
}

/// Why a pool or a cache could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The number of buffers is zero or too large.
    #[error("a pool of {0} buffers: it must have 1 to {MAX_BUFFERS}")]
    Buffers(usize),
    /// The room of a buffer is too small or too large.
    #[error(
        "buffers of {data_room} B data room and {headroom} B headroom: the data room must be at \
         least 64 B, the headroom at most 4096 B, both together at most {MAX_DATA_ROOM} B"
    )]
    Room {
        /// The data room asked for, in bytes.
        data_room: usize,
        /// The headroom asked for, in bytes.
        headroom: usize,
    },
    /// The buffers are too many and too large to be numbered.
    #[error(
        "{buffers} buffers of {stride} B need {needed} B: a pool has at most {} GiB; make several",
        Place::LIMIT >> 30
    )]
    TooLarge {
        /// Buffers asked for.
        buffers: usize,
        /// Bytes of a buffer.
        stride: usize,
        /// Bytes that they take, in pages of the size that was asked for.
        needed: usize,
    },
    /// The region does not hold the buffers.
    #[error("{buffers} buffers of {stride} B need {needed} B, the region has {region}")]
    RegionTooSmall {
        /// Buffers asked for.
        buffers: usize,
        /// Bytes of a buffer.
        stride: usize,
        /// Bytes that they take, in pages of the region's.
        needed: usize,
        /// Bytes in the region.
        region: usize,
    },
    /// The cache is zero or larger than the pool.
    #[error(
        "a cache of {cache} buffers for a pool of {pool}: it must have 2 to {} and no more than the pool",
        crate::local_cache::MAX_LOCAL_CACHE
    )]
    Cache {
        /// Buffers that the cache should hold.
        cache: usize,
        /// Buffers in the pool.
        pool: usize,
    },
    /// The memory could not be had.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The free list could not be made.
    #[error(transparent)]
    Ring(#[from] RingError),
}

impl PoolError {
    /// Whether the error is in the request, and not in what this machine has at the moment.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Buffers(_) | Self::Room { .. } | Self::TooLarge { .. } | Self::Cache { .. } => {
                true
            }
            Self::Region(error) => error.is_usage(),
            Self::RegionTooSmall { .. } | Self::Ring(_) => false,
        }
    }
}

/// BufferLayout in pages of this size, of whole cache lines: no two buffers share one. Checks all sizes.
pub(super) fn layout(config: &PoolConfig, page_size: usize) -> Result<BufferLayout, PoolError> {
    let &PoolConfig {
        buffers,
        data_room,
        headroom,
        ..
    } = config;
    if data_room < 64 || headroom > 4096 || data_room.saturating_add(headroom) > MAX_DATA_ROOM {
        return Err(PoolError::Room {
            data_room,
            headroom,
        });
    }
    if buffers == 0 || buffers > MAX_BUFFERS {
        return Err(PoolError::Buffers(buffers));
    }
    let stride = (headroom + data_room).next_multiple_of(LINE);
    let layout = BufferLayout::new(buffers, stride, page_size);
    if layout.span() > Place::LIMIT {
        return Err(PoolError::TooLarge {
            buffers,
            stride,
            needed: layout.span(),
        });
    }
    Ok(layout)
}

/// Memory for the headers, and for the metadata behind them, placed as the region of the rooms is. Its descriptor is never given
/// away, and no device maps it.
pub(super) fn headers(
    config: &PoolConfig,
    layout: &MemoryRegion,
) -> Result<MemoryRegion, RegionError> {
    let lines = if config.metadata { 2 } else { 1 };
    let len = lines * config.buffers * size_of::<Header>();
    let (pages, len) = match config.pages {
        _ if layout.page_size() == BASE_PAGE => (PageSize::Kib4, len),
        // Asked for less than a hugepage, it would take normal ones.
        PageSize::Auto => (PageSize::Auto, len.max(HUGE_PAGE)),
        _ => (PageSize::Mib2, len),
    };
    MemoryRegion::builder(len)
        .pages(pages)
        .numa_node(config.numa_node)
        .lock(config.lock)
        .build()
}
