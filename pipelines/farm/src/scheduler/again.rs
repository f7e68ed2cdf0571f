//! What was not answered in time is sent again, and does not add to the congestion that may be the
//! reason: time-outs follow the round trips ([`Rtt`](crate::rtt::Rtt)), few MEPs are sent again at a time, more as
//! answers come (the slow start of TCP, RFC 5681), and after it stood still the scheduler reads
//! what has arrived in the meantime first.

use super::config::{Policy, Timeouts};
use super::flights::{Flight, Phase, Repeat};
use super::repeats::FIRST;
use super::state::Scheduler;
use super::timers::Timer;
use crate::role::Outbox;
use crate::time::Time;

impl Scheduler {
    /// When the next time-out is over.
    pub(super) fn timeout_deadline(&self) -> Time {
        let deadline = self.flights.timers.next_deadline(self.again.durations());
        deadline.max(self.again.not_before)
    }

    /// The time-out of what is sent now, the longer of both.
    #[must_use]
    pub fn timeout(&self) -> Time {
        let [ring, event] = self.again.durations();
        ring.max(event)
    }

    /// Time after which a silent member is excluded: where round trips take long, members are
    /// heard late too.
    pub(super) fn silence(&self) -> Time {
        let slowest = self.again.ring.estimate().max(self.again.event.estimate());
        match self.config.timeouts {
            Timeouts::Observed => self.config.silence.max(slowest + slowest),
            Timeouts::Constant => self.config.silence,
        }
    }

    /// Longest pause of a member that speaks.
    pub(super) fn gap(&self) -> Time {
        self.config.blame_window(self.again.event.estimate())
    }

    /// What waits for a feeder that was excluded is sent again without it, all at once.
    pub(super) fn pass_feeder(&mut self, feeder: u8, now: Time) {
        if self.config.timeouts == Timeouts::Constant {
            return;
        }
        let returns = !matches!(self.config.policy, Policy::Credits | Policy::None);
        for mep in self.decided..self.unsent {
            let Some(flight) = self.flights.get(mep) else {
                continue;
            };
            let waits = match flight.phase {
                Phase::Ring => true,
                Phase::Building => !returns && !flight.wants_more,
                Phase::Waiting | Phase::Processed | Phase::Decided => false,
            };
            if waits && flight.members.has(feeder) {
                self.answered(mep);
                self.leave(mep);
                self.flights.start(mep, Timer::Again, now);
            }
        }
        self.again.window = self.config.in_flight;
    }

    /// Forgets what is decided, as far as the feeders know.
    pub(super) fn retire(&mut self) {
        while let Some(flight) = self.flights.retire(self.release.told()) {
            if self.config.timeouts == Timeouts::Observed {
                let Flight {
                    descriptor,
                    generation,
                    mep,
                    ..
                } = flight;
                self.buffers.abandon(descriptor, generation, mep);
            }
        }
    }

    /// Handles the time-outs that are over.
    pub(super) fn expire_due(&mut self, now: Time, out: &mut impl Outbox) {
        let polled = std::mem::replace(&mut self.again.polled, now);
        let due = self.timeout_deadline();
        if now < due {
            return;
        }
        if self.config.timeouts == Timeouts::Observed {
            let grace = Time::from_ps(self.timeout().ps() / 4);
            if now - due > grace && now - polled > grace {
                self.again.not_before = now + grace;
                return;
            }
        }
        while let Some((timer, slot, started)) =
            self.flights.timers.expired(self.again.durations(), now)
        {
            self.expire(timer, slot, started, now, out);
        }
        self.send_again(now, out);
    }

    /// A MEP is to be sent again.
    pub(super) fn repeat(&mut self, mep: u64, now: Time, out: &mut impl Outbox) {
        if self.config.timeouts == Timeouts::Constant {
            return self.resend(mep, now, out);
        }
        if self.again.out == 0 && self.flights.timers.first_again().is_none() {
            self.again.window = FIRST;
        }
        if let Some(flight) = self.flights.get(mep)
            && std::mem::take(&mut flight.repeat) == Repeat::Out
        {
            self.again.out -= 1;
            self.again.window = FIRST;
        }
        // A round does not wait for it.
        self.leave(mep);
        self.flights.start(mep, Timer::Again, now);
    }

    /// Sends MEPs again, as many as may be under way.
    pub(super) fn send_again(&mut self, now: Time, out: &mut impl Outbox) {
        while self.again.out < self.again.window {
            let Some(slot) = self.flights.timers.first_again() else {
                return;
            };
            self.flights.timers.stop(slot);
            let Some(flight) = self.flights.at(slot) else {
                continue;
            };
            if matches!(flight.phase, Phase::Ring | Phase::Building) {
                flight.repeat = Repeat::Out;
                let mep = flight.mep;
                self.again.out += 1;
                self.resend(mep, now, out);
            }
        }
    }

    /// A MEP was answered, or goes to another node.
    pub(super) fn answered(&mut self, mep: u64) {
        if let Some(flight) = self.flights.get(mep)
            && std::mem::take(&mut flight.repeat) == Repeat::Out
        {
            self.again.out -= 1;
        }
        self.again.window = (self.again.window + 1).min(self.config.in_flight);
    }
}
