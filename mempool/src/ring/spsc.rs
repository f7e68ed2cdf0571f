//! A ring for one producer and one consumer, each with a handle of its own.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use super::error::RingError;
use super::slots::Slots;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{Acquire, Release};
use crate::sync::{Arc, atomic, mutated, ordering};

/// What both handles share. The indices are free-running.
struct Shared<T> {
    /// The first slot that the producer has not written. Moved by the producer alone.
    tail: CachePadded<AtomicUsize>,
    /// The first slot that the consumer has not read. Moved by the consumer alone.
    head: CachePadded<AtomicUsize>,
    slots: Slots<T>,
    capacity: usize,
}

/// Keeps a handle on one thread at a time: it can be sent, not shared.
type NotSync = PhantomData<Cell<()>>;

/// The side that pushes. It can be moved to another thread, not shared or cloned. On cache lines
/// of its own: two handles side by side would have the two cores fight for the line.
#[repr(align(128))]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// Our own index; the shared copy is for the consumer.
    tail: usize,
    /// The consumer's index as last seen. It only grows, so it is re-read (a cache line that the
    /// other core keeps writing) only when it leaves too little room.
    head_seen: usize,
    not_sync: NotSync,
}

/// The side that pops. It can be moved to another thread, not shared or cloned. On cache lines of
/// its own, as the other side is.
#[repr(align(128))]
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Our own index; the shared copy is for the producer.
    head: usize,
    /// The producer's index as last seen; re-read only when it leaves too few items.
    tail_seen: usize,
    not_sync: NotSync,
}

/// Makes an empty ring for exactly `capacity` items.
///
/// # Errors
/// [`RingError::Capacity`] outside 1..=[`MAX_CAPACITY`](super::MAX_CAPACITY);
/// [`RingError::Memory`] if there is not enough memory for the slots.
pub fn channel<T: Copy + Send>(capacity: usize) -> Result<(Producer<T>, Consumer<T>), RingError> {
    let shared = Arc::new(Shared {
        tail: CachePadded::new(AtomicUsize::new(0)),
        head: CachePadded::new(AtomicUsize::new(0)),
        slots: Slots::new(capacity)?,
        capacity,
    });
    let producer = Producer {
        shared: Arc::clone(&shared),
        tail: 0,
        head_seen: 0,
        not_sync: PhantomData,
    };
    Ok((
        producer,
        Consumer {
            shared,
            head: 0,
            tail_seen: 0,
            not_sync: PhantomData,
        },
    ))
}

impl<T: Copy + Send> Producer<T> {
    /// Pushes all `items`, or none if there is no room for all.
    #[must_use = "false says that nothing was pushed"]
    #[inline]
    pub fn push_bulk(&mut self, items: &[T]) -> bool {
        let fits = self.room(items.len()) >= items.len();
        if fits {
            self.put(items);
        }
        fits
    }

    /// Pushes as many of `items` as there is room for, the first ones first; returns how many.
    #[must_use = "the items that did not fit are still the caller's"]
    #[inline]
    pub fn push_burst(&mut self, items: &[T]) -> usize {
        let n = self.room(items.len()).min(items.len());
        self.put(&items[..n]);
        n
    }

    /// Pushes one item; `false` if the ring is full.
    #[must_use = "false says that the ring is full"]
    #[inline]
    pub fn push(&mut self, item: T) -> bool {
        self.push_bulk(&[item])
    }

    /// Items that there is room for. Only this handle can make it less.
    #[must_use]
    pub fn free(&self) -> usize {
        self.shared.capacity - self.len()
    }

