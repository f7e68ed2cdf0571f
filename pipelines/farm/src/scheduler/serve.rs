//! Gives waiting events to free receive buffers.

use super::flights::Phase;
use super::state::Scheduler;
use crate::role::Outbox;
use crate::time::Time;

impl Scheduler {
    /// Enables or disables the sending of events (thesis, register 1).
    pub fn enable(&mut self, enabled: bool, now: Time, out: &mut impl Outbox) {
        self.enabled = enabled;
        self.serve(now, out);
    }

    /// Sends what can be sent.
    pub(super) fn serve(&mut self, now: Time, out: &mut impl Outbox) {
        self.send_again(now, out);
        self.assign_waiting(now, out);
        self.shift(now, out);
    }

    /// Gives waiting events to free receive buffers.
    fn assign_waiting(&mut self, now: Time, out: &mut impl Outbox) {
        while self.enabled && !self.members.is_empty() {
            self.choose();
            if self.serve_second(now, out) {
                continue;
            }
            let Some(choice) = self.ready else { return };
            let Some(mep) = self.next_waiting() else {
                return;
            };
            self.ready = None;
            self.dispatch(mep, choice, now, out);
        }
        self.choose();
    }

    /// Takes the receive buffer of the next event, if one is free.
    fn choose(&mut self) {
        // The columns may have changed since.
        if let Some(choice) = self.ready
            && !self.columns.may_follow(choice.column)
        {
            self.columns.push_front(choice);
            self.ready = None;
        }
        if self.ready.is_none() {
            self.ready = self.columns.take();
        }
    }

    /// Takes the next MEP that waits for a receive buffer.
    fn next_waiting(&mut self) -> Option<u64> {
        while let Some(mep) = self.reassigned.pop_front() {
            let flight = self.flights.get(mep);
            if flight.is_some_and(|flight| flight.phase == Phase::Waiting) {
                return Some(mep);
            }
        }
        let mep = self.unsent;
        (mep < self.flights.next()).then(|| {
            self.unsent += 1;
            mep
        })
    }
}
