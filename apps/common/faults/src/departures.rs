//! Queue of frames in the order of their departure.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use pollux_mempool::time::Ns;

use crate::frame::Frame;

/// Ordered by time; of equal times, frames that were held back last, and otherwise in arrival
/// order.
#[derive(Debug)]
struct Queued<F> {
    key: (Ns, bool, u64),
    frame: F,
}

impl<F> PartialEq for Queued<F> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<F> Eq for Queued<F> {}

impl<F> PartialOrd for Queued<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> Ord for Queued<F> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

#[derive(Debug)]
pub(crate) struct Departures<F> {
    queue: BinaryHeap<Reverse<Queued<F>>>,
    came: u64,
}

impl<F: Frame> Departures<F> {
    /// Allocates nothing while at most `room` frames wait.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            queue: BinaryHeap::with_capacity(room),
            came: 0,
        }
    }

    pub(crate) fn push(&mut self, frame: F, held_back: bool) {
        let key = (frame.due(), held_back, self.came);
        self.came += 1;
        self.queue.push(Reverse(Queued { key, frame }));
    }

    /// The first frame to depart, unless a frame that is pushed later, due at `horizon` at the
    /// earliest, may precede it. `None` as horizon: no further frames are pushed.
    pub(crate) fn first(&self, horizon: Option<Ns>) -> Option<&F> {
        let Reverse(Queued { key, frame }) = self.queue.peek()?;
        // Of frames due at one time, those that are not held back depart first, in arrival order.
        let (due, held_back, _) = *key;
        let is_certain = |horizon| (due, held_back) <= (horizon, false);
        horizon.is_none_or(is_certain).then_some(frame)
    }

    pub(crate) fn pop(&mut self) -> Option<F> {
        self.queue.pop().map(|Reverse(queued)| queued.frame)
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}
