//! Results of the clocks for an event builder.

use pollux_pmd::Cause;

/// State of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct News<'a, S> {
    /// Sources that differ from the majority.
    pub off: S,
    /// Number of times that each source was put off, or returned to the others from another time.
    pub strays: &'a [u64],
    /// Burst number of the majority.
    pub burst: u16,
}

/// What a builder must do with its timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<S> {
    /// Close all events of the main timeline; the other one takes its place, and its burst
    /// ([`Clocks::take_burst`](super::Clocks::take_burst)).
    Adopted,
    /// Forget the other timeline, whose frames are lost for this cause.
    Rejected(Cause),
    /// There is no majority: close events of both timelines from now on.
    Disputed,
    /// There is no majority, and some sources are ahead: with their events from
    /// this time on they go on in the other timeline.
    Split {
        /// The sources that are ahead.
        ahead: S,
        /// The first time that is in the other timeline.
        from: u64,
    },
    /// The dispute is over: close all events of the other timeline.
    Joined,
}

/// Result of a vote on a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Most sources have reached it, or none is behind it.
    Reached,
    /// As many sources have reached it as have not.
    Tie,
    /// Most sources are behind it.
    Ahead,
}

/// What to do with a fragment of a closed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Refuse it.
    Refused(Cause),
    /// Most sources are behind the closed events: step back to their time.
    StepBack,
    /// Its source moves to the other timeline.
    Moved,
}
