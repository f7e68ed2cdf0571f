//! What can be chosen of the event builder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stages::limits::{HOT_HITS, MAX_DEADLINE_US, MAX_WINDOW};

/// Options of `build`: events of fragments whose time stamps fall into one window.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BuildOptions {
    /// Width of an event in slots of 25 ns, at most 128: fragments whose time stamps fall into the
    /// same window are one event, and times of its hits count from the window's beginning. A source
    /// has one fragment in a window; a second one is a duplicate.
    #[schemars(range(min = 1, max = MAX_WINDOW), extend("x-unit" = "slots of 25 ns"))]
    pub window_slots: u64,
    /// How long an event waits for its sources: from the arrival of its first fragment, and again
    /// from when most sources have contributed.
    #[schemars(range(min = 1, max = MAX_DEADLINE_US), extend("x-unit" = "us"))]
    pub deadline_us: u64,
    /// How far a time stamp may be ahead of the last one of its source, beyond the time that has
    /// passed, and of the other sources; in time of the detector, and more than the deadline.
    #[schemars(range(min = 2), extend("x-unit" = "us"))]
    pub horizon_us: u64,
    /// Most events that may be open at once.
    #[schemars(range(min = 2, max = MAX_OPEN), extend("x-unit" = "events"))]
    pub max_open: usize,
    /// Most hits of a source in an event: a source with more is hot, and its hits are masked.
    #[schemars(range(min = 1), extend("x-unit" = "hits"))]
    pub hot_hits: u16,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            window_slots: 1,
            deadline_us: 300,
            horizon_us: 100_000,
            max_open: 4096,
            hot_hits: HOT_HITS,
        }
    }
}

/// Most events that may be open at once.
pub(super) const MAX_OPEN: usize = 1 << 20;
