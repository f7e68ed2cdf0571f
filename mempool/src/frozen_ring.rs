//! A ring of shared frames between two threads: the link to one of several consumers of an event.

use std::sync::Arc;

use crate::buffers::RawMbuf;
use crate::frozen::Frozen;
use crate::ring::{RingError, spsc};
use crate::ring_state::RingState;

/// Makes a ring that holds up to `capacity` shared frames.
///
/// # Errors
/// A capacity of zero or above the largest one.
pub fn frozen_ring(capacity: usize) -> Result<(FrozenProducer, FrozenConsumer), RingError> {
    let (producer, consumer) = spsc::channel(capacity)?;
    let state = Arc::<RingState<RawMbuf>>::default();
    Ok((
        FrozenProducer {
            ring: producer,
            state: Arc::clone(&state),
        },
        FrozenConsumer {
            ring: Some(consumer),
            state,
        },
    ))
}

/// The end that frames are put in at.
pub struct FrozenProducer {
    ring: spsc::Producer<RawMbuf>,
    state: Arc<RingState<RawMbuf>>,
}

impl FrozenProducer {
    /// Hands a frame over.
    ///
    /// # Errors
    /// Gives it back if the ring is full.
    #[inline]
    pub fn push(&mut self, frame: Frozen) -> Result<(), Frozen> {
        let raw = frame.into_raw();
        if self.ring.push(raw) {
            return Ok(());
        }
        // SAFETY: the ring did not take it.
        Err(unsafe { Frozen::from_raw(raw) })
    }

    /// Frames that fit now, at least.
    #[must_use]
    #[inline]
    pub fn free(&self) -> usize {
        self.ring.free()
    }

    /// Whether the consumer was dropped, so that no space will become free. Takes a lock.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.state.has_orphan()
    }
}

/// The end that frames are taken out at.
pub struct FrozenConsumer {
    /// Present until dropped.
    ring: Option<spsc::Consumer<RawMbuf>>,
    state: Arc<RingState<RawMbuf>>,
}

impl FrozenConsumer {
    /// Takes the oldest frame, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<Frozen> {
        let raw = self.ring.as_mut()?.pop()?;
        // SAFETY: the ring gave it up.
        Some(unsafe { Frozen::from_raw(raw) })
    }

    /// Frames in the ring now, at least.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.as_ref().map_or(0, spsc::Consumer::len)
    }

    /// Whether the ring was seen empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Drops all frames that are still in the ring.
fn drain(mut ring: spsc::Consumer<RawMbuf>) {
    while let Some(raw) = ring.pop() {
        // SAFETY: the ring gave it up.
        drop(unsafe { Frozen::from_raw(raw) });
    }
}

impl Drop for FrozenProducer {
    fn drop(&mut self) {
        self.state.producer_leaves().into_iter().for_each(drain);
    }
}

impl Drop for FrozenConsumer {
    fn drop(&mut self) {
        let ring = self.ring.take();
        let left = ring.and_then(|ring| self.state.consumer_leaves(ring));
        left.into_iter().for_each(drain);
    }
}
