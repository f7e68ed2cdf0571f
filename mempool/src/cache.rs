//! A poll loop's own cache of free buffers.
//!
//! Allocation touches no buffer at all: it copies handles out of a [`LocalCache`]. The thread that
//! frees a buffer has its header in the CPU cache and resets it there.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::buffers::{Extent, PoolInner, RawMbuf};
use crate::burst::{Burst, BurstMut};
use crate::local_cache::{LocalCache, MAX_LOCAL_CACHE};
use crate::mbuf::Mbuf;
use crate::pool::{Mempool, PoolError};

/// Free buffers of one pool, for one poll loop. Flushes itself into the pool when dropped.
pub struct PoolCache {
    /// Reset buffers that this cache is responsible for.
    local: LocalCache<RawMbuf>,
    pool_ptr: NonNull<PoolInner>,
    /// What the header of a free buffer holds.
    fresh: Extent,
    pool: Mempool,
}

// SAFETY: the cache owns the buffers in it, and its pool can be used from any thread.
unsafe impl Send for PoolCache {}

impl Mempool {
    /// A cache for one poll loop that holds up to `size` free buffers of this pool.
    ///
    /// # Errors
    /// A size below 2, above the largest one, or above the pool's own.
    pub fn cache(&self, size: usize) -> Result<PoolCache, PoolError> {
        PoolCache::new(self.clone(), size)
    }
}

impl PoolCache {
    pub(crate) fn new(pool: Mempool, size: usize) -> Result<Self, PoolError> {
        if !(2..=MAX_LOCAL_CACHE).contains(&size) || size > pool.buffers() {
            return Err(PoolError::Cache {
                cache: size,
                pool: pool.buffers(),
            });
        }
        Ok(Self {
            local: LocalCache::new(size),
            pool_ptr: pool.inner_ptr(),
            fresh: *pool.inner().fresh(),
            pool,
        })
    }

    /// The pool that the buffers belong to.
    #[must_use]
    #[inline]
    pub fn pool(&self) -> &Mempool {
        &self.pool
    }

