//! Timeline of a frame whose source does not simply go on.

use pollux_pmd::Cause;

use super::clock::{Clock, Line, MAIN, NEVER, OTHER};
use super::outcome::Late;
use super::{AGREED, Clocks, LATE_RUN, Other};
use crate::sources::SourceSet;
use crate::stage::Moment;

impl<S: SourceSet> Clocks<S> {
    #[cold]
    pub(super) fn judge(
        &mut self,
        source: usize,
        time: u64,
        at: Moment,
        floor: u64,
    ) -> Result<(), Cause> {
        self.tick(at);
        let clock = self.each[source];
        if let Some((said, heard)) = clock.before
            && self.goes_on(said, heard, time, at)
        {
            self.strays[source] += 1;
            self.enter(source, MAIN, time, at);
            return Ok(());
        }
        let known = clock.is_known && !clock.off;
        let on_trial = self.is_on_trial() && clock.line == OTHER;
        let in_main = self.agrees(source, MAIN, time, at);
        if on_trial && time >= floor && in_main == Some(true) {
            self.strays[source] += 1;
            self.enter(source, MAIN, time, at);
            return Ok(());
        }
        if known && self.goes_on(clock.said, clock.heard, time, at) {
            self.each[source].heard = at;
            self.set_probe(source, time, at);
            self.set_plain(source);
            self.count_trial(source);
            return Ok(());
        }
        // The recent times of the source contradict each other.
        let lately = known && clock.line == MAIN && clock.is_live(at);
        let in_step = self.is_near(source, MAIN, time, at, self.tolerance) == Some(true);
        let went_back = lately && time < clock.said && time < floor && !in_step;
        let went_ahead = lately && time > clock.said;
        let in_other = self.agrees(source, OTHER, time, at) == Some(true);
        let line = match in_main {
            Some(true) if !went_back => Some(MAIN),
            _ if in_other => Some(OTHER),
            // No other source has sent, and the source has not contradicted itself.
            None if !went_back && !went_ahead => {
                self.each[source].off = false;
                if clock.is_known && time < clock.said.min(floor) {
                    self.bursts[MAIN] = self.next_burst();
                    self.has_news = true;
                }
                Some(MAIN)
            }
            _ => None,
        };
        if let Some(line) = line {
            self.strays[source] += u64::from(lately && line == MAIN && time < clock.said);
            self.enter(source, line, time, at);
            return Ok(());
        }
        if clock.off {
            self.each[source].agreed = 0;
            return Err(Cause::ClockSkew);
        }
        let stray = if time < floor {
            Cause::Late
        } else {
            Cause::OutOfWindow
        };
        if self.other != Other::Unused {
            self.forget_if_lost(source, at);
            return Err(stray);
        }
        self.bursts[OTHER] = if time < floor {
            self.next_burst()
        } else {
            self.bursts[MAIN]
        };
        self.other = Other::Trial {
            opened: at,
            frames: 0,
            stray,
        };
        self.enter(source, OTHER, time, at);
        Ok(())
    }

    /// Handles a source that fits neither timeline. After repeated late frames its clock is reset,
    /// so that it is compared with the others as a new source.
    pub(super) fn forget_if_lost(&mut self, source: usize, at: Moment) {
        if self.count_late(source, at) {
            self.each[source] = Clock::default();
            self.set_plain(source);
        }
    }

    /// Counts a late frame; whether there have been many consecutive ones, over more than a
    /// deadline.
    pub(super) fn count_late(&mut self, source: usize, at: Moment) -> bool {
        let clock = &mut self.each[source];
        if clock.late == 0 {
            clock.late_since = at;
        }
        clock.late = clock.late.saturating_add(1);
        self.lates.insert(source);
        clock.late >= LATE_RUN && clock.late_since.after(self.options.deadline) < at
    }

    /// Puts a source into a timeline, at a time.
    pub(super) fn enter(&mut self, source: usize, line: Line, time: u64, at: Moment) {
        let on_trial = self.is_on_trial();
        let clock = &mut self.each[source];
        if line == OTHER {
            if clock.line == MAIN && clock.is_known && !clock.off && on_trial {
                clock.before = Some((clock.said, clock.heard));
            }
            clock.off = false;
        } else {
            clock.before = None;
            clock.agreed += 1;
            clock.off &= clock.agreed < AGREED;
        }
        if clock.line != line {
            clock.probe_due = NEVER;
        }
        (clock.line, clock.said, clock.heard) = (line, time, at);
        clock.is_known = true;
        self.set_probe(source, time, at);
        self.count_trial(source);
        self.set_plain(source);
    }

    /// Judges a frame of `source` whose first fragment, at `time`, is before `floor`, the end of
    /// the closed events of its timeline.
    pub fn late(&mut self, source: usize, time: u64, floor: u64, at: Moment) -> Late {
        let line = self.each[source].line;
        // The source may have reached that time, and have a second fragment for a closed event.
        let grain = self.options.grain;
        let last = floor.saturating_sub(1);
        let own = self.each[source].has_come_to(last, grain);
        let (mut reached, mut behind) = (usize::from(own), usize::from(!own));
        for (_, clock) in self.voters(line, at).filter(|&(n, _)| n != source) {
            let has = clock.has_come_to(last, grain);
            reached += usize::from(has);
            behind += usize::from(!has);
        }
        // Its clock may be right, and its frames delayed.
        let in_step = self.is_in_step(source, time, at);
        let off = self.each[source].off;
        if !off && behind > reached {
            return Late::StepBack;
        }
        let always = self.count_late(source, at);
        if off || in_step || !always {
            return Late::Refused(Cause::Late);
        }
        if behind == reached && self.other == Other::Unused {
            self.leave_behind(source, floor, at);
            return Late::Moved;
        }
        self.put_off(source);
        Late::Refused(Cause::ClockSkew)
    }
}
