//! `RxState`: whether a receive queue can still yield frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crossbeam_utils::CachePadded;

/// Whether a receive queue can still yield frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxState {
    /// It can yield frames.
    Live,
    /// Its link is down.
    Down,
    /// Its recording has ended. Final.
    Exhausted,
    /// Its device has disappeared. Final. ([`Link::gone`](crate::driver::Link::gone) also reports a
    /// device that still works but that its owner has requested back.)
    Gone,
}

impl RxState {
    /// Whether no further frames can arrive.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Exhausted | Self::Gone)
    }
}

/// State of receive queues that housekeeping writes and poll loops read, so that no poll loop reads a
/// register. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SharedRxState(Arc<CachePadded<AtomicU8>>);

impl SharedRxState {
    /// Sets the state. Relaxed, as the load: the state orders nothing.
    pub fn set(&self, state: RxState) {
        let code = match state {
            RxState::Live => 0,
            RxState::Down => 1,
            RxState::Exhausted => 2,
            RxState::Gone => 3,
        };
        self.0.store(code, Ordering::Relaxed);
    }

    /// The last value set; initially live.
    #[must_use]
    pub fn get(&self) -> RxState {
        match self.0.load(Ordering::Relaxed) {
            1 => RxState::Down,
            2 => RxState::Exhausted,
            3 => RxState::Gone,
            _ => RxState::Live,
        }
    }
}
