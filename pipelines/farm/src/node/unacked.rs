//! Decisions that the result node has not acknowledged.

use crate::message::Decision;
use crate::time::Time;

/// A list of bounded length, in the order of sending.
#[derive(Debug)]
pub(super) struct Unacked {
    decisions: Vec<(Decision, Time)>,
    most: usize,
}

impl Unacked {
    pub(super) fn new(most: usize) -> Self {
        Self {
            decisions: Vec::with_capacity(most),
            most,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.decisions.len()
    }

    /// Adds a decision that is sent now; false where the list is full.
    pub(super) fn add(&mut self, decision: Decision, now: Time) -> bool {
        let fits = self.decisions.len() < self.most;
        if fits {
            self.decisions.push((decision, now));
        }
        fits
    }

    /// Removes the decision of a MEP; false where it is not in the list.
    pub(super) fn remove(&mut self, mep: u64) -> bool {
        let place = self.decisions.iter().position(|d| d.0.mep == mep);
        if let Some(place) = place {
            self.decisions.remove(place);
        }
        place.is_some()
    }

    /// Decisions that were sent at `old` or before, and are sent again now.
    pub(super) fn since(&mut self, old: Time, now: Time) -> impl Iterator<Item = &Decision> {
        let due = self.decisions.iter_mut().filter(move |d| d.1 <= old);
        due.map(move |(decision, sent)| {
            *sent = now;
            &*decision
        })
    }
}
