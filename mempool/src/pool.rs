//! A pool: equal buffers in one region of memory, and the depot that holds the free ones.

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use std::sync::Arc;

use crate::burst::Burst;
use crate::cache::PoolCache;
use crate::depot::Depot;
use crate::mbuf::{Extent, HEADER, Header, MAX_SEGMENTS, Mbuf, RawMbuf};
use crate::region::{Lock, MemoryRegion, PageSize, RegionError};
use crate::ring::RingError;
use crate::time::{Tsc, WireTime};

/// Most buffers that a pool may have.
pub const MAX_BUFFERS: usize = 1 << 26;

/// Largest headroom and data room together, in bytes.
pub const MAX_ROOM: usize = 1 << 20;

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
    /// Page size of the memory.
    pub pages: PageSize,
    /// NUMA node of the memory; `None`: where the kernel puts it.
    pub numa_node: Option<u32>,
    /// Whether the memory must be locked.
    pub lock: Lock,
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
         least 64 B, the headroom at most 4096 B, both together at most {MAX_ROOM} B"
    )]
    Room {
        /// The data room asked for, in bytes.
        data_room: usize,
        /// The headroom asked for, in bytes.
        headroom: usize,
    },
    /// The region does not hold the buffers.
    #[error("{buffers} buffers of {stride} B need {} B, the region has {region}", buffers.saturating_mul(*stride))]
    RegionTooSmall {
        /// Buffers asked for.
        buffers: usize,
        /// Bytes from one buffer to the next.
        stride: usize,
        /// Bytes in the region.
        region: usize,
    },
    /// The cache is zero or larger than the pool.
    #[error(
        "a cache of {cache} buffers for a pool of {pool}: it must have 2 to {} and no more than the pool",
        crate::stock::MAX_STOCK
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
    /// The depot could not be made.
    #[error(transparent)]
    Ring(#[from] RingError),
}

/// Identity of a pool, for comparison only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolId(usize);

/// The pool itself: lives until all handles are dropped and all buffers are back.
pub(crate) struct PoolInner {
    depot: Depot<RawMbuf>,
    region: Arc<MemoryRegion>,
    buffers: usize,
    stride: usize,
    data_room: u32,
    /// What the header of a free buffer holds.
    fresh: Extent,
}

impl PoolInner {
    /// What the header of a free buffer holds.
    #[inline]
    pub(crate) fn fresh(&self) -> &Extent {
        &self.fresh
    }

    /// Returns buffers to the depot, and frees the pool if they were the last ones of a pool
    /// without handles.
    ///
    /// # Safety
    /// `raws` are unreturned buffers of `pool`, reset, whose ownership the caller gives up here.
    #[inline]
    pub(crate) unsafe fn give_back(pool: NonNull<PoolInner>, raws: &[RawMbuf]) {
        // SAFETY: the pool lives at least until these unreturned buffers are pushed.
        let complete = unsafe { Depot::push(&raw const (*pool.as_ptr()).depot, raws) };
        if complete {
            // SAFETY: `push` says so to one thread only, and nobody else can reach the pool.
            drop(unsafe { Box::from_raw(pool.as_ptr()) });
        }
    }

    /// Fills `out` from the depot as far as it goes.
    #[inline]
    pub(crate) fn take(&self, out: &mut [MaybeUninit<RawMbuf>]) -> usize {
        self.depot.pop(out)
    }
}

/// The last of these closes the pool.
struct Handle(NonNull<PoolInner>);

