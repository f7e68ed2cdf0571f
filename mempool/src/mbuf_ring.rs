//! A ring of owned buffers between two threads: the wire of `loopback`, the link between stages.

use std::sync::Arc;

use crate::buffers::RawMbuf;
use crate::burst::BurstMut;
use crate::mbuf::Mbuf;
use crate::ring::{RingError, spsc};
use crate::ring_state::RingState;

/// Makes a ring that holds up to `capacity` buffers.
///
/// # Errors
/// A capacity of zero or above the largest one.
pub fn mbuf_ring(capacity: usize) -> Result<(MbufProducer, MbufConsumer), RingError> {
    let (producer, consumer) = spsc::channel(capacity)?;
    let state = Arc::<RingState<RawMbuf>>::default();
    Ok((
        MbufProducer {
            ring: producer,
            state: Arc::clone(&state),
        },
        MbufConsumer {
            ring: Some(consumer),
            state,
        },
    ))
}

/// The end that buffers are put in at.
pub struct MbufProducer {
    ring: spsc::Producer<RawMbuf>,
    state: Arc<RingState<RawMbuf>>,
}

impl MbufProducer {
    /// Moves buffers from the front of the burst into the ring, as many as fit; returns how many.
    #[inline]
    pub fn push(&mut self, burst: &mut BurstMut<'_>) -> usize {
        let n = burst.len();
        self.push_front(burst, n)
    }

    /// Moves the first `n` buffers of the burst (or all, if there are fewer) into the ring, as many
    /// as fit; returns how many.
    #[inline]
    pub fn push_front(&mut self, burst: &mut BurstMut<'_>, n: usize) -> usize {
        let n = n.min(burst.len());
        let n = self.ring.push_burst(&burst.raw()[..n]);
        // SAFETY: the ring took the first `n` buffers, and the consumer's end is responsible now.
        unsafe { burst.forget_front(n) };
        n
    }

    /// Buffers that fit now, at least.
    #[must_use]
    pub fn free(&self) -> usize {
        self.ring.free()
    }
}

/// The end that buffers are taken out at.
pub struct MbufConsumer {
    /// Present until dropped.
    ring: Option<spsc::Consumer<RawMbuf>>,
    state: Arc<RingState<RawMbuf>>,
}

impl MbufConsumer {
    /// Moves buffers from the ring to the end of the burst, as many as fit and are there; returns
    /// how many.
    #[inline]
    pub fn pop(&mut self, burst: &mut BurstMut<'_>) -> usize {
        let Some(ring) = &mut self.ring else { return 0 };
        let n = ring.pop_burst(burst.vacant());
        // SAFETY: the ring filled the first `n` vacant slots, and gave up the buffers.
        unsafe { burst.assume_pushed(n) };
        n
    }

    /// Buffers in the ring now, at least.
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

/// Returns all buffers that are still in the ring to their pools.
fn drain(mut ring: spsc::Consumer<RawMbuf>) {
    while let Some(raw) = ring.pop() {
        // SAFETY: the ring gave the buffer up, so this is its one owner.
        drop(unsafe { Mbuf::from_raw(raw) });
    }
}

impl Drop for MbufProducer {
    fn drop(&mut self) {
        self.state.producer_leaves().into_iter().for_each(drain);
    }
}

impl Drop for MbufConsumer {
    fn drop(&mut self) {
        let ring = self.ring.take();
        let left = ring.and_then(|ring| self.state.consumer_leaves(ring));
        left.into_iter().for_each(drain);
    }
}
