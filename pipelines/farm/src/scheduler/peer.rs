//! Members of the farm, as the scheduler sees them.

use super::config::Config;
use crate::time::Time;

/// Why a member is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// It was silent: it is readmitted when it is heard again.
    Silent,
    /// It did not finish an event in time, though all fragments were sent.
    Overdue,
    /// It released the buffer of an event without a decision.
    Undecided,
    /// On command.
    Commanded,
}

/// A node or a feeder, as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) excluded: Option<Exclusion>,
    /// MEPs that it was given.
    pub(super) events: u64,
    pub(super) known: bool,
    pub(super) heard: Time,
}

impl Peer {
    pub(super) fn new(now: Time) -> Self {
        Self {
            excluded: None,
            events: 0,
            known: false,
            heard: now,
        }
    }

    pub(super) fn hear(&mut self, now: Time) {
        self.known = true;
        self.heard = now;
    }

    /// Whether it was heard at that time or later.
    pub(super) fn has_spoken(&self, since: Time) -> bool {
        self.heard >= since
    }

    pub(super) fn is_silent(&self, since: Time) -> bool {
        self.excluded.is_none() && !self.has_spoken(since)
    }
}

/// Time between two looks at all members.
pub(super) fn interval(config: &Config) -> Time {
    Time::from_ps((config.silence.ps() / 4).max(1))
}
