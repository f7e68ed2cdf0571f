//! What is asked of a merger, and what it counts.

use pollux_mempool::time::Ns;

use super::hit::SLOT;

/// Options of a [`Merge`](super::Merge), times in units of 25/256 ns unless they say otherwise.
#[derive(Clone, Copy, Debug)]
pub struct MergeOptions {
    /// Sources, 1 to 64.
    pub sources: usize,
    /// Width of a window.
    pub width: u16,
    /// What a window shares with each of its neighbours; at most half its width.
    pub guard: u16,
    /// How far a hit may be behind an earlier one of its source.
    pub disorder: u64,
    /// How far a hit may be ahead of the last one of its source, and of the others; more than the
    /// deadline.
    pub horizon: u64,
    /// How long a silent source is waited for.
    pub deadline: Ns,
    /// Hits of each source that may wait.
    pub capacity: usize,
    /// Most hits of a source in a window: those of one with more are masked.
    pub hot_hits: u16,
}

impl Default for MergeOptions {
    /// Four sources, windows of 25 ns that share 2 ns.
    fn default() -> Self {
        Self {
            sources: 4,
            width: SLOT as u16,
            guard: 20,
            disorder: 4 * SLOT,
            // A millisecond.
            horizon: 40_000 * SLOT,
            deadline: Ns(300_000),
            capacity: 1 << 14,
            hot_hits: u16::MAX,
        }
    }
}

/// Why [`MergeOptions`] are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// No source, or too many.
    #[error("there must be 1 to 64 sources")]
    Sources,
    /// A window cannot be like this.
    #[error("the width of a window must be 2 to 32768, and its guard at most half of it")]
    Width,
    /// Sources that are apart by less than a deadline would be told to differ.
    #[error("the horizon must be longer than the deadline")]
    Horizon,
    /// A ring cannot be like this.
    #[error("the capacity of a source must be 64 to 16777216 hits")]
    Capacity,
}

/// What a [`Merge`](super::Merge) counts. `taken` + all that were refused is what was pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergeCounts {
    /// Hits that were taken.
    pub taken: u64,
    /// Refused: their window had been closed.
    pub late: u64,
    /// Refused: too far ahead, of a source that came back.
    pub ahead: u64,
    /// Refused: of a source that differs from the majority.
    pub skewed: u64,
    /// Refused: the ring of their source was full.
    pub full: u64,
    /// Refused: of a source that there is not.
    pub unknown: u64,
    /// Windows with hits.
    pub windows: u64,
    /// Hits in windows: those near an edge are in two.
    pub hits: u64,
    /// Hits that were more than a window holds.
    pub overfull: u64,
    /// Windows that were closed before their time, to make room in a ring.
    pub forced: u64,
    /// Jumps of time that were believed.
    pub jumps: u64,
}
