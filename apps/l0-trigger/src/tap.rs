//! Taps: copies of the decisions as event records, for consumers outside of the loop.

use std::sync::Arc;

use anyhow::Result;
use pollux_pmd::event::{EventConsumer, EventProducer, EventQueue, RegionOptions};

use crate::file_counts::FileCounts;

/// Number of records between the trigger loop and their consumer: more than half a second at 100
/// kHz.
pub const TAP_RECORDS: usize = 1 << 16;

/// The queue to a consumer of event records.
pub struct Tap {
    pub producer: EventProducer,
    /// Whether records include their burst.
    pub bursts: bool,
    pub counts: Arc<FileCounts>,
}

/// Adds a tap; returns its queue, and its counts.
pub fn add(taps: &mut Vec<Tap>, bursts: bool) -> Result<(EventConsumer, Arc<FileCounts>)> {
    let queue = EventQueue::new(TAP_RECORDS, &RegionOptions::default())?;
    let (producer, consumer) = queue.split();
    let counts = Arc::<FileCounts>::default();
    taps.push(Tap {
        producer,
        bursts,
        counts: Arc::clone(&counts),
    });
    Ok((consumer, counts))
}
