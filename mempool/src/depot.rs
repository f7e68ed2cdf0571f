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
//!
//! What nobody has taken yet is kept apart, and is taken when nothing else is left: so no more
//! elements go round than have been needed at once, and they stay in the processor's caches, however
//! many there are. What is still there when the last handle goes is pushed before the token.

use core::mem::MaybeUninit;

use crate::ring::{Mpmc, RingError};

/// A stock of at most `n` elements that knows when it is complete for ever.
pub(crate) struct Depot<T> {
    /// Those that came back.
    ring: Mpmc<T>,
    /// Those that have never been taken.
    fresh: Mpmc<T>,
    elements: usize,
}

impl<T: Copy + Send> Depot<T> {
    /// An empty depot for `elements` elements.
    pub(crate) fn new(elements: usize) -> Result<Self, RingError> {
        Ok(Self {
            ring: Mpmc::new(elements + 1)?,
            fresh: Mpmc::new(elements)?,
            elements,
        })
    }

    /// Puts in an element that has not been in yet; `false` if there are as many already.
    #[must_use = "false says that it is not in"]
    pub(crate) fn add(&self, element: T) -> bool {
        self.fresh.push(element)
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
        let again = self.ring.pop_burst(out);
        match &mut out[again..] {
            [] => again,
            rest => again + self.fresh.pop_burst(rest),
        }
    }

    /// Elements in stock now.
    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.fresh.len()
    }

    /// Says that nobody will pop any more. `true` means the same as for [`push`](Self::push).
    ///
    /// # Safety
    /// As for `push`; besides, the caller was the last one who could pop, and has seen the pops of
    /// all others.
    #[must_use]
    pub(crate) unsafe fn close(depot: *const Self, token: T) -> bool {
        // SAFETY: valid, as the token is missing still.
        while let Some(element) = unsafe { (*depot).fresh.pop() } {
            // SAFETY: as above, so this is not the last one; and it came out just now.
            let _ = unsafe { Self::push(depot, &[element]) };
        }
        // SAFETY: by the caller's promise.
        unsafe { Self::push(depot, &[token]) }
    }
}
