//! The return stack: takes back buffers that are freed outside of a poll loop's cache.
//!
//! Any thread may drop a buffer at any time, and may be preempted while it does so. In a ring such a
//! thread holds a claim, and everyone behind it waits until it runs again. Here it holds nothing: a
//! push or a pop is one compare-and-swap of the top, which either happens or does not (R. K. Treiber,
//! Systems Programming: Coping with Parallelism, IBM RJ 5118, 1986). A thread that is stopped
//! half-way does not delay others.
//!
//! Elements are numbers, and their links are an array beside them: the memory of a buffer is not
//! touched, and all accesses are atomic, so that a thread may follow a link that is changed under it.
//! What it found is thrown away then, as its exchange fails: the top has a tag that every pop changes.
//! The tag has 37 bits. A pop would have to be preempted for exactly 2^37 others to be deceived; at
//! ten million pops a second that is four hours.

use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use crate::ring::RingError;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{mutated, ordering};

/// Bits of an element's number in a word.
const NUMBER_BITS: u32 = 27;
const NUMBER: usize = (1 << NUMBER_BITS) - 1;

/// The number below the last element.
const NONE: usize = NUMBER;

/// The top of a stack that takes nothing any more.
const CLOSED: usize = NUMBER - 1;

/// Most elements that a stack can have.
pub(crate) const MAX_ELEMENTS: usize = CLOSED;

const _: () = assert!(usize::BITS == 64);

/// A lock-free stack of the numbers 0 to `elements - 1`, each of which is in it at most once.
pub(crate) struct ReturnStack {
    /// The number of the top element; above it the tag.
    top: CachePadded<AtomicUsize>,
    /// By number: that of the element below.
    links: Box<[AtomicUsize]>,
}

impl ReturnStack {
    /// An empty stack.
    pub(crate) fn new(elements: usize) -> Result<Self, RingError> {
        let bytes = elements.saturating_mul(size_of::<AtomicUsize>());
        let available = crate::region::available_memory();
        if elements > MAX_ELEMENTS || bytes > available {
            return Err(RingError::Memory {
                capacity: elements,
                bytes,
                available,
            });
        }
        Ok(Self {
            top: CachePadded::new(AtomicUsize::new(NONE)),
            // Written now, so that no page fault is left for later.
            links: (0..elements).map(|_| AtomicUsize::new(NONE)).collect(),
        })
    }

    /// Puts a number in; `false` if the stack is closed.
    ///
    /// # Safety
    /// `stack` is valid until the number is in, or until this returns `false`. Nothing of the stack
    /// is touched after that, so a thread that pops the number may free the stack before this call
    /// has returned; hence a pointer, as a reference would promise that it outlives the call.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn push(stack: *const Self, number: usize) -> bool {
        // SAFETY: valid until the exchange below has succeeded; not used after that.
        let stack = unsafe { &*stack };
        let Some(link) = stack.links.get(number) else {
            debug_assert!(false, "{number} is no number of this stack");
            return true;
        };
        let mut top = stack.top.load(Relaxed);
        loop {
            let below = top & NUMBER;
            if below == CLOSED {
                return false;
            }
            link.store(below, Relaxed);
            // Release pairs with the acquire in `pop` and `close`: a thread that finds the number
            // sees its link, and all that was done with the buffer. The pushes below this one stay
            // visible, as each exchange of the top continues their release sequences.
            match stack.top.compare_exchange_weak(
                top,
                top & !NUMBER | number,
                ordering("returns-push", Release),
                Relaxed,
            ) {
                Ok(_) => return true,
                Err(moved) => top = moved,
            }
        }
    }

    /// Takes up to `out.len()` numbers out, and what `of` makes of each into `out`; returns how many.
    pub(crate) fn pop<T>(&self, out: &mut [MaybeUninit<T>], of: impl Fn(usize) -> T) -> usize {
        // Acquire pairs with the release of `push`.
        let mut top = self.top.load(ordering("returns-pop", Acquire));
        loop {
            let (mut number, mut n) = (top & NUMBER, 0);
            while n < out.len()
                && let Some(link) = self.links.get(number)
            {
                out[n].write(of(number));
                number = link.load(Relaxed);
                n += 1;
            }
            if n == 0 {
                return 0;
            }
            let tag = if mutated("returns-tag") {
                0
            } else {
                NUMBER + 1
            };
            let rest = (top & !NUMBER).wrapping_add(tag) | number;
            match self.top.compare_exchange_weak(
                top,
                rest,
                ordering("returns-pop", Acquire),
                ordering("returns-pop", Acquire),
            ) {
                Ok(_) => return n,
                Err(moved) => top = moved,
            }
        }
    }

    /// Elements in the stack, of which no more than `most` are counted, one by one. While others push
    /// and pop this is a guess.
    pub(crate) fn len_up_to(&self, most: usize) -> usize {
        self.count(self.top.load(Acquire), most)
    }

    fn count(&self, top: usize, most: usize) -> usize {
        let (mut number, mut n) = (top & NUMBER, 0);
        // Links that change meanwhile may lead round, hence an end.
        while n < most
            && let Some(link) = self.links.get(number)
        {
            number = link.load(Relaxed);
            n += 1;
        }
        n
    }

    /// Closes the stack, and returns the number of elements in it. No thread may pop at the time or
    /// later.
    pub(crate) fn close(&self) -> usize {
        // Acquire pairs with the release of `push`.
        let top = self.top.swap(CLOSED, ordering("returns-close", AcqRel));
        self.count(top, self.links.len())
    }
}

/// Freeing counts as a write, so that loom reports any access that is not known to come before.
#[cfg(loom)]
impl Drop for ReturnStack {
    fn drop(&mut self) {
        // A second report while the first one unwinds would abort the test.
        if !std::thread::panicking() {
            self.top.with_mut(|_| ());
            self.links.iter_mut().for_each(|link| link.with_mut(|_| ()));
        }
    }
}
