//! The second timeline: on trial until it is decided whether time has jumped, or in dispute for want
//! of a majority.

use std::cmp::Ordering;

use pollux_pmd::Cause;

use super::clock::{MAIN, NEVER, OTHER};
use super::outcome::Change;
use super::{Clocks, LATE_RUN, Other};
use crate::sources::SourceSet;
use crate::stage::Moment;

impl<S: SourceSet> Clocks<S> {
    /// Counts a frame of the trial.
    pub(super) fn count_trial(&mut self, source: usize) {
        if let Other::Trial { frames, .. } = &mut self.other {
            *frames += u32::from(self.each[source].line == OTHER);
        }
    }

    /// What has been decided about the other timeline by `now`; asked before and behind each frame
    /// while the clocks are [restless](Self::is_restless), and now and then.
    pub fn change(&mut self, now: Moment) -> Option<Change<S>> {
        if let Some(split) = self.split.take() {
            return Some(split);
        }
        let live = |line| self.voters(line, now).count();
        match self.other {
            Other::Unused => None,
            Other::Trial {
                opened,
                frames,
                stray,
            } => {
                let members = self.members(OTHER).count();
                let all = self.each.len();
                if members == 0 {
                    return Some(self.reject(stray));
                }
                if 2 * members > all && (all > 1 || frames >= LATE_RUN) {
                    return Some(self.adopt());
                }
                let over = now >= opened.after(self.options.deadline);
                over.then(|| self.end_trial(now))
            }
            Other::Disputed => {
                let (main, other) = (live(MAIN), live(OTHER));
                match other.cmp(&main) {
                    Ordering::Greater => Some(self.adopt()),
                    Ordering::Less => {
                        self.reject(Cause::ClockSkew);
                        Some(Change::Joined)
                    }
                    Ordering::Equal => None,
                }
            }
        }
    }

    /// What becomes of a trial at the end of the input.
    pub fn finish(&mut self) -> Option<Change<S>> {
        let now = self.each.iter().map(|clock| clock.heard).max()?;
        let change = self.change(now);
        if change.is_some() || !self.is_on_trial() {
            return change;
        }
        Some(self.end_trial(now))
    }

    fn end_trial(&mut self, now: Moment) -> Change<S> {
        let members = self.members(OTHER).count();
        let stay = self.voters(MAIN, now).count();
        if members > stay {
            return self.adopt();
        }
        if members < stay {
            return match self.other {
                Other::Trial {
                    frames: 1, stray, ..
                } => {
                    // A single frame says nothing of the next one.
                    for clock in self.each.iter_mut().filter(|clock| clock.line == OTHER) {
                        (clock.line, clock.is_known) = (MAIN, false);
                    }
                    self.reject(stray)
                }
                _ => self.reject(Cause::ClockSkew),
            };
        }
        self.other = Other::Disputed;
        self.each.iter_mut().for_each(|clock| clock.before = None);
        self.set_all_plain();
        Change::Disputed
    }

    fn adopt(&mut self) -> Change<S> {
        self.other = Other::Unused;
        for clock in &mut self.each {
            // Who stays behind is compared with the others before it is heard again.
            clock.is_known &= clock.line == OTHER;
            (clock.line, clock.before, clock.probe_due) = (MAIN, None, NEVER);
        }
        self.set_all_plain();
        Change::Adopted
    }

    fn reject(&mut self, cause: Cause) -> Change<S> {
        self.other = Other::Unused;
        for source in 0..self.each.len() {
            if self.each[source].line == OTHER {
                self.put_off(source);
            }
        }
        self.set_all_plain();
        Change::Rejected(cause)
    }

    /// Those that have come to `time` go on in the other timeline.
    pub(super) fn divide(&mut self, time: u64, at: Moment) {
        let (mut ahead, mut from) = (S::default(), 0);
        for (n, clock) in self.voters(MAIN, at) {
            if clock.has_come_to(time, self.options.grain) {
                ahead.insert(n);
            } else {
                from = from.max(clock.said.saturating_add(1));
            }
        }
        self.dispute(&ahead, at);
        self.split = Some(Change::Split { ahead, from });
    }

    /// A source, and those that are behind `floor` as it is, go on in the other timeline.
    pub(super) fn leave_behind(&mut self, source: usize, floor: u64, at: Moment) {
        let (last, grain) = (floor.saturating_sub(1), self.options.grain);
        let mut behind = S::default();
        behind.insert(source);
        for (n, clock) in self.voters(MAIN, at) {
            if !clock.has_come_to(last, grain) {
                behind.insert(n);
            }
        }
        self.dispute(&behind, at);
    }

    /// These sources go on in the other timeline, and there is no majority.
    fn dispute(&mut self, sources: &S, at: Moment) {
        let deadline = self.options.deadline;
        self.other = Other::Disputed;
        self.bursts[OTHER] = self.bursts[MAIN];
        for (n, clock) in self.each.iter_mut().enumerate() {
            if sources.contains(n) {
                clock.take_side(OTHER, at, deadline);
            }
        }
        self.set_all_plain();
        self.next_probe = self.next_probe.min(at.after(deadline));
    }
}