    /// Free buffers in the cache now.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.local.len()
    }

    /// Whether the cache holds no buffers.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.local.len() == 0
    }

    /// Takes one buffer; `None` when the pool has none.
    #[must_use]
    #[inline]
    pub fn alloc(&mut self) -> Option<Mbuf> {
        let mut raw = [MaybeUninit::uninit()];
        // SAFETY: the cache filled the slot and gave the buffer up: one owner.
        self.take(&mut raw)
            .then(|| unsafe { Mbuf::from_raw(raw[0].assume_init()) })
    }

    /// Fills all of `out` from the cache, or nothing.
    #[inline(always)]
    fn take(&mut self, out: &mut [MaybeUninit<RawMbuf>]) -> bool {
        let pool = self.pool.inner();
        self.local.take(out, |slots| pool.take(slots))
    }

    /// Adds up to `n` buffers to the burst, as many as fit and as the pool has; returns how many.
    #[inline]
    pub fn alloc_burst<const N: usize>(&mut self, burst: &mut Burst<N>, n: usize) -> usize {
        // A whole burst is the common case, and its length is a constant.
        if n >= N
            && let Some(slots) = burst.all_vacant()
            && self.take(slots)
        {
            // SAFETY: all slots were filled with buffers that the cache gave up.
            unsafe { burst.assume_full() };
            return N;
        }
        self.alloc_into(&mut burst.as_mut(), n)
    }

    /// As [`alloc_burst`](Self::alloc_burst), for a burst of any size.
    #[inline]
    pub fn alloc_into(&mut self, burst: &mut BurstMut<'_>, n: usize) -> usize {
        let vacant = burst.vacant();
        let n = n.min(vacant.len());
        if !self.take(&mut vacant[..n]) {
            return self.alloc_slowly(burst, n);
        }
        // SAFETY: the first `n` vacant slots were filled with buffers that the cache gave up.
        unsafe { burst.assume_pushed(n) };
        n
    }

    /// A request above half the cache, or above what the pool has left.
    #[cold]
    fn alloc_slowly(&mut self, burst: &mut BurstMut<'_>, n: usize) -> usize {
        let mut got = 0;
        while got < n
            && let Some(raw) = self.local.pop()
        {
            got += 1;
            // It fits: n <= free. Were it refused, the drop would return it to the free list.
            // SAFETY: the cache gave the buffer up: one owner.
            drop(burst.push(unsafe { Mbuf::from_raw(raw) }));
        }
        let more = self.pool.inner().take(&mut burst.vacant()[..n - got]);
        // SAFETY: the free list filled the first `more` vacant slots with buffers that have no other owner.
        unsafe { burst.assume_pushed(more) };
        got + more
    }

    /// Takes as many buffers as `data` needs, copies it into them, and returns them as one frame;
    /// `None`, and nothing taken, when the pool has too few or the frame is longer than
    /// [`Mempool::longest_frame`].
    #[must_use]
    pub fn alloc_from(&mut self, data: &[u8]) -> Option<Mbuf> {
        if data.len() > self.pool.longest_frame() {
            return None;
        }
        let room = self.pool.data_room();
        let mut head = self.alloc()?;
        let (first, rest) = data.split_at(data.len().min(room));
        head.append(first.len())?.copy_from_slice(first);
        // Built from the back, so that each link is one step.
        let mut tail: Option<Mbuf> = None;
        for piece in rest.chunks(room).rev() {
            let filled = self.alloc().and_then(|mut mbuf| {
                mbuf.append(piece.len())?.copy_from_slice(piece);
                if let Some(tail) = tail.take() {
                    mbuf.chain(tail).ok()?;
                }
                Some(mbuf)
            });
            if filled.is_none() {
                self.free(head);
                if let Some(tail) = tail {
                    self.free(tail);
                }
                return None;
            }
            tail = filled;
        }
        if let Some(tail) = tail {
            head.chain(tail).ok()?;
        }
        Some(head)
    }

    /// Takes a buffer (or a whole chain) back. One of another pool goes to that pool's free list.
    #[inline]
    pub fn free(&mut self, mbuf: Mbuf) {
        if mbuf.is_plain(self.pool_ptr) {
            let raw = mbuf.into_raw();
            // SAFETY: the handle just given up was the only way to this buffer of our pool.
            unsafe { raw.reset(&self.fresh) };
            // SAFETY: as above; it is reset.
            unsafe { self.put(&[raw]) };
        } else {
            self.free_odd(mbuf);
        }
    }

    /// Takes all buffers of a burst back.
    #[inline]
    pub fn free_burst<const N: usize>(&mut self, burst: &mut Burst<N>) {
        // A full burst is the common case, and its length is a constant.
        if let Some(raws) = burst.all_raw()
            // SAFETY: the burst owns the buffers, which are given up next or freed one by one.
            && unsafe { self.reset(raws) }
        {
            // SAFETY: reset buffers of our pool that the burst owns, and gives up below.
            unsafe { self.put(raws) };
            // SAFETY: all of them are in the cache now.
            unsafe { burst.assume_empty() };
            return;
        }
        self.free_front(&mut burst.as_mut(), N);
    }

    /// Takes the first `n` buffers of a burst (or all, if there are fewer) back.
    #[inline]
    pub fn free_front(&mut self, burst: &mut BurstMut<'_>, n: usize) {
        let n = n.min(burst.len());
        let raws = &burst.raw()[..n];
        // SAFETY: the burst owns the buffers, which are given up next or freed one by one.
        if !unsafe { self.reset(raws) } {
            return burst.take_front(n, |mbuf| self.free(mbuf));
        }
        // SAFETY: reset buffers of our pool that the burst owns, and gives up below.
        unsafe { self.put(raws) };
        // SAFETY: n <= burst.len(), and those are in the cache now.
        unsafe { burst.forget_front(n) };
    }

    /// Resets buffers that are to be freed, and says whether all are single segments of this pool.
    /// The slow path that dismantles the others resets them again.
    ///
    /// One pass, without a branch for each: 32 buffers that are looked at first and reset then
    /// are more pointers than there are registers.
    ///
    /// # Safety
    /// The caller owns the buffers, and does nothing with them but to free them.
    #[inline(always)]
    unsafe fn reset(&self, raws: &[RawMbuf]) -> bool {
        let pool = self.pool_ptr;
        let mut odd = 0;
        for raw in raws {
            // SAFETY: the caller owns the buffer, so its header can be read.
            odd |= unsafe { raw.oddity(pool) };
            // SAFETY: the caller is the only one who may reach the buffer.
            unsafe { raw.reset(&self.fresh) };
        }
        odd == 0
    }

    /// # Safety
    /// `raws` are reset single segments of this pool whose ownership the caller gives up here.
    #[inline(always)]
    unsafe fn put(&mut self, raws: &[RawMbuf]) {
        let pool = self.pool.inner();
        // SAFETY: what the cache flushes are unreturned, reset buffers of this pool.
        self.local.put(raws, |cold| unsafe { flush(pool, cold) });
    }

    /// A chain, or a buffer of another pool.
    #[cold]
    fn free_odd(&mut self, mbuf: Mbuf) {
        let (own, inner) = (self.pool_ptr, self.pool.inner());
        mbuf.dismantle(|pool, raw| {
            if pool == own {
                // SAFETY: `dismantle` yields each unreturned segment once, reset.
                self.local.put(&[raw], |cold| unsafe { flush(inner, cold) });
            } else {
                // SAFETY: as above, of `pool`.
                unsafe { PoolInner::give_back(pool, raw) };
            }
        });
    }

    /// Returns all buffers in the cache to the free list.
    pub fn flush(&mut self) {
        let pool = self.pool.inner();
        // SAFETY: what the cache holds are unreturned, reset buffers of this pool.
        self.local.flush(|cold| unsafe { flush(pool, cold) });
    }
}

/// A free list has room for all its buffers, so it always takes them.
///
/// # Safety
/// As for [`PoolInner::put`].
unsafe fn flush(pool: &PoolInner, raws: &[RawMbuf]) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { pool.put(raws) };
    true
}

impl Drop for PoolCache {
    fn drop(&mut self) {
        self.flush();
    }
}
