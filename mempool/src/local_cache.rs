//! A thread's own cache of free elements in front of a shared one: the policy of every cache.
//!
//! Taking and putting back is a copy between an array here and the caller's. Only every `size / 2`
//! elements does the cache meet the shared one, to refill or to flush one half; the half that is
//! kept is the one that was used last and is warm. A request of more than half a cache goes past
//! it, so that it does not push the whole cache back and forth.
//!
//! Where the caller's slice has a constant length, the copy is a few vector moves: hence the
//! inlining of the common path, and of nothing else.

mod wide;

use core::mem::MaybeUninit;
use core::ptr;

use wide::Wide;

/// Largest cache.
pub(crate) const MAX_LOCAL_CACHE: usize = 1 << 16;

/// Up to `size` elements; the one put last is taken first.
pub(crate) struct LocalCache<T> {
    /// Of the `size` slots from `first` on, `len` are filled.
    slots: Box<[MaybeUninit<T>]>,
    /// The first slot that begins a cache line: bursts then do not straddle lines.
    first: usize,
    size: usize,
    len: usize,
    /// Moves of 32 bytes, if the CPU has them.
    wide: Option<Wide>,
}

/// Bytes of a cache line.
const LINE: usize = 64;

impl<T: Copy> LocalCache<T> {
    /// An empty cache.
    pub(crate) fn new(size: usize) -> Self {
        let spare = LINE / size_of::<T>().max(1);
        let slots = Box::new_uninit_slice(size + spare);
        // Where no slot begins a line, alignment is given up, not the bounds.
        let first = slots.as_ptr().align_offset(LINE).min(spare);
        Self {
            slots,
            first,
            size,
            len: 0,
            wide: Wide::detect(),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn half(&self) -> usize {
        self.size / 2
    }

    /// Fills all of `out`, or takes nothing: `false` if there are fewer elements, or if the
    /// request is one that goes past the cache. `refill` fills a slice from the shared one as
    /// far as that goes, and returns how far.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        out: &mut [MaybeUninit<T>],
        refill: impl FnOnce(&mut [MaybeUninit<T>]) -> usize,
    ) -> bool {
        if out.len() > self.len && !self.refill_for(out.len(), refill) {
            return false;
        }
        self.len -= out.len();
        // SAFETY: `out.len()` filled slots lie behind the shorter length, which gives them up.
        let from = unsafe { self.slots.as_ptr().add(self.first + self.len) };
        // SAFETY: both are as long as `out`, and the cache's slots are its own memory.
        unsafe { copy(self.wide, from, out.as_mut_ptr(), out.len()) };
        true
    }

    /// Brings the cache to `n` and half a cache more, if the shared one has that many and `n` is
    /// not to go past; whether there are `n` now.
    #[cold]
    #[inline(never)]
    fn refill_for(
        &mut self,
        n: usize,
        refill: impl FnOnce(&mut [MaybeUninit<T>]) -> usize,
    ) -> bool {
        if n <= self.half() {
            let to = (n + self.half()).min(self.size);
            self.len += refill(&mut self.slots[self.first..][self.len..to]);
        }
        n <= self.len
    }

    /// Takes one element, if there is one.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: slot `len` was filled; the shorter length gives it up.
        Some(unsafe { self.slots[self.first + self.len].assume_init() })
    }

    /// Puts elements back. `flush` moves elements to the shared one and says whether it took
    /// them; if not, nothing was put back: the result.
    #[inline(always)]
    pub(crate) fn put(&mut self, elements: &[T], flush: impl FnOnce(&[T]) -> bool) -> bool {
        if elements.len() > self.size - self.len {
            return self.put_slowly(elements, flush);
        }
        // SAFETY: there is room, as was just checked.
        unsafe { self.append(elements) };
        true
    }

    /// # Safety
    /// There is room for `elements`.
    #[inline(always)]
    unsafe fn append(&mut self, elements: &[T]) {
        // SAFETY: the slots behind `len` are enough by the caller's promise, and the cache's own.
        unsafe {
            let to = self.slots.as_mut_ptr().add(self.first + self.len);
            copy(self.wide, elements.as_ptr(), to.cast(), elements.len());
        }
        self.len += elements.len();
    }

    /// Makes room by flushing one half, or goes past the cache.
    #[cold]
    #[inline(never)]
    fn put_slowly(&mut self, elements: &[T], flush: impl FnOnce(&[T]) -> bool) -> bool {
        if elements.len() > self.half() {
            return flush(elements);
        }
        // They do not fit, so less than half of the slots are vacant: there is a half to flush.
        let flushed = self.flush_front(self.half(), flush);
        if flushed {
            // SAFETY: that half is vacant now, and no less than the elements need.
            unsafe { self.append(elements) };
        }
        flushed
    }

    /// Moves all elements to the shared one.
    pub(crate) fn flush(&mut self, flush: impl FnOnce(&[T]) -> bool) -> bool {
        self.flush_front(self.len, flush)
    }

    /// Moves the first `n` elements, those that were used longest ago; there are that many.
    fn flush_front(&mut self, n: usize, flush: impl FnOnce(&[T]) -> bool) -> bool {
        let filled = &mut self.slots[self.first..][..self.len];
        // SAFETY: all of these slots are filled.
        let elements: &[T] = unsafe { &*(ptr::from_ref(&*filled) as *const [T]) };
        let taken = flush(&elements[..n]);
        if taken {
            filled.copy_within(n.., 0);
            self.len -= n;
        }
        taken
    }
}

/// Copies `n` elements: a short burst one by one, since the next request reads what was written just
/// now, and a store is forwarded to a load sooner from a register than from a vector (a sixth of the
/// time at a burst of 8). A burst of 32, the most usual one, by moves of 32 bytes where the CPU has
/// them: what bounds it is the number of stores. Elsewhere in pieces that the compiler expands to
/// moves of 16 bytes: it calls `memcpy` for constant lengths above 128 bytes, and for all others.
///
/// # Safety
/// As for [`ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy<T: Copy>(wide: Option<Wide>, from: *const T, to: *mut T, n: usize) {
    const BURST: usize = 32;
    const PIECE: usize = 8;
    if n <= PIECE {
        for k in 0..n {
            // SAFETY: by the caller's promise. Volatile, or the compiler would make vectors of it.
            unsafe { to.add(k).write_volatile(from.add(k).read_volatile()) };
        }
    } else if n == BURST
        && size_of::<T>() * BURST == wide::BYTES
        && let Some(wide) = wide
    {
        // SAFETY: by the caller's promise; so many bytes.
        unsafe { wide.copy(from.cast(), to.cast()) };
    } else if n == BURST {
        for k in (0..BURST).step_by(PIECE) {
            // SAFETY: by the caller's promise; the pieces make up the burst.
            unsafe { ptr::copy_nonoverlapping(from.add(k), to.add(k), PIECE) };
        }
    } else {
        // SAFETY: by the caller's promise.
        unsafe { ptr::copy_nonoverlapping(from, to, n) };
    }
}
