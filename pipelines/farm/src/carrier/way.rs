//! A transmit queue with the frames that wait for it.

use std::collections::VecDeque;

use pollux_pmd::mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::port::TxQueue;

/// Frames of a burst.
const BURST: usize = 64;

/// A transmit queue with a burst in front of it, and frames behind that.
pub(super) struct Way {
    queue: TxQueue,
    waiting: Burst<BURST>,
    /// Frames that wait behind the burst; its capacity is never exceeded.
    behind: VecDeque<Mbuf>,
}

impl Way {
    pub(super) fn new(queue: TxQueue) -> Self {
        Self {
            queue,
            waiting: Burst::new(),
            behind: VecDeque::new(),
        }
    }

    /// So many frames may wait behind the burst.
    pub(super) fn reserve(&mut self, frames: usize) {
        self.behind.reserve_exact(frames);
    }

    /// Adds a frame; sends where the burst is full. Returns the frame if the queue has no room.
    pub(super) fn push(&mut self, frame: Mbuf, cache: &mut PoolCache) -> Option<Mbuf> {
        if self.waiting.is_full() {
            self.flush(cache);
        }
        if self.behind.is_empty() && !self.waiting.is_full() {
            return self.waiting.push(frame).err();
        }
        if self.behind.len() == self.behind.capacity() {
            return Some(frame);
        }
        self.behind.push_back(frame);
        None
    }

    /// Sends what the queue has room for.
    pub(super) fn flush(&mut self, cache: &mut PoolCache) {
        while !self.waiting.is_empty() {
            self.queue.tx(cache, &mut self.waiting);
            if !self.waiting.is_empty() || self.behind.is_empty() {
                break;
            }
            while let Some(frame) = self.behind.pop_front() {
                if let Err(frame) = self.waiting.push(frame) {
                    self.behind.push_front(frame);
                    break;
                }
            }
        }
    }

    /// Frames that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len() + self.behind.len()
    }

    /// The queue, and the number of frames that were not sent.
    pub(super) fn into_queue(self) -> (TxQueue, usize) {
        let waiting = self.waiting();
        (self.queue, waiting)
    }
}
