//! Places in the rounds of the barrel shifter.

/// Where a MEP is in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which of the two rounds.
    pub(super) round: u8,
    /// Its number in the round.
    pub(super) number: u8,
}

/// What a MEP has to do with rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    /// Nothing.
    No,
    /// It waits for one.
    Waits,
    /// It is in one.
    In(Place),
}
