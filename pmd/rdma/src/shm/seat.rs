//! Counters of an endpoint, and the share that a queue pair has of them.

use std::sync::{Arc, Mutex, PoisonError};

use pollux_pmd::{Cause, Count, Tally};

use super::link::LinkCounters;
use super::violation::Violation;

/// Counters of an endpoint.
pub(super) struct Counters {
    pub(super) violations: [Count; Violation::COUNT],
    pub(super) link: Arc<LinkCounters>,
    access: Cause,
}

impl Counters {
    pub(super) fn new(access: Cause) -> Self {
        Self {
            violations: Default::default(),
            link: Arc::default(),
            access,
        }
    }
}

/// What a queue pair has of its endpoint: one of the tallies, which it gives back.
pub(super) struct Seat {
    tallies: Arc<Mutex<Vec<Tally>>>,
    tally: Option<Tally>,
    counters: Arc<Counters>,
}

impl Seat {
    pub(super) fn new(
        tallies: &Arc<Mutex<Vec<Tally>>>,
        tally: Tally,
        counters: &Arc<Counters>,
    ) -> Self {
        Self {
            tallies: Arc::clone(tallies),
            tally: Some(tally),
            counters: Arc::clone(counters),
        }
    }

    pub(super) fn take_tally(&mut self) -> Tally {
        self.tally.take().unwrap_or_default()
    }

    pub(super) fn give_tally(&mut self, tally: Tally) {
        self.tally = Some(tally);
    }

    /// Cause of messages without access to their receive.
    pub(super) fn access(&self) -> Cause {
        self.counters.access
    }

    pub(super) fn count(&self, violation: Violation) {
        self.counters.violations[violation as usize].add_shared(1);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.extend(self.tally.take());
    }
}