// SAFETY: everything in PoolInner can be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above; the depot is an MPMC ring.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // The token is an address that is never looked at.
        let token = RawMbuf(NonNull::dangling());
        // SAFETY: the pool lives until the token is pushed. All users of handles are gone, and
        // Arc's own release and acquire make their pops visible here.
        let complete = unsafe { Depot::close(&raw const (*self.0.as_ptr()).depot, token) };
        if complete {
            // SAFETY: `close` says so to one thread only, and nobody else can reach the pool.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// A pool of packet buffers. Cloning the handle shares the pool; the memory goes when the last
/// handle and the last buffer are gone.
#[derive(Clone)]
pub struct Mempool(Arc<Handle>);

impl Mempool {
    /// Makes a pool in memory of its own.
    ///
    /// # Errors
    /// A size out of its limits, or memory that cannot be had; the message names the limit.
    pub fn new(config: PoolConfig) -> Result<Self, PoolError> {
        let stride = stride(&config)?;
        if config.buffers == 0 || config.buffers > MAX_BUFFERS {
            return Err(PoolError::Buffers(config.buffers));
        }
        let region = MemoryRegion::builder(config.buffers * stride)
            .pages(config.pages)
            .numa_node(config.numa_node)
            .lock(config.lock)
            .build()?;
        Self::in_region(region, &config)
    }

    /// Makes a pool at the start of a region that the caller has mapped (and perhaps registered
    /// with a device). The page size, NUMA node and lock in `config` are not used.
    ///
    /// # Errors
    /// A size out of its limits, or a region that is too small.
    pub fn in_region(region: MemoryRegion, config: &PoolConfig) -> Result<Self, PoolError> {
        let stride = stride(config)?;
        let buffers = config.buffers;
        if buffers == 0 || buffers > MAX_BUFFERS {
            return Err(PoolError::Buffers(buffers));
        }
        if buffers * stride > region.len() {
            return Err(PoolError::RegionTooSmall {
                buffers,
                stride,
                region: region.len(),
            });
        }
        let base = region.as_ptr();
        let inner = PoolInner {
            depot: Depot::new(buffers)?,
            region: Arc::new(region),
            buffers,
            stride,
            data_room: config.data_room as u32,
            fresh: Extent::fresh(config.headroom as u16),
        };
        let pool = NonNull::from(Box::leak(Box::new(inner)));
        let handle = Handle(pool);
        let room = (stride - HEADER) as u32;
        for i in 0..buffers {
            // SAFETY: i * stride + stride <= region.len(), and the region is page aligned.
            let raw = RawMbuf(unsafe { base.add(i * stride) }.cast::<Header>());
            let header = Header {
                pool,
                next: None,
                extent: Extent::fresh(config.headroom as u16),
                port: 0,
                queue: 0,
                ordinal: 0,
                wire: WireTime(0),
                arrival: Tsc(0),
                owners: AtomicU32::new(1),
                room,
            };
            // SAFETY: this element is inside the region, and nobody knows of it yet.
            unsafe { raw.0.write(header) };
            // SAFETY: each element enters circulation here, once.
            unsafe { PoolInner::give_back(pool, &[raw]) };
        }
        Ok(Self(Arc::new(handle)))
    }

    #[inline]
    pub(crate) fn inner(&self) -> &PoolInner {
        // SAFETY: the pool lives as long as a handle does.
        unsafe { self.0.0.as_ref() }
    }

    #[inline]
    pub(crate) fn inner_ptr(&self) -> NonNull<PoolInner> {
        self.0.0
    }

    /// A cache for one poll loop that holds up to `size` free buffers of this pool.
    ///
    /// # Errors
    /// A size below 2, above the largest one, or above the pool's own.
    pub fn cache(&self, size: usize) -> Result<PoolCache, PoolError> {
        PoolCache::new(self.clone(), size)
    }

    /// Takes one buffer from the depot, without a cache.
    #[must_use]
    #[inline]
    pub fn alloc(&self) -> Option<Mbuf> {
        let mut burst = Burst::<1>::new();
        self.alloc_burst(&mut burst, 1);
        burst.pop()
    }

    /// Takes up to `n` buffers from the depot, without a cache, and returns how many were added.
    #[inline]
    pub fn alloc_burst<const N: usize>(&self, burst: &mut Burst<N>, n: usize) -> usize {
        let mut view = burst.as_mut();
        let vacant = view.vacant();
        let n = n.min(vacant.len());
        let got = self.inner().take(&mut vacant[..n]);
        // SAFETY: the depot filled the first `got` slots with buffers that nobody else holds.
        unsafe { view.assume_pushed(got) };
        got
    }

    /// Returns all buffers of a burst to the depot, without a cache: those of this pool in one go,
    /// chains and buffers of other pools one by one.
    #[inline]
    pub fn free_burst<const N: usize>(&self, burst: &mut Burst<N>) {
        if !burst.iter().all(|mbuf| mbuf.is_plain(self.inner_ptr())) {
            return burst.clear();
        }
        let mut view = burst.as_mut();
        for &raw in view.raw() {
            // SAFETY: the burst owns the buffer and is borrowed exclusively.
            unsafe { raw.reset(self.inner().fresh()) };
        }
        // SAFETY: all are unreturned buffers of this pool, reset just now; the burst gives up
        // exactly these.
        unsafe {
            PoolInner::give_back(self.inner_ptr(), view.raw());
            view.forget_front(view.len());
        }
    }

    /// Free buffers in the depot now; those in caches are not counted.
    #[must_use]
    pub fn available(&self) -> usize {
        self.inner().depot.len()
    }

    /// Buffers that the pool has in all.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.inner().buffers
    }

    /// Bytes of data that one buffer holds behind the headroom.
    #[must_use]
    pub fn data_room(&self) -> usize {
        self.inner().data_room as usize
    }

    /// Longest frame in bytes that a chain of this pool's buffers can hold.
    #[must_use]
    pub fn longest_frame(&self) -> usize {
        self.data_room() * self.buffers().min(usize::from(MAX_SEGMENTS))
    }

    /// Bytes from one buffer to the next.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.inner().stride
    }

    /// The memory that the buffers lie in, to be made known to a device.
    #[must_use]
    pub fn region(&self) -> &Arc<MemoryRegion> {
        &self.inner().region
    }

    /// Identity of the pool.
    #[must_use]
    pub fn id(&self) -> PoolId {
        PoolId(self.inner_ptr().as_ptr() as usize)
    }
}

impl core::fmt::Debug for Mempool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mempool")
            .field("buffers", &self.buffers())
            .field("available", &self.available())
            .field("data_room", &self.data_room())
            .finish_non_exhaustive()
    }
}

/// Bytes from one buffer to the next: an odd number of cache lines, so that the headers of
/// consecutive buffers spread over all cache sets and memory channels.
fn stride(config: &PoolConfig) -> Result<usize, PoolError> {
    let &PoolConfig {
        data_room,
        headroom,
        ..
    } = config;
    if data_room < 64 || headroom > 4096 || data_room.saturating_add(headroom) > MAX_ROOM {
        return Err(PoolError::Room {
            data_room,
            headroom,
        });
    }
    Ok(((HEADER + headroom + data_room).div_ceil(64) | 1) * 64)
}
