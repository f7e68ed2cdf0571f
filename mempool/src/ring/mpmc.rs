//! A ring for any number of producers and consumers.
//!
//! Each side has a head and a tail. To move items, a thread claims slots by moving its side's head
//! (compare-and-swap), copies, waits until every claim before its own has been published, and
//! publishes by moving the tail. The head orders the claims, the tail the completed copies.

use core::fmt;
use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use super::error::RingError;
use super::slots::Slots;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{mutated, ordering, wait_until};

/// A bounded queue that any number of threads push to and pop from.
///
/// Items leave in the order in which their slots were claimed. The ring is not lock-free in the
/// strict sense: a thread that is preempted between its claim and its publication holds up the
/// others of its side, which spin for a few microseconds and then yield their core. Poll loops on
/// cores of their own never get there. (Threads that are preempted free packet buffers by dropping
/// them, and a drop takes no part in a ring.)
pub struct Mpmc<T> {
    producers: CachePadded<Side>,
    consumers: CachePadded<Side>,
    slots: Slots<T>,
    capacity: usize,
}

/// One side's free-running indices. Both only grow, `tail <= head`.
struct Side {
    /// The first slot that is unclaimed on this side.
    head: AtomicUsize,
    /// The first slot whose copy is not known to be finished.
    tail: AtomicUsize,
}

/// Slots that one thread owns until it publishes them.
struct Claim {
    start: usize,
    len: usize,
}

impl Claim {
    fn end(&self) -> usize {
        self.start.wrapping_add(self.len)
    }
}

impl Side {
    fn new() -> CachePadded<Self> {
        CachePadded::new(Self {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
        })
    }

    /// Claims up to `most` slots, and none if there are fewer than `least` (at least one).
    /// A slot is there when the `other` side has published it; `lead` is how far this side may be
    /// ahead of the other: the capacity for producers, zero for consumers.
    #[inline(always)]
    fn claim(&self, other: &Side, lead: usize, least: usize, most: usize) -> Option<Claim> {
        // Acquire pairs with the Release of the exchange below: the thread that moved the head up to here
        // had seen the other tail far enough, so our look at that tail is at least as fresh, and
        // the difference below cannot be negative (it would pass for a huge count).
        let mut start = self.head.load(ordering("mpmc-head-load", Acquire));
        loop {
            // Acquire pairs with the Release in `publish` of the other side: the copies out of
            // (or into) these slots are done before ours begin.
            let other_tail = other.tail.load(ordering("mpmc-other-tail", Acquire));
            let len = lead.wrapping_add(other_tail).wrapping_sub(start).min(most);
            if len < least {
                return None;
            }
            match self.head.compare_exchange_weak(
                start,
                start.wrapping_add(len),
                ordering("mpmc-head-swap", Release),
                ordering("mpmc-head-load", Acquire),
            ) {
                Ok(_) => return Some(Claim { start, len }),
                Err(moved) => start = moved,
            }
        }
    }

    /// Waits until every claim before this one is published.
    #[inline(always)]
    fn wait_turn(&self, claim: &Claim) {
        // Acquire pairs with the Release in `publish` of the thread before us. Our own Release
        // then covers its copy too, for the other side only ever reads the newest tail. A Relaxed
        // wait would break that chain; x86 would hide it.
        wait_until(|| self.tail.load(ordering("mpmc-turn", Acquire)) == claim.start);
    }

    /// Hands the slots of `claim` to the other side. It must be this claim's turn.
    #[inline(always)]
    fn publish(&self, claim: &Claim) {
        self.tail
            .store(claim.end(), ordering("mpmc-publish", Release));
    }
}

/// Freeing counts as a write, so that loom reports any access that is not known to come before.
#[cfg(loom)]
impl Drop for Side {
    fn drop(&mut self) {
        // A second report while the first one unwinds would abort the test.
        if !std::thread::panicking() {
            self.head.with_mut(|_| ());
            self.tail.with_mut(|_| ());
        }
    }
}

impl<T: Copy + Send> Mpmc<T> {
    /// Makes an empty ring for exactly `capacity` items.
    ///
    /// # Errors
    /// [`RingError::Capacity`] outside 1..=[`MAX_CAPACITY`](super::MAX_CAPACITY);
    /// [`RingError::Memory`] if there is not enough memory for the slots.
    pub fn new(capacity: usize) -> Result<Self, RingError> {
        Ok(Self {
            producers: Side::new(),
            consumers: Side::new(),
            slots: Slots::new(capacity)?,
            capacity,
        })
    }

