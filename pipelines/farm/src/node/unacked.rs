//! Decisions that the result node has not acknowledged.

use crate::message::Decision;
use crate::rtt::Rtt;
use crate::time::Time;

/// A decision that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    decision: Decision,
    at: Time,
    /// It was sent more than once: its acknowledgement has no round trip.
    again: bool,
}

/// A list of bounded length, in the order of sending.
#[derive(Debug)]
pub(super) struct Unacked {
    sent: Vec<Sent>,
    most: usize,
    rtt: Rtt,
}

impl Unacked {
    /// A list of so many decisions, which are not sent again before `beat` is over.
    pub(super) fn new(most: usize, beat: Time) -> Self {
        Self {
            sent: Vec::with_capacity(most),
            most,
            rtt: Rtt::new(beat),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Adds a decision that is sent now; false where the list is full.
    pub(super) fn add(&mut self, decision: Decision, now: Time) -> bool {
        let fits = self.sent.len() < self.most;
        if fits {
            self.sent.push(Sent {
                decision,
                at: now,
                again: false,
            });
        }
        fits
    }

    /// Removes the decision of a MEP; false where it is not in the list.
    pub(super) fn remove(&mut self, mep: u64, now: Time) -> bool {
        let place = self.sent.iter().position(|sent| sent.decision.mep == mep);
        let Some(place) = place else { return false };
        let sent = self.sent.remove(place);
        if !sent.again {
            self.rtt.sample(now - sent.at, now);
        }
        true
    }

    /// Decisions that were not acknowledged in time, and are sent again now.
    pub(super) fn due(&mut self, now: Time) -> impl Iterator<Item = &Decision> {
        let timeout = self.rtt.timeout();
        let rtt = &mut self.rtt;
        let due = self
            .sent
            .iter_mut()
            .filter(move |sent| sent.at + timeout <= now);
        due.map(move |sent| {
            rtt.expired(sent.at, now);
            sent.at = now;
            sent.again = true;
            &sent.decision
        })
    }
}
