//! What is decided about an event.

/// What the rules say about an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Bit r: rule r of the set accepted it.
    pub rules: u8,
    /// Which set of rules decided: the first of a run is 0.
    pub rule_set: u16,
    /// It was rejected, and is kept for monitoring.
    pub monitored: bool,
}

impl Verdict {
    /// Whether the event is accepted: by any rule.
    #[must_use]
    #[inline]
    pub fn accepted(self) -> bool {
        self.rules != 0
    }
}
