//! Hits as they come, and what becomes of them.

use pollux_mempool::time::Tsc;
use pollux_pipelines::stage::Moment;
use pollux_pmd::Cause;

/// Units of 25/256 ns in a slot of 25 ns.
pub const SLOT: u64 = 256;

/// A hit as a source sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampedHit {
    /// In units of 25/256 ns.
    pub time: u64,
    /// Photomultiplier.
    pub pm: u16,
}

/// When hits came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// On the time line of the deadlines.
    pub at: Moment,
    /// On the clock.
    pub arrival: Tsc,
}

/// Why hits were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Their window had been closed.
    Late,
    /// Too far ahead of where their source was, which came back.
    Ahead,
    /// Their source differs from the majority.
    Skewed,
    /// The ring of their source was full.
    Full,
    /// Of a source that there is not.
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

/// That which stands for a cause of the clocks.
pub(super) fn refusal(cause: Cause) -> Refusal {
    match cause {
        Cause::Late => Refusal::Late,
        Cause::ClockSkew => Refusal::Skewed,
        _ => Refusal::Ahead,
    }
}
