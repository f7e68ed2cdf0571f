//! Members of the farm, as the scheduler sees them.

use super::config::Config;
use crate::time::Time;

/// Why a member is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion {
    /// It was silent: it is readmitted when it is heard again.
    Silent,
    /// It did not finish an event in time, though all fragments were sent: it is readmitted after
    /// a time that doubles with each such exclusion, or where no node is left.
    Overdue,
    /// It released the buffer of an event without a decision; readmitted as after `Overdue`.
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
    /// It has been heard without a pause since then.
    steady: Time,
    /// It has finished an event, and one of its decisions was heard of.
    pub(super) finished: Time,
    pub(super) decided: Time,
    /// How long it was excluded last for being late, and until when.
    penalty: Time,
    penalty_end: Time,
}

/// First exclusion of a node that was late, in times of silence.
const PENALTY: u64 = 32;

impl Peer {
    pub(super) fn new(now: Time) -> Self {
        Self {
            excluded: None,
            events: 0,
            known: false,
            heard: now,
            steady: now,
            finished: now,
            decided: now,
            penalty: Time::ZERO,
            penalty_end: Time::ZERO,
        }
    }

    pub(super) fn exclude(&mut self, why: Exclusion, now: Time, silence: Time) {
        self.excluded = Some(why);
        if self.is_tardy() {
            let first = Time::from_ps(silence.ps().saturating_mul(PENALTY));
            self.penalty = first.max(self.penalty + self.penalty);
            self.penalty_end = now + self.penalty;
        }
    }

    /// Whether it is excluded for being late.
    pub(super) fn is_tardy(&self) -> bool {
        matches!(
            self.excluded,
            Some(Exclusion::Overdue | Exclusion::Undecided)
        )
    }

    /// Whether a member that is heard takes part again.
    pub(super) fn may_return(&self, now: Time) -> bool {
        let was_silent = self.excluded == Some(Exclusion::Silent);
        was_silent || (self.is_tardy() && now >= self.penalty_end)
    }

    /// It is heard; a pause longer than `gap` is silence.
    pub(super) fn hear(&mut self, now: Time, gap: Time) {
        if now - self.heard > gap {
            self.steady = now;
        }
        self.known = true;
        self.heard = now;
    }

    /// Whether it was heard from a time on without a pause longer than `gap`.
    pub(super) fn is_steady(&self, since: Time, now: Time, gap: Time) -> bool {
        self.steady <= since && now - self.heard <= gap
    }

    pub(super) fn is_silent(&self, since: Time) -> bool {
        self.excluded.is_none() && self.heard < since
    }
}

/// Time between two looks at all members.
pub(super) fn interval(config: &Config) -> Time {
    Time::from_ps((config.silence.ps() / 4).max(1))
}
