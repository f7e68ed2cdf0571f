//! The shared stock of a pool, which also decides who frees the pool.
//!
//! A pool of `n` buffers lives until its handles are gone *and* all `n` buffers are back, in any
//! order and from any thread, and nothing may be counted per packet to find that out. So the
//! handles are one more element: when the last handle goes, it pushes a token. The push that makes
//! the count `n + 1` is the last one, whoever does it, and that thread frees the pool.
//!
//! Why exactly one thread sees it, and nobody touches the pool afterwards: pushes are published in
//! the order of the ring's tail, each pusher waits for its turn, and its release store of the tail
//! is the last thing that it does to the ring. It counts in between: pushes up to its own, less the
//! pops that it sees. Before the token the count is at most `n`, however stale its look at the pops
//! is: each element that was pushed again had been popped first, and the acquire chain of the
//! producers' head shows that pop. From the token on the count is exact: only handles pop, whoever
//! drops the last one has seen all pops, and the acquire chain of the tail passes that on.

use core::mem::MaybeUninit;

use crate::ring::{Mpmc, RingError};

/// A stock of at most `n` elements that knows when it is complete for ever.
pub(crate) struct Depot<T> {
    ring: Mpmc<T>,
    elements: usize,
}

impl<T: Copy + Send> Depot<T> {
    /// An empty depot for `elements` elements.
    pub(crate) fn new(elements: usize) -> Result<Self, RingError> {
        Ok(Self {
            ring: Mpmc::new(elements + 1)?,
            elements,
        })
    }

    /// Puts elements in. `true` means: the caller has completed a closed depot, nobody else will
    /// ever touch it, free it now. On `false` the caller may not touch the depot again unless it
    /// holds a handle or an element.
    ///
    /// # Safety
    /// `depot` is valid, and stays so at least until `elements`, which came out of it (or fill it
    /// for the first time), are back in.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn push(depot: *const Self, elements: &[T]) -> bool {
        if elements.is_empty() {
            return false;
        }
        // SAFETY: valid until the push is published; not used after that.
        let (ring, total) = unsafe { (&raw const (*depot).ring, (*depot).elements + 1) };
        // SAFETY: the ring is valid until the push is published.
        let last =
            unsafe { Mpmc::push_bulk_then(ring, elements, |occupancy| occupancy() == total) };
        debug_assert!(last.is_some(), "a depot has room for all its elements");
        last == Some(true)
    }

    /// Takes as many elements as there are, up to `out.len()`, and returns how many.
    #[inline]
    pub(crate) fn pop(&self, out: &mut [MaybeUninit<T>]) -> usize {
        self.ring.pop_burst(out)
    }

    /// Elements in stock now.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Says that nobody will pop any more. `true` means the same as for [`push`](Self::push).
    ///
    /// # Safety
    /// As for `push`; besides, the caller was the last one who could pop, and has seen the pops of
    /// all others.
    #[must_use]
    pub(crate) unsafe fn close(depot: *const Self, token: T) -> bool {
        // SAFETY: by the caller's promise.
        unsafe { Self::push(depot, &[token]) }
    }
}
