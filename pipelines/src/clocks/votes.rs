//! Votes of the sources of a timeline on a time.

use super::Clocks;
use super::clock::{Clock, Line, MAIN, OTHER};
use super::outcome::Vote;
use crate::sources::SourceSet;
use crate::stage::Moment;

impl<S: SourceSet> Clocks<S> {
    /// Whether a source that was at `said` may be at `time` now.
    pub(super) fn goes_on(&self, said: u64, heard: Moment, time: u64, at: Moment) -> bool {
        let reach = self.options.horizon.saturating_add(self.passed(heard, at));
        time.saturating_add(self.options.slack) >= said && time.saturating_sub(said) <= reach
    }

    /// Time that has passed between two moments, in units.
    pub(super) fn passed(&self, from: Moment, to: Moment) -> u64 {
        (to.0.saturating_sub(from.0) as f64 * self.options.units_per_ns) as u64
    }

    /// The sources that vote in a timeline.
    pub(super) fn voters(&self, line: Line, at: Moment) -> impl Iterator<Item = (usize, &Clock)> {
        let clocks = self.each.iter().enumerate();
        clocks.filter(move |(_, clock)| clock.line == line && !clock.off && clock.is_live(at))
    }

    /// Whether most other sources in a timeline are near a time; `None` if there is no other.
    pub(super) fn agrees(&self, source: usize, line: Line, time: u64, at: Moment) -> Option<bool> {
        let reach = if self.each[source].off {
            self.tolerance
        } else {
            self.options.horizon
        };
        self.is_near(source, line, time, at, reach)
    }

    pub(super) fn is_near(
        &self,
        source: usize,
        line: Line,
        time: u64,
        at: Moment,
        reach: u64,
    ) -> Option<bool> {
        let (mut near, mut all) = (0, 0);
        for (_, other) in self.voters(line, at).filter(|&(n, _)| n != source) {
            let last = other.said.saturating_add(self.passed(other.heard, at));
            all += 1;
            near += usize::from(
                time >= other.said.saturating_sub(reach) && time <= last.saturating_add(reach),
            );
        }
        (all > 0).then_some(2 * near >= all)
    }

    /// Whether a time of a source agrees with most others in its timeline, to within the deadline.
    #[must_use]
    pub fn is_in_step(&self, source: usize, time: u64, at: Moment) -> bool {
        let line = self.each[source].line;
        line == OTHER || self.is_near(source, line, time, at, self.tolerance) != Some(false)
    }

    /// Whether two times are no further apart than the deadline.
    #[must_use]
    #[inline]
    pub fn are_close(&self, earlier: u64, later: u64) -> bool {
        later.saturating_sub(earlier) <= self.tolerance
    }

    /// Whether others in the timeline of a source have been heard within the last deadline.
    #[must_use]
    pub fn has_company(&self, source: usize, at: Moment) -> bool {
        let recent = |clock: &Clock| at <= clock.heard.after(self.options.deadline);
        let mut others = self.voters(self.each[source].line, at);
        others.any(|(n, clock)| n != source && recent(clock))
    }

    /// Whether the sources that have reached a time are ahead of those that have not by nearly a
    /// deadline. Sources of one time differ by the delay of their frames alone.
    pub(super) fn is_divided(&self, time: u64, at: Moment) -> bool {
        let (mut least, mut most) = (u64::MAX, 0);
        for (_, clock) in self.voters(MAIN, at) {
            if clock.has_come_to(time, self.options.grain) {
                least = least.min(clock.said);
            } else {
                most = most.max(clock.said);
            }
        }
        least.saturating_sub(most) > self.tolerance / 4 * 3
    }

    /// Votes of the sources of a timeline on a time: the sources that have reached it, against
    /// those that have not. Of the latter, a source counts if it has sent since `since`, or if it
    /// has sent within the deadline before that and is behind by more than a deadline.
    #[must_use]
    pub fn vote(&self, line: Line, time: u64, since: Moment, now: Moment) -> Vote {
        let (mut reached, mut behind) = (0, 0);
        for (_, clock) in self.voters(line, now) {
            let has = clock.has_come_to(time, self.options.grain);
            reached += usize::from(has);
            let far = clock.is_far_behind(time, self.tolerance, since, self.options.deadline);
            behind += usize::from(!has && (clock.heard >= since || far));
        }
        if behind > reached {
            Vote::Ahead
        } else if behind == reached && behind > 0 {
            Vote::Tie
        } else {
            Vote::Reached
        }
    }
}
