//! An event as read from a file of either format.

use pollux_na62::rich::Hit;
use pollux_na62::rich::find::Ring;

/// Properties of an event besides its hits and rings.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Time of the event, in slots of 25 ns.
    pub timestamp: u64,
    /// Number of the event's burst, counted from 1, in a run with a number.
    pub burst: Option<u16>,
    /// Bit s: source s contributed.
    pub sources: u16,
    /// The trigger's decision.
    pub accepted: bool,
    /// All sources contributed, with all of their hits.
    pub complete: bool,
    /// Hits were left out because the event was full.
    pub truncated: bool,
    /// Sources disagreed on the time without a majority: this is the event of some of them.
    pub disputed: bool,
    /// The decision was sent after the latency budget. Always false for a capture that is replayed.
    pub late: bool,
    /// The event was rejected, and is kept for monitoring.
    pub monitored: bool,
    /// Bit r: rule r of the set accepted it.
    pub rules: u8,
    /// Number of the rule set that decided.
    pub rule_set: u16,
}

/// An event in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// Properties of the event.
    pub facts: Facts,
    /// Number of hits.
    pub hit_count: usize,
    /// The hits, if the file format has them.
    pub hits: Option<Vec<Hit>>,
    /// The rings. Fields that the file format lacks are 0.
    pub rings: Vec<Ring>,
}
