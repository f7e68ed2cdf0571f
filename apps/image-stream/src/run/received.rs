//! The time until which a loop has received all that came.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_pipelines::Moment;

/// The time until which a loop has received all that came. Images are late by this time: by the clock they
/// would be as soon as a loop is held up, with their packets in its queues.
#[derive(Clone, Default)]
pub struct ReceivedUntil(Arc<AtomicU64>);

impl ReceivedUntil {
    pub fn set(&self, time: Moment) {
        // Relaxed: the packets are published by their frames.
        self.0.store(time.0, Ordering::Relaxed);
    }

    /// The loop has ended.
    pub fn end(&self) {
        self.set(Moment(u64::MAX));
    }

    /// The time; without an end when the loop has ended.
    pub fn get(&self) -> Moment {
        Moment(self.0.load(Ordering::Relaxed))
    }
}
