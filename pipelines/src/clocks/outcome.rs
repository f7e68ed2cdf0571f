//! What the clocks say to a builder.

use pollux_pmd::Cause;

/// What there is to be said of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News<'a> {
    /// Bit s: source s differs from the majority.
    pub off: u64,
    /// Times that each source was put off, or came back to the others from a time of its own.
    pub strays: &'a [u64],
    /// Number of the burst that the majority is in.
    pub burst: u16,
}

/// What a builder has to do with its timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Close all events of the main timeline; the other one takes its place, and its burst
    /// ([`Clocks::take_burst`](super::Clocks::take_burst)).
    Adopted,
    /// Forget the other timeline, whose frames are lost for this cause.
    Rejected(Cause),
    /// There is no majority: close events of both timelines from now on.
    Disputed,
    /// There is no majority, and these sources (bit s: source s) are ahead: with their events from
    /// this time on they go on in the other timeline.
    Split {
        /// Bit s: source s is ahead.
        ahead: u64,
        /// The first time that is in the other timeline.
        from: u64,
    },
    /// The dispute is over: close all events of the other timeline.
    Joined,
}

/// What a majority says to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Most have come to it, or no source is heard that has not.
    Reached,
    /// As many have come to it as have not.
    Tie,
    /// Most are still behind it.
    Ahead,
}

/// What to do with a fragment that is behind what was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Refuse it.
    Refused(Cause),
    /// Most sources are behind what was closed: go back there.
    StepBack,
    /// Its source goes on in the other timeline.
    Moved,
}
