//! `Verdict`: the result of the rules for an event.

/// The result of the rules for an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Bit r: rule r of the set accepted it.
    pub rules: u8,
    /// Number of the rule set that decided; the first of a run is 0.
    pub rule_set: u16,
    /// The event was rejected, and is kept for monitoring.
    pub monitored: bool,
}

impl Verdict {
    /// Whether at least one rule accepts the event.
    #[must_use]
    #[inline]
    pub fn accepted(self) -> bool {
        self.rules != 0
    }
}
