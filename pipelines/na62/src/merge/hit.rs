//! Hits, their arrival times, and the reasons for refusing them.

use pollux_mempool::time::Tsc;
use pollux_pipelines::stage::Moment;
use pollux_pmd::Cause;

/// Units of 25/256 ns in a slot of 25 ns.
pub const SLOT: u64 = 256;

/// A hit with its full time stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampedHit {
    /// In units of 25/256 ns.
    pub time: u64,
    /// Photomultiplier.
    pub pm: u16,
}

/// Arrival time of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitArrival {
    /// On the clock of the deadlines.
    pub at: Moment,
    /// On the time stamp counter.
    pub arrival: Tsc,
}

/// Why hits were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Their window was closed.
    Late,
    /// Too far ahead of the time of their source, which has returned to it.
    Ahead,
    /// Their source differs from the majority.
    Skewed,
    /// The ring of their source was full.
    Full,
    /// From an unknown source.
    Unknown,
}

impl From<Refusal> for Cause {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Late => Self::Late,
            Refusal::Ahead => Self::OutOfWindow,
            Refusal::Skewed => Self::ClockSkew,
            Refusal::Full => Self::NoRoom,
            Refusal::Unknown => Self::Unsupported,
        }
    }
}

/// The refusal for a drop cause of the clocks.
pub(super) fn refusal(cause: Cause) -> Refusal {
    match cause {
        Cause::Late => Refusal::Late,
        Cause::ClockSkew => Refusal::Skewed,
        _ => Refusal::Ahead,
    }
}
