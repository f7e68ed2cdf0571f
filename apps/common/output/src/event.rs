//! An event as outputs see it.

use pollux_na62::l0::{EventView, L0Record};

/// An event, and its number in the run.
#[derive(Clone, Copy)]
pub struct OutputEvent<'a> {
    /// Number of its decision in the run, counted from 0 and wrapping at 2^32: the sequence of its
    /// record.
    pub number: u32,
    /// The event: head, hits, rings and verdict.
    pub view: EventView<'a>,
}

impl OutputEvent<'_> {
    /// The 64 bytes of the event in an event file (docs/formats/event-record.md). Only runs with a
    /// number have `bursts`.
    #[must_use]
    pub fn record(&self, bursts: bool) -> [u8; 64] {
        let record = L0Record {
            burst: if bursts { self.view.head().burst } else { 0 },
            ..L0Record::of_view(self.view)
        };
        record.to_event(self.number).to_bytes()
    }
}
