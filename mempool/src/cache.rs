//! A poll loop's own stock of free buffers.
//!
//! Allocation and free are a copy of handles between an array here and the caller's burst. Only
//! every `size / 2` buffers does the cache meet the shared depot, to refill or to flush one half;
//! the half that is kept is the one that was used last and is warm. A request of more than half a
//! cache goes to the depot directly, so that it does not push the whole stock back and forth.

use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};

use crate::burst::{Burst, BurstMut};
use crate::mbuf::{Mbuf, RawMbuf};
use crate::pool::{Mempool, PoolError, PoolInner};

/// Most buffers that a cache may hold.
pub(crate) const MAX_CACHE: usize = 1 << 16;

/// Free buffers of one pool, for one poll loop. Flushes itself into the pool when dropped.
pub struct PoolCache {
    /// The first `len` slots hold reset buffers that this cache is responsible for.
    slots: Box<[MaybeUninit<RawMbuf>]>,
    len: usize,
    pool_ptr: NonNull<PoolInner>,
    headroom: u16,
    pool: Mempool,
}

// SAFETY: the cache owns the buffers in it, and its pool can be used from any thread.
unsafe impl Send for PoolCache {}

impl PoolCache {
    pub(crate) fn new(pool: Mempool, size: usize) -> Result<Self, PoolError> {
        if !(2..=MAX_CACHE).contains(&size) || size > pool.buffers() {
            return Err(PoolError::Cache {
                cache: size,
                pool: pool.buffers(),
            });
        }
        Ok(Self {
            slots: Box::new_uninit_slice(size),
            len: 0,
            pool_ptr: pool.inner_ptr(),
            headroom: pool.inner().headroom(),
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
        self.len
    }

    /// Whether the cache holds no buffers.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn half(&self) -> usize {
        self.slots.len() / 2
    }

    /// Takes one buffer; `None` when the pool has none.
    #[must_use]
    #[inline]
    pub fn alloc(&mut self) -> Option<Mbuf> {
        if self.len == 0 && self.refill(1) == 0 {
            return None;
        }
        self.len -= 1;
        // SAFETY: slot `len` was filled, and the shorter length gives it up: one owner.
        Some(unsafe { Mbuf::from_raw(self.slots[self.len].assume_init()) })
    }

    /// Adds up to `n` buffers to the burst, as many as fit and as the pool has; returns how many.
    #[inline]
    pub fn alloc_burst<const N: usize>(&mut self, burst: &mut Burst<N>, n: usize) -> usize {
        self.alloc_into(&mut burst.as_mut(), n)
    }

    /// As [`alloc_burst`](Self::alloc_burst), for a burst of any size.
    #[inline]
    pub fn alloc_into(&mut self, burst: &mut BurstMut<'_>, n: usize) -> usize {
        let n = n.min(burst.free());
        if n > self.len && self.refill(n) < n {
            return self.alloc_slowly(burst, n);
        }
        self.len -= n;
        // SAFETY: the last `n` filled slots move to `n` vacant ones (n <= free); the shorter length
        // here and the longer one there move the responsibility. The two arrays are distinct.
        unsafe {
            let from = self.slots.as_ptr().add(self.len);
            ptr::copy_nonoverlapping(from, burst.vacant().as_mut_ptr(), n);
            burst.assume_pushed(n);
        }
        n
    }

    /// A request above half the cache, or above what the pool has left.
    #[cold]
    fn alloc_slowly(&mut self, burst: &mut BurstMut<'_>, n: usize) -> usize {
        let mut got = 0;
        while got < n && self.len > 0 {
            self.len -= 1;
            got += 1;
            // SAFETY: slot `len` was filled, and the shorter length gives it up: one owner.
            let mbuf = unsafe { Mbuf::from_raw(self.slots[self.len].assume_init()) };
            // It fits: n <= free. Were it refused, the drop would return it to the depot.
            drop(burst.push(mbuf));
        }
        let more = self.pool.inner().take(&mut burst.vacant()[..n - got]);
        // SAFETY: the depot filled the first `more` vacant slots with buffers nobody else holds.
        unsafe { burst.assume_pushed(more) };
        got + more
    }

    /// Brings the stock to `n` and half a cache more, if the depot has that many and `n` is not a
    /// bypass; returns the stock.
    #[cold]
    fn refill(&mut self, n: usize) -> usize {
        if n <= self.half() {
            let to = (n + self.half()).min(self.slots.len());
            self.len += self.pool.inner().take(&mut self.slots[self.len..to]);
        }
        self.len
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

    /// Takes a buffer (or a whole chain) back. One of another pool goes to that pool's depot.
    #[inline]
    pub fn free(&mut self, mbuf: Mbuf) {
        if mbuf.is_plain(self.pool_ptr) {
            if self.len == self.slots.len() {
                self.flush_half();
            }
            self.slots[self.len].write(mbuf.into_reset_raw(self.headroom));
            self.len += 1;
        } else {
            self.free_odd(mbuf);
        }
    }

    /// Takes all buffers of a burst back.
    #[inline]
    pub fn free_burst<const N: usize>(&mut self, burst: &mut Burst<N>) {
        let n = burst.len();
        self.free_front(&mut burst.as_mut(), n);
    }

    /// Takes the first `n` buffers of a burst (or all, if there are fewer) back.
    #[inline]
    pub fn free_front(&mut self, burst: &mut BurstMut<'_>, n: usize) {
        let n = n.min(burst.len());
        if n > self.half() {
            return burst.take_front(n, |mbuf| self.free(mbuf));
        }
        if self.len + n > self.slots.len() {
            self.flush_half();
        }
        let mut len = self.len;
        for &raw in &burst.raw()[..n] {
            // SAFETY: the burst gives up exactly these buffers below; the handle is consumed by
            // `into_reset_raw` or by `free_odd`, or forgotten on the way there.
            let mbuf = ManuallyDrop::new(unsafe { Mbuf::from_raw(raw) });
            if mbuf.is_plain(self.pool_ptr) {
                let raw = ManuallyDrop::into_inner(mbuf).into_reset_raw(self.headroom);
                // SAFETY: there is room for `n` behind `self.len`, at the start and after each odd one.
                unsafe { self.slots.get_unchecked_mut(len) }.write(raw);
                len += 1;
            } else {
                self.len = len;
                self.free_odd(ManuallyDrop::into_inner(mbuf));
                // A chain may have taken the room that the others need.
                if self.slots.len() - self.len < n {
                    self.flush_half();
                }
                len = self.len;
            }
        }
        self.len = len;
        // SAFETY: n <= burst.len(), and the loop took over each of the first `n` buffers.
        unsafe { burst.forget_front(n) };
    }

    /// A chain, or a buffer of another pool.
    #[cold]
    fn free_odd(&mut self, mbuf: Mbuf) {
        mbuf.dismantle(|pool, raw| {
            if pool != self.pool_ptr {
                // SAFETY: `dismantle` yields each unreturned segment of `pool` once.
                return unsafe { PoolInner::give_back(pool, &[raw]) };
            }
            if self.len == self.slots.len() {
                self.flush_half();
            }
            self.slots[self.len].write(raw);
            self.len += 1;
        });
    }

    /// Returns the colder half of a full or nearly full cache to the depot.
    #[cold]
    fn flush_half(&mut self) {
        self.flush_front(self.half().min(self.len));
    }

    /// Returns all buffers in the cache to the depot.
    pub fn flush(&mut self) {
        self.flush_front(self.len);
    }

    fn flush_front(&mut self, n: usize) {
        let rest = self.len - n;
        let base = self.slots.as_mut_ptr();
        // SAFETY: the first `n` slots are filled with reset buffers of this pool; the shorter
        // length below gives them up. The copy stays inside the slots.
        unsafe {
            let cold = core::slice::from_raw_parts(base.cast::<RawMbuf>(), n);
            PoolInner::give_back(self.pool_ptr, cold);
            ptr::copy(base.add(n), base, rest);
        }
        self.len = rest;
    }
}

impl Drop for PoolCache {
    fn drop(&mut self) {
        self.flush();
    }
}
