//! Decisions for the embedding program: calls its handler with each, outside of the poll loop.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use pollux_na62::l0::L0Record;
use pollux_pmd::event::EventConsumer;

use crate::file_counts::FileCounts;
use crate::tap::{self, Tap};

/// A function that is called with each decision.
pub type DecisionHandler = Arc<Mutex<dyn FnMut(&L0Record) + Send>>;

/// A tap, and the handler of its records.
pub struct DecisionOutput {
    queue: EventConsumer,
    handler: DecisionHandler,
}

impl DecisionOutput {
    /// Adds a tap for a handler; returns the output, and the counts of the tap.
    pub fn new(handler: DecisionHandler, taps: &mut Vec<Tap>) -> Result<(Self, Arc<FileCounts>)> {
        let (queue, counts) = tap::add(taps, true)?;
        Ok((Self { queue, handler }, counts))
    }

    /// Calls the handler with up to `limit` decisions; returns their number.
    pub fn poll(&mut self, limit: usize) -> usize {
        // Not contended: only one thread uses it during a run.
        let mut handler = self.handler.lock().unwrap_or_else(PoisonError::into_inner);
        for n in 0..limit {
            let Some(event) = self.queue.poll() else {
                return n;
            };
            if let Some(record) = L0Record::from_event(&event) {
                handler(&record);
            }
        }
        limit
    }
}
