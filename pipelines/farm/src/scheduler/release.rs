//! What the feeders know of the decisions.

use crate::message::Flow;
use crate::time::Time;

/// A message without events, which tells the feeders what is decided when no other message does.
#[derive(Debug)]
pub(super) struct ReleaseMessage {
    /// All events before this one are decided.
    pub(super) decided: u64,
    /// What the feeders know of it.
    pub(super) told: u64,
    /// The message that is in the ring.
    pub(super) copy: Option<Flow>,
    pub(super) number: u64,
    /// When it was sent last.
    pub(super) sent: Time,
    pub(super) deadline: Time,
}

impl Default for ReleaseMessage {
    fn default() -> Self {
        Self {
            decided: 0,
            told: 0,
            copy: None,
            number: 0,
            sent: Time::ZERO,
            deadline: Time::MAX,
        }
    }
}

impl ReleaseMessage {
    /// More is decided: the feeders are told by `deadline` at the latest.
    pub(super) fn decided(&mut self, event: u64, deadline: Time) {
        self.decided = self.decided.max(event);
        if !self.is_told() && self.deadline == Time::MAX {
            self.deadline = deadline;
        }
    }

    /// A message that all feeders have seen said this.
    pub(super) fn tell(&mut self, decided: u64) {
        self.told = self.told.max(decided);
        if self.is_told() {
            self.deadline = Time::MAX;
            self.copy = None;
        }
    }

    /// All feeders know that the events before this one are decided.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// The feeders are to be told at once, for their buffers are full.
    pub(super) fn hurry(&mut self, now: Time) {
        if !self.is_told() && self.copy.is_none() {
            self.deadline = now;
        }
    }

    pub(super) fn is_told(&self) -> bool {
        self.told == self.decided
    }

    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }
}
