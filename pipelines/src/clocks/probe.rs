//! Compares a time that a source said with what the others have come to a deadline later.

use super::clock::{MAIN, NEVER, OTHER};
use super::outcome::Vote;
use super::{Clocks, LATE_RUN, Other, TIES};
use crate::sources::SourceSet;
use crate::stage::Moment;

impl<S: SourceSet> Clocks<S> {
    /// Looks at the times that sources have said, and where the others are a deadline later; called
    /// now and then.
    #[inline]
    pub fn tick(&mut self, now: Moment) {
        if now >= self.next_probe {
            self.look(now);
        }
    }

    #[cold]
    fn look(&mut self, now: Moment) {
        for source in 0..self.each.len() {
            self.probe(source, now);
        }
        let due = self.each.iter().map(|clock| clock.probe_due);
        self.next_probe = due.min().unwrap_or(NEVER);
    }

    /// Notes a time that a source said, unless there is one.
    pub(super) fn set_probe(&mut self, source: usize, time: u64, at: Moment) {
        let clock = &mut self.each[source];
        clock.set_probe(time, at, self.options.deadline);
        self.next_probe = self.next_probe.min(clock.probe_due);
    }

    /// Compares what a source said a deadline ago with where the others are now.
    fn probe(&mut self, source: usize, at: Moment) {
        let clock = self.each[source];
        let (time, since) = clock.probe;
        let on_trial = self.is_on_trial() && clock.line == OTHER;
        if at < clock.probe_due || !clock.is_known || clock.off || on_trial {
            return;
        }
        self.each[source].probe_due = NEVER;
        // Its next frame brings the next time to be noted.
        self.each[source].is_plain = false;
        let near_main = || self.is_near(source, MAIN, clock.said, at, self.tolerance);
        if clock.line == OTHER && near_main() != Some(false) {
            self.enter(source, MAIN, clock.said, at);
            return;
        }
        match self.vote(clock.line, time, since, at) {
            Vote::Reached => {
                self.each[source].ties = 0;
                self.note_lags(source, time, since, at);
            }
            Vote::Ahead => self.put_off(source),
            Vote::Tie if clock.line == MAIN && !self.is_divided(time, at) => {}
            // A single one may be a matter of who speaks first.
            Vote::Tie if clock.ties < TIES => self.each[source].ties += 1,
            Vote::Tie if self.other == Other::Unused => self.divide(time, at),
            Vote::Tie => {}
        }
    }

    /// Most sources have come to a time: those that have been heard since, or up to a deadline before,
    /// and are still further behind than a deadline differ from them, if that is so again and again.
    fn note_lags(&mut self, asked: usize, time: u64, since: Moment, at: Moment) {
        let (line, deadline) = (self.each[asked].line, self.options.deadline);
        for source in (0..self.each.len()).filter(|&source| source != asked) {
            let clock = &mut self.each[source];
            let votes = clock.line == line && !clock.off && clock.is_live(at);
            if clock.has_come_to(time, self.options.grain) {
                clock.lags = 0;
            } else if votes && clock.is_far_behind(time, self.tolerance, since, deadline) {
                clock.lags += 1;
                if clock.lags >= LATE_RUN {
                    self.put_off(source);
                }
            }
        }
    }
}
