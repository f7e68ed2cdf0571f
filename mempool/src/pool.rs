//! A pool: equal buffers in one region of memory, their headers in another, and the free list that
//! holds the free ones.

mod config;
pub(crate) mod layout;

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use std::sync::Arc;

use crate::buffers::{Extent, Header, Place, PoolInner, RawMbuf};
use crate::burst::Burst;
use crate::free_list::FreeList;
use crate::mbuf::{MAX_SEGMENTS, Mbuf};
use crate::metadata::Metadata;
use crate::region::{HUGE_PAGE, MemoryRegion};
use crate::time::{Tsc, WireTime};

pub use crate::buffers::PoolId;
pub use config::{MAX_BUFFERS, MAX_DATA_ROOM, PoolConfig, PoolError};
pub use layout::BufferLayout;

/// The last of these closes the pool.
struct Handle(NonNull<PoolInner>);

// SAFETY: everything in PoolInner can be used from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above; the free list is for any number of threads.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the pool lives until its free list is closed and complete. All users of handles are
        // gone, and Arc's own release and acquire make what they did visible here.
        let complete = unsafe { FreeList::close(&raw const (*self.0.as_ptr()).free) };
        if complete {
            // SAFETY: `close` returns true on one thread only, and no other reference to the pool is left.
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
        // Enough whichever pages it gets: in none more is left over than in the smaller hugepages.
        let page_size = config.pages.bytes().unwrap_or(HUGE_PAGE);
        let region = MemoryRegion::builder(config::layout(&config, page_size)?.span())
            .pages(config.pages)
            .numa_node(config.numa_node)
            .lock(config.lock)
            .build()?;
        Self::in_region(region, &config)
    }

    /// Makes a pool at the start of a region that the caller has mapped (and perhaps registered
    /// with a device). In hugepages the rest of each page, which has no room for a whole buffer,
    /// stays unused. Only the headers, which never lie in it, follow the page size, NUMA node
    /// and lock in `config`.
    ///
    /// # Errors
    /// A size out of its limits, a region that is too small, or no memory for the headers.
    pub fn in_region(region: MemoryRegion, config: &PoolConfig) -> Result<Self, PoolError> {
        let layout = config::layout(config, region.page_size())?;
        let buffers = config.buffers;
        if layout.span() > region.len() {
            return Err(PoolError::RegionTooSmall {
                buffers,
                stride: layout.stride(),
                needed: layout.span(),
                region: region.len(),
            });
        }
        let headers = config::headers(config, &region)?;
        let first = headers.as_ptr().cast::<Header>();
        let inner = PoolInner {
            free: FreeList::new(buffers)?,
            start: region.as_ptr(),
            layout,
            region: Arc::new(region),
            headers,
            data_room: config.data_room as u32,
            metadata: if config.metadata {
                buffers * size_of::<Header>()
            } else {
                0
            },
            fresh: Extent::fresh(config.headroom as u16),
        };
        let pool = NonNull::from(Box::leak(Box::new(inner)));
        let mempool = Self(Arc::new(Handle(pool)));
        for index in 0..buffers {
            // SAFETY: `headers` has room for one header for each buffer, and is page aligned.
            let raw = RawMbuf(unsafe { first.add(index) });
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
                place: Place::of(layout.offset(index)),
            };
            // SAFETY: inside the headers' memory, which is not shared yet.
            unsafe { raw.0.write(header) };
            if config.metadata {
                // SAFETY: as above: behind the headers there are as many lines of metadata.
                unsafe { first.add(buffers + index).cast().write(Metadata::default()) };
            }
            // Each buffer enters circulation here, once; there is room for all.
            let _ = mempool.inner().free.add(raw);
        }
        Ok(mempool)
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

    /// Whether its buffers have [metadata](Mbuf::metadata_mut).
    #[must_use]
    #[inline]
    pub fn has_metadata(&self) -> bool {
        self.inner().metadata != 0
    }

    /// Takes one buffer from the free list, without a cache: at the ring that the caches of poll loops
    /// refill from, which wait for a thread that is preempted inside.
    #[must_use]
    #[inline]
    pub fn alloc(&self) -> Option<Mbuf> {
        let mut burst = Burst::<1>::new();
        self.alloc_burst(&mut burst, 1);
        burst.pop()
    }

    /// Takes up to `n` buffers from the free list, without a cache, and returns how many were added.
    #[inline]
    pub fn alloc_burst<const N: usize>(&self, burst: &mut Burst<N>, n: usize) -> usize {
        let mut view = burst.as_mut();
        let vacant = view.vacant();
        let n = n.min(vacant.len());
        let got = self.inner().take(&mut vacant[..n]);
        // SAFETY: the free list filled the first `got` slots with buffers that have no other owner.
        unsafe { view.assume_pushed(got) };
        got
    }

    /// Returns all buffers of a burst to the free list, without a cache: those of this pool in one go,
    /// chains and buffers of other pools one by one. For poll loops: a thread that may be preempted
    /// drops its buffers instead, which never blocks others.
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
            self.inner().put(view.raw());
            view.forget_front(view.len());
        }
    }

    /// Free buffers in the free list now; those in caches are not counted. Goes through those that were
    /// dropped one by one: for housekeeping.
    #[must_use]
    pub fn available(&self) -> usize {
        self.inner().free.len_up_to(self.buffers())
    }

    /// Whether so many buffers are free in the free list now. Of those that were dropped it counts one by
    /// one as many as are missing otherwise, so a poll loop asks for few, or seldom.
    #[must_use]
    pub fn has(&self, buffers: usize) -> bool {
        self.inner().free.len_up_to(buffers) == buffers
    }

    /// Buffers that the pool has in all.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.inner().layout.buffers()
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

    /// Bytes of a buffer's room (headroom, data and tailroom): `headroom + data_room`, rounded up
    /// to 64.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.inner().stride()
    }

    /// Where the data rooms of its buffers lie in its region.
    #[must_use]
    pub fn layout(&self) -> BufferLayout {
        self.inner().layout
    }

    /// The region of the buffers' data rooms, to be mapped for a device. It holds bytes of frames
    /// and nothing else, in the [data rooms](Self::layout).
    #[must_use]
    pub fn region(&self) -> &Arc<MemoryRegion> {
        &self.inner().region
    }

    /// Identity of the pool.
    #[must_use]
    pub fn id(&self) -> PoolId {
        PoolId::of(self.inner_ptr())
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