    /// Items in the ring. Only this handle can make it more.
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire pairs with the Release of `Consumer::take`: room that is seen is usable.
        self.tail.wrapping_sub(self.shared.head.load(Acquire))
    }

    /// Whether the ring holds no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that the ring can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.capacity
    }

    /// Whether the consumer is gone, so that nothing pushed will ever be popped.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) < 2
    }

    /// Room for `want` items or more, if there is; else the exact room.
    #[inline(always)]
    fn room(&mut self, want: usize) -> usize {
        let used = self.tail.wrapping_sub(self.head_seen);
        let room = self.shared.capacity - used;
        if room >= want {
            return room;
        }
        // Acquire pairs with the Release of `Consumer::take`: the consumer's copies out of these
        // slots are done before ours go in.
        self.head_seen = self.shared.head.load(ordering("spsc-head-load", Acquire));
        self.shared.capacity - self.tail.wrapping_sub(self.head_seen)
    }

    /// Copies and publishes; there is room for `items`.
    #[inline(always)]
    fn put(&mut self, items: &[T]) {
        let end = self.tail.wrapping_add(items.len());
        if mutated("spsc-push-order") {
            self.shared.tail.store(end, Release);
        }
        // SAFETY: slots from our tail up to the room are the producer's alone, until the store
        // below hands them to the consumer.
        unsafe { self.shared.slots.write(self.tail, items) };
        self.tail = end;
        // The next burst is likely of the same length. What the consumer has yet to read is left
        // to it.
        if self.shared.capacity - end.wrapping_sub(self.head_seen) >= items.len() {
            self.shared.slots.prefetch_write(end, items.len());
        }
        self.shared
            .tail
            .store(end, ordering("spsc-tail-store", Release));
    }
}

impl<T: Copy + Send> Consumer<T> {
    /// Fills all of `out` and returns `true`, or takes nothing if there are fewer items.
    #[must_use = "false says that nothing was popped"]
    #[inline]
    pub fn pop_bulk(&mut self, out: &mut [MaybeUninit<T>]) -> bool {
        let there = self.ready(out.len()) >= out.len();
        if there {
            self.take(out);
        }
        there
    }

    /// Pops as many items as there are, up to all of `out`; returns how many. That many elements
    /// at the beginning of `out` are initialised.
    #[must_use = "only that many elements are initialised"]
    #[inline]
    pub fn pop_burst(&mut self, out: &mut [MaybeUninit<T>]) -> usize {
        let n = self.ready(out.len()).min(out.len());
        self.take(&mut out[..n]);
        n
    }

    /// Pops one item, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let mut item = [MaybeUninit::uninit()];
        // SAFETY: `pop_bulk` fills the whole slice when it returns true.
        self.pop_bulk(&mut item)
            .then(|| unsafe { item[0].assume_init() })
    }

    /// Items in the ring. Only this handle can make it less.
    #[must_use]
    pub fn len(&self) -> usize {
        // Acquire pairs with the Release of `Producer::put`: an item that is seen is there.
        self.shared.tail.load(Acquire).wrapping_sub(self.head)
    }

    /// Whether the ring holds no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that there is room for. Only this handle can make it more.
    #[must_use]
    pub fn free(&self) -> usize {
        self.shared.capacity - self.len()
    }

    /// Items that the ring can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.capacity
    }

    /// Whether the producer is gone, so that what is in the ring now is the last of it.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        let gone = Arc::strong_count(&self.shared) < 2;
        // Pairs with the Release of the producer's drop (of its `Arc`): an empty ring after this
        // stays empty.
        atomic::fence(Acquire);
        gone
    }

    /// `want` items or more, if there are; else the exact count.
    #[inline(always)]
    fn ready(&mut self, want: usize) -> usize {
        let ready = self.tail_seen.wrapping_sub(self.head);
        if ready >= want {
            return ready;
        }
        // Acquire pairs with the Release of `Producer::put`: the items are written.
        self.tail_seen = self.shared.tail.load(ordering("spsc-tail-load", Acquire));
        self.tail_seen.wrapping_sub(self.head)
    }

    /// Copies out and hands the slots back; as many items are there.
    #[inline(always)]
    fn take(&mut self, out: &mut [MaybeUninit<T>]) {
        let end = self.head.wrapping_add(out.len());
        if mutated("spsc-pop-order") {
            self.shared.head.store(end, Release);
        }
        // SAFETY: slots from our head up to the producer's tail are written and the consumer's
        // alone, until the store below hands them back.
        unsafe { self.shared.slots.read(self.head, out) };
        self.head = end;
        self.shared
            .head
            .store(end, ordering("spsc-head-store", Release));
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("capacity", &self.shared.capacity)
            .field("pushed", &self.tail)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("capacity", &self.shared.capacity)
            .field("popped", &self.head)
            .finish_non_exhaustive()
    }
}
