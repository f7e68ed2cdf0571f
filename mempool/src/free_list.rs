//! The shared free list of a pool, which also decides who frees the pool.
//!
//! Free buffers are in three places. Poll loops refill and flush their caches at a ring, many
//! handles at a time. What is freed elsewhere (a dropped buffer, on any thread) goes to a stack on
//! which a preempted thread does not delay others ([`ReturnStack`]), and is taken when the ring has
//! too few. What has never been taken is kept apart, and is taken when nothing else is left: so no
//! more elements are in use than have been needed at once, and they stay in the processor's caches,
//! however many there are.
//!
//! A pool of `n` buffers lives until its handles are gone *and* all `n` buffers are back, in any
//! order and from any thread, and nothing may be counted per packet to find that out. Only handles
//! reach ring and fresh elements, so when the last handle goes what is in them is final, and what is
//! missing can only come by the stack. The last handle closes the stack and says how many elements
//! it waits for; from then on each element that comes is counted instead of being stored. The
//! thread whose handle or element makes the number zero frees the pool. The number is one atomic, so
//! exactly one thread sees it become zero, and no thread touches the pool after its own decrement.

use core::mem::MaybeUninit;

use crate::returns::ReturnStack;
use crate::ring::{Mpmc, RingError};
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::AcqRel;
use crate::sync::ordering;

/// A free list of at most `n` elements that knows when it is complete for ever.
pub(crate) struct FreeList<T> {
    /// Those that came back through caches.
    ring: Mpmc<T>,
    /// Numbers of those that came back by themselves.
    returned: ReturnStack,
    /// Those that have never been taken.
    fresh: Mpmc<T>,
    /// Once closed: elements that have not come back. Before that, less those that came back while
    /// the last handle was at it (modulo 2^64).
    missing: AtomicUsize,
}

impl<T: Copy + Send> FreeList<T> {
    /// An empty free list for `elements` elements.
    pub(crate) fn new(elements: usize) -> Result<Self, RingError> {
        Ok(Self {
            ring: Mpmc::new(elements)?,
            returned: ReturnStack::new(elements)?,
            fresh: Mpmc::new(elements)?,
            missing: AtomicUsize::new(0),
        })
    }

    /// Puts in an element that has not been in yet; `false` if there are as many already.
    #[must_use = "false says that it is not in"]
    pub(crate) fn add(&self, element: T) -> bool {
        self.fresh.push(element)
    }

    /// Puts elements back that came out. For handles, and for threads that are not preempted: others
    /// wait for one that is.
    #[inline]
    pub(crate) fn put(&self, elements: &[T]) {
        let room = self.ring.push_bulk(elements);
        debug_assert!(room, "a free list has room for all its elements");
    }

    /// Gives the element with this number back, from any thread, without making others wait. `true`
    /// means that the caller has completed a closed free list and has to free it: no other reference is
    /// left. On `false` the caller may not touch the free list again unless it holds a handle or an
    /// element.
    ///
    /// # Safety
    /// `free` is valid, and stays so at least until this element, which came out of it, is back.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn give_back(free: *const Self, number: usize) -> bool {
        // SAFETY: valid until the element is back; where `push` takes it, nothing follows.
        if unsafe { ReturnStack::push(&raw const (*free).returned, number) } {
            return false;
        }
        // SAFETY: closed, and this element is not counted yet, so the free list is valid until the next
        // step has counted it, and is not used after that.
        let missing = unsafe { &(*free).missing };
        // Release: what this thread did to the pool comes before its end. Acquire: the thread
        // that ends the pool sees the steps of all others, which form one release sequence.
        missing.fetch_sub(1, ordering("free-list-missing", AcqRel)) == 1
    }

    /// Takes as many elements as there are, up to `out.len()`, and returns how many. `of` makes an
    /// element of its number.
    #[inline]
    pub(crate) fn pop(&self, out: &mut [MaybeUninit<T>], of: impl Fn(usize) -> T) -> usize {
        match self.ring.pop_burst(out) {
            all if all == out.len() => all,
            some => some + self.pop_elsewhere(&mut out[some..], of),
        }
    }

    #[cold]
    fn pop_elsewhere(&self, out: &mut [MaybeUninit<T>], of: impl Fn(usize) -> T) -> usize {
        let returned = self.returned.pop(out, of);
        match &mut out[returned..] {
            [] => returned,
            rest => returned + self.fresh.pop_burst(rest),
        }
    }

    /// Elements in the free list now, or `most` if there are more.
    pub(crate) fn len_up_to(&self, most: usize) -> usize {
        let counted = self.ring.len() + self.fresh.len();
        match most.checked_sub(counted) {
            None => most,
            Some(more) => counted + self.returned.len_up_to(more),
        }
    }

    /// Closes the list: no thread pops any more, or puts elements back as a handle does. `true` means the
    /// same as for [`give_back`](Self::give_back).
    ///
    /// # Safety
    /// `free` is valid until the last element is back. The caller was the last one who could pop,
    /// and has seen what all others did.
    #[must_use]
    pub(crate) unsafe fn close(free: *const Self) -> bool {
        // SAFETY: valid, as this handle is not counted yet; not used after the last step.
        let free = unsafe { &*free };
        let back = free.ring.len() + free.fresh.len() + free.returned.close();
        let out = free.fresh.capacity().wrapping_sub(back);
        // Orderings as in `give_back`.
        let counted = free
            .missing
            .fetch_add(out, ordering("free-list-missing", AcqRel));
        counted.wrapping_add(out) == 0
    }
}

/// Freeing counts as a write, so that loom reports any access that is not known to come before.
#[cfg(loom)]
impl<T> Drop for FreeList<T> {
    fn drop(&mut self) {
        // A second report while the first one unwinds would abort the test.
        if !std::thread::panicking() {
            self.missing.with_mut(|_| ());
        }
    }
}
