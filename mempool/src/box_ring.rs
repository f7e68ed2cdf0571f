//! A ring of boxes between two threads: work and its results, settings and those that they replace.
//!
//! A box changes its owner and stays where it is, so the cost of a
//! move does not depend on its size, and neither side allocates or frees.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::ring::{RingError, spsc};
use crate::ring_state::RingState;

/// A box that the ring carries.
struct Raw<T>(NonNull<T>);

impl<T> Clone for Raw<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Raw<T> {}

// SAFETY: it represents the box, which may be sent where `T` may be.
unsafe impl<T: Send> Send for Raw<T> {}

impl<T> Raw<T> {
    fn new(item: Box<T>) -> Self {
        Self(NonNull::from(Box::leak(item)))
    }

    /// # Safety
    /// Called once for each box: by who took it out of the ring, or did not get it in.
    unsafe fn into_box(self) -> Box<T> {
        // SAFETY: the pointer is that of a leaked box, which has no other owner by the caller's
        // promise.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}

/// Makes a ring that holds up to `capacity` boxes.
///
/// # Errors
/// A capacity of zero or above the largest one.
pub fn box_ring<T: Send>(capacity: usize) -> Result<(BoxProducer<T>, BoxConsumer<T>), RingError> {
    let (producer, consumer) = spsc::channel(capacity)?;
    let state = Arc::<RingState<Raw<T>>>::default();
    Ok((
        BoxProducer {
            ring: producer,
            state: Arc::clone(&state),
        },
        BoxConsumer {
            ring: Some(consumer),
            state,
        },
    ))
}

/// The end that boxes are put in at.
pub struct BoxProducer<T: Send> {
    ring: spsc::Producer<Raw<T>>,
    state: Arc<RingState<Raw<T>>>,
}

impl<T: Send> BoxProducer<T> {
    /// Hands a box over.
    ///
    /// # Errors
    /// Gives it back if the ring is full.
    #[inline]
    pub fn push(&mut self, item: Box<T>) -> Result<(), Box<T>> {
        let raw = Raw::new(item);
        if self.ring.push(raw) {
            return Ok(());
        }
        // SAFETY: the ring did not take it.
        Err(unsafe { raw.into_box() })
    }

    /// Boxes that fit now, at least.
    #[must_use]
    pub fn free(&self) -> usize {
        self.ring.free()
    }
}

/// The end that boxes are taken out at.
pub struct BoxConsumer<T: Send> {
    /// Present until dropped.
    ring: Option<spsc::Consumer<Raw<T>>>,
    state: Arc<RingState<Raw<T>>>,
}

impl<T: Send> BoxConsumer<T> {
    /// Takes the oldest box, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<Box<T>> {
        let raw = self.ring.as_mut()?.pop()?;
        // SAFETY: the ring gave it up.
        Some(unsafe { raw.into_box() })
    }

    /// Whether the producer is gone, so that what is in the ring now is the last of it.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        let gone = Arc::strong_count(&self.state) < 2;
        // Pairs with the Release of the producer's drop (of its `Arc`): an empty ring after this
        // stays empty.
        fence(Ordering::Acquire);
        gone
    }
}

/// Drops all boxes that are still in the ring.
fn drain<T>(mut ring: spsc::Consumer<Raw<T>>)
where
    T: Send,
{
    while let Some(raw) = ring.pop() {
        // SAFETY: the ring gave it up.
        drop(unsafe { raw.into_box() });
    }
}

impl<T: Send> Drop for BoxProducer<T> {
    fn drop(&mut self) {
        self.state.producer_leaves().into_iter().for_each(drain);
    }
}

impl<T: Send> Drop for BoxConsumer<T> {
    fn drop(&mut self) {
        let ring = self.ring.take();
        let left = ring.and_then(|ring| self.state.consumer_leaves(ring));
        left.into_iter().for_each(drain);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Counts how many of its kind there are.
    struct Counted(Arc<AtomicUsize>);

    impl Counted {
        fn new(count: &Arc<AtomicUsize>) -> Self {
            count.fetch_add(1, Ordering::Relaxed);
            Self(Arc::clone(count))
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn boxes_keep_their_order_and_come_back_from_a_full_ring() {
        let (mut tx, mut rx) = box_ring(2).unwrap();
        assert!(rx.pop().is_none());
        tx.push(Box::new(1)).unwrap();
        tx.push(Box::new(2)).unwrap();
        assert_eq!(tx.free(), 0);
        assert_eq!(*tx.push(Box::new(3)).unwrap_err(), 3);
        assert_eq!(rx.pop().as_deref(), Some(&1));
        tx.push(Box::new(4)).unwrap();
        assert_eq!([rx.pop(), rx.pop()].map(Option::unwrap).map(|n| *n), [2, 4]);
        assert!(!rx.is_abandoned());
        drop(tx);
        assert!(rx.is_abandoned() && rx.pop().is_none());
    }

    #[test]
    fn the_last_side_to_end_drops_what_is_in_flight() {
        for producer_first in [true, false] {
            let count = Arc::default();
            let (mut tx, mut rx) = box_ring(8).unwrap();
            for _ in 0..8 {
                assert!(tx.push(Box::new(Counted::new(&count))).is_ok());
            }
            drop(rx.pop());
            if producer_first {
                drop(tx);
                assert_eq!(count.load(Ordering::Relaxed), 7);
                drop(rx);
            } else {
                drop(rx);
                // The producer drops what it pushes after the consumer's end.
                assert!(tx.push(Box::new(Counted::new(&count))).is_ok());
                drop(tx);
            }
            assert_eq!(count.load(Ordering::Relaxed), 0);
        }
    }
}
