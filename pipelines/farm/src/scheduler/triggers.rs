//! From triggers to MEPs.

use super::gather::Source;
use super::state::Scheduler;
use crate::message::Trigger;
use crate::role::Outbox;
use crate::time::Time;

impl Scheduler {
    /// Selects the source of triggers.
    pub fn select(&mut self, source: Source) {
        self.triggers.selected = source;
    }

    /// Enables or disables triggers (thesis, register 3).
    pub fn enable_triggers(&mut self, enabled: bool) {
        self.triggers.enabled = enabled;
    }

    /// Takes triggers, one event each. Those that find too many events waiting or undecided are
    /// refused; all are counted. Returns how many became events.
    pub fn trigger(&mut self, source: Source, count: u16, now: Time, out: &mut impl Outbox) -> u16 {
        if !self.triggers.enabled || source != self.triggers.selected {
            self.counters.triggers.disabled += u64::from(count);
            return 0;
        }
        let mut taken = 0;
        while taken < count {
            let refused = u64::from(count - taken);
            if self.flights.is_full() {
                self.counters.triggers.in_flight_full += refused;
                self.release.hurry(now);
                break;
            }
            if self.pending() >= self.config.pending {
                self.counters.triggers.pending_full += refused;
                break;
            }
            if self.triggers.gathered == 0 {
                self.triggers.first = now;
                self.triggers.deadline = now + self.config.pack_wait;
            }
            let more = (self.config.pack - self.triggers.gathered).min(count - taken);
            self.triggers.gathered += more;
            taken += more;
            if self.triggers.gathered == self.config.pack {
                self.close(now, out);
            }
        }
        self.counters.triggers.taken += u64::from(taken);
        taken
    }

    /// Closes the MEP that is gathered, for instance at the end of a run.
    pub fn close(&mut self, now: Time, out: &mut impl Outbox) {
        self.triggers.deadline = Time::MAX;
        let count = std::mem::take(&mut self.triggers.gathered);
        if count == 0 {
            return;
        }
        self.flights.add(count, self.triggers.first);
        self.serve(now, out);
        let peak = &mut self.counters.pending_peak;
        *peak = (*peak).max((self.flights.next() - self.unsent) + self.reassigned.len() as u64);
    }

    /// Has the feeders told at once what is decided, for instance at the end of a run.
    pub fn tell_decided(&mut self, now: Time) {
        self.release.hurry(now);
    }

    /// Closes the MEP that has waited for more triggers long enough.
    pub(super) fn close_due(&mut self, now: Time, out: &mut impl Outbox) {
        if now >= self.triggers.deadline {
            self.close(now, out);
        }
    }

    pub(super) fn triggered_by_port(
        &mut self,
        trigger: &Trigger,
        now: Time,
        out: &mut impl Outbox,
    ) {
        let end = trigger.first.saturating_add(trigger.count.into());
        let old = end.min(self.triggers.next).saturating_sub(trigger.first);
        let gap = trigger.first.saturating_sub(self.triggers.next);
        self.counters.triggers.repeated += old;
        self.counters.triggers.missing = self.counters.triggers.missing.saturating_add(gap);
        self.triggers.next = self.triggers.next.max(end);
        let new = u64::from(trigger.count) - old;
        self.trigger(Source::External, new as u16, now, out);
    }
}
