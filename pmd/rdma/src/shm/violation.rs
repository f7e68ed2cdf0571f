//! What a peer does that its protocol does not allow.

/// A violation, after which the queue pair has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    /// The turn of an entry is neither that of its position nor the one before.
    Turn,
    /// A kind, flag or length that no entry has at its place.
    Entry,
    /// It has taken more entries than there were.
    Acknowledgement,
    /// It has more receives than a queue pair can have.
    Receives,
    /// A message without a receive.
    NoReceive,
    /// A state that there is not.
    State,
}

impl Violation {
    /// Number of violations.
    pub(super) const COUNT: usize = 6;

    /// Their names in reports.
    pub(super) const NAMES: [&str; Self::COUNT] = [
        "wrong-turn",
        "bad-entry",
        "bad-acknowledgement",
        "too-many-receives",
        "no-receive",
        "bad-state",
    ];
}