    /// Pushes all `items`, or none if there is no room for all.
    #[must_use = "false says that nothing was pushed"]
    #[inline]
    pub fn push_bulk(&self, items: &[T]) -> bool {
        items.is_empty() || self.push_between(items.len(), items) > 0
    }

    /// Pushes as many of `items` as there is room for, the first ones first; returns how many.
    #[must_use = "the items that did not fit are still the caller's"]
    #[inline]
    pub fn push_burst(&self, items: &[T]) -> usize {
        self.push_between(1, items)
    }

    /// Pushes one item; `false` if the ring is full.
    #[must_use = "false says that the ring is full"]
    #[inline]
    pub fn push(&self, item: T) -> bool {
        self.push_bulk(&[item])
    }

    /// Fills all of `out` and returns `true`, or takes nothing if there are fewer items.
    #[must_use = "false says that nothing was popped"]
    #[inline]
    pub fn pop_bulk(&self, out: &mut [MaybeUninit<T>]) -> bool {
        out.is_empty() || self.pop_between(out.len(), out) > 0
    }

    /// Pops as many items as there are, up to all of `out`; returns how many. That many elements
    /// at the beginning of `out` are initialised.
    #[must_use = "only that many elements are initialised"]
    #[inline]
    pub fn pop_burst(&self, out: &mut [MaybeUninit<T>]) -> usize {
        self.pop_between(1, out)
    }

    /// Pops one item, if there is one.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let mut item = [MaybeUninit::uninit()];
        // SAFETY: `pop_bulk` fills the whole slice when it returns true.
        self.pop_bulk(&mut item)
            .then(|| unsafe { item[0].assume_init() })
    }

    /// Items in the ring. While others push and pop this is a value between then and now.
    #[must_use]
    pub fn len(&self) -> usize {
        // The consumers first: their tail never passes the producers', so the difference cannot
        // be negative; items may come in between the two loads, hence the limit.
        // Acquire pairs with the Release in `publish`; the two loads may not be exchanged.
        let taken = self.consumers.tail.load(Acquire);
        self.producers
            .tail
            .load(Acquire)
            .wrapping_sub(taken)
            .min(self.capacity)
    }

    /// Whether the ring holds no item; as fleeting as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that there is room for; as fleeting as [`len`](Self::len).
    #[must_use]
    pub fn free(&self) -> usize {
        self.capacity - self.len()
    }

    /// Items that the ring can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    #[inline(always)]
    fn fill(&self, claim: &Claim, items: &[T]) {
        // SAFETY: the claim gives this thread alone `items.len()` slots from its start.
        unsafe { self.slots.write(claim.start, items) };
    }

    /// Pushes between `least` (at least one) and all of `items`; returns how many, or zero.
    #[inline(always)]
    fn push_between(&self, least: usize, items: &[T]) -> usize {
        let (other, capacity) = (&self.consumers, self.capacity);
        let Some(claim) = self.producers.claim(other, capacity, least, items.len()) else {
            return 0;
        };
        let late = mutated("mpmc-push-order");
        if !late {
            self.fill(&claim, &items[..claim.len]);
        }
        self.producers.wait_turn(&claim);
        self.producers.publish(&claim);
        if late {
            self.fill(&claim, &items[..claim.len]);
        }
        claim.len
    }

    /// Pops between `least` (at least one) and all of `out`; returns how many, or zero.
    #[inline(always)]
    fn pop_between(&self, least: usize, out: &mut [MaybeUninit<T>]) -> usize {
        let Some(claim) = self.consumers.claim(&self.producers, 0, least, out.len()) else {
            return 0;
        };
        let late = mutated("mpmc-pop-order");
        if late {
            self.consumers.wait_turn(&claim);
            self.consumers.publish(&claim);
        }
        // SAFETY: the claim gives this thread alone these slots, and the producers' published
        // tail says that they are written.
        unsafe { self.slots.read(claim.start, &mut out[..claim.len]) };
        if !late {
            self.consumers.wait_turn(&claim);
            self.consumers.publish(&claim);
        }
        claim.len
    }
}

impl<T> fmt::Debug for Mpmc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpmc")
            .field("capacity", &self.capacity)
            .field("pushed", &self.producers.tail.load(Relaxed))
            .field("popped", &self.consumers.tail.load(Relaxed))
            .finish_non_exhaustive()
    }
}
