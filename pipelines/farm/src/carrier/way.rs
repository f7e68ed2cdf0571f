//! A transmit queue with the frames that wait for it.

use pollux_pmd::mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::port::TxQueue;

/// Frames that wait at most.
const BURST: usize = 64;

/// A transmit queue with a burst in front of it.
pub(super) struct Way {
    queue: TxQueue,
    waiting: Burst<BURST>,
}

impl Way {
    pub(super) fn new(queue: TxQueue) -> Self {
        Self {
            queue,
            waiting: Burst::new(),
        }
    }

    /// Adds a frame; sends where the burst is full. Returns the frame if the queue has no room.
    pub(super) fn push(&mut self, frame: Mbuf, cache: &mut PoolCache) -> Option<Mbuf> {
        if self.waiting.is_full() {
            self.flush(cache);
        }
        self.waiting.push(frame).err()
    }

    /// Sends what the queue has room for.
    pub(super) fn flush(&mut self, cache: &mut PoolCache) {
        if !self.waiting.is_empty() {
            self.queue.tx(cache, &mut self.waiting);
        }
    }

    /// Frames that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The queue, and the number of frames that were not sent.
    pub(super) fn into_queue(self) -> (TxQueue, usize) {
        let Self { queue, waiting } = self;
        (queue, waiting.len())
    }
}
