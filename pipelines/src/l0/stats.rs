//! Counters of the L0 stages. Each is written by one stage and read by whoever reports.

use std::sync::Arc;

use pollux_pmd::Count;

use super::MAX_SOURCES;

/// What is counted for one source.
#[derive(Debug, Default)]
pub struct SourceCounts {
    /// Frames with a readable payload.
    pub frames: Count,
    /// Frames that sequence numbers say never arrived, or arrived unreadable: a number in a frame
    /// that was dropped as corrupt is not believed, so such a frame is counted there as well.
    pub missing: Count,
    /// Times that the sequence jumped ahead.
    pub gaps: Count,
    /// Frames that came twice.
    pub duplicates: Count,
    /// Frames that came out of order.
    pub reordered: Count,
    /// Times that the sequence began anew.
    pub resyncs: Count,
    /// Frames of which nothing was of use, the first event having been closed already.
    pub late: Count,
    /// Fragments whose event had been closed.
    pub late_fragments: Count,
    /// Fragments of which the event had one from this source.
    pub duplicate_fragments: Count,
    /// Events that were closed without this source.
    pub absent: Count,
}

/// What is counted for events.
#[derive(Debug, Default)]
pub struct EventCounts {
    /// Events that were closed.
    pub built: Count,
    /// Those to which all sources contributed.
    pub complete: Count,
    /// Events closed with sources missing: by their deadline, by the end of the input, or by force.
    pub incomplete: Count,
    /// Those of them that were closed early, because too many were open, or too many hits waited.
    pub forced: Count,
    /// Fragments, or merged hits, that did not fit their event.
    pub overfull: Count,
    /// Fragments of events, or merged events, for which there was no buffer: somebody behind the pipeline holds more
    /// events than was said.
    pub no_buffer: Count,
    /// Times that the time stamps went back after a pause, and building began anew.
    pub resyncs: Count,
    /// Hits in built events.
    pub hits: Count,
    /// Rings of the events that were decided.
    pub rings: Count,
    /// Events that the trigger accepted.
    pub accepted: Count,
    /// Events that it rejected.
    pub rejected: Count,
}

/// All counters of one L0 pipeline.
#[derive(Debug)]
pub struct L0Stats {
    /// One for each configured source.
    pub sources: Vec<SourceCounts>,
    /// Of all sources together.
    pub events: EventCounts,
}

impl L0Stats {
    /// Counters at zero, for at most 16 sources.
    #[must_use]
    pub fn new(sources: usize) -> Arc<Self> {
        let sources = sources.min(MAX_SOURCES);
        Arc::new(Self {
            sources: (0..sources).map(|_| SourceCounts::default()).collect(),
            events: EventCounts::default(),
        })
    }
}
