//! The two ends of a ring of owned things: what is in flight when both are gone has an owner still.

use std::sync::{Mutex, PoisonError};

use crate::ring::spsc;

/// What the last of the two ends finds: the consumer's half of the ring, if that end went first.
/// Shared by both; locked when an end is dropped, or asks for the other.
pub(crate) struct RingState<R>(Mutex<State<R>>);

struct State<R> {
    producer_gone: bool,
    orphan: Option<spsc::Consumer<R>>,
}

impl<R> Default for RingState<R> {
    fn default() -> Self {
        Self(Mutex::new(State {
            producer_gone: false,
            orphan: None,
        }))
    }
}

impl<R> RingState<R> {
    /// The producer goes; what it has to empty.
    pub(crate) fn producer_leaves(&self) -> Option<spsc::Consumer<R>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.producer_gone = true;
        state.orphan.take()
    }

    /// The consumer goes; what it has to empty: its ring, unless the producer is still there.
    pub(crate) fn consumer_leaves(&self, ring: spsc::Consumer<R>) -> Option<spsc::Consumer<R>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.producer_gone {
            return Some(ring);
        }
        state.orphan = Some(ring);
        None
    }

    /// Whether the consumer has gone, and the producer is still there.
    pub(crate) fn has_orphan(&self) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.orphan.is_some()
    }
}
