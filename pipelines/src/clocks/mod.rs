//! Time by majority: which source's time stamps to believe.
//!
//! The clock of a source may have an offset, drift, jump, or be random. Time is therefore kept for
//! each source, and an event builder moves on only to what a majority of the sources has reached.
//!
//! - A source *goes on* when its time stamp is not behind its last one, and ahead of it by the
//!   horizon at most, plus the time that has passed since: idle time is no jump.
//! - A source that does not go on, or speaks for the first time, is compared with the others. If
//!   most of them are near its time stamp, it belongs to the main timeline. Else it opens a second
//!   timeline, on trial: its fragments are kept apart. If a majority follows, time has jumped (a
//!   new spill), and the second timeline becomes the main one; nothing of it is lost. If the source
//!   comes back, the time stamp was a stray one. If neither happens within the deadline, the source
//!   is *off*.
//! - A source that goes on may be ahead of the others, or behind. Once in a deadline its time is
//!   compared with what the others have reached a deadline later ([`Clocks::vote`]). One that most
//!   others have not reached is off. So is one that has not reached what most others have, again and
//!   again, and one whose fragments have all been late for a deadline.
//! - A source that is off moves nothing: what it sends is refused ([`Cause::ClockSkew`]) unless it
//!   agrees with the others to the deadline. It is believed again after some frames that do.
//! - Where there is no majority (two sources, or two pairs), both timelines go on, and their events
//!   say so ([`Clocks::is_disputed`]), until one side has a majority or is silent.
//!
//! Times are in units of the caller's, for example slots. Memory is constant.

mod clock;
mod probe;
mod trial;

use pollux_mempool::time::Ns;
use pollux_pmd::Cause;

use self::clock::{Clock, NEVER};
use crate::stage::Moment;

/// How long a silent source has a say about what time it is.
pub const LIVE: Ns = Ns(1_000_000_000);
/// Late frames in a row, for at least a deadline, that put a source off; frames of a single source
/// that prove a jump.
const LATE_RUN: u32 = 8;
/// Frames in a row in agreement after which a source that was off is believed again.
const AGREED: u32 = 8;
/// Ties in a row that make a dispute of a difference.
const TIES: u32 = 2;

/// A timeline: an index into the two that a builder keeps.
pub type Line = usize;
/// The timeline of the majority.
pub const MAIN: Line = 0;
/// The one on trial, or in dispute.
pub const OTHER: Line = 1;

/// The number of the first burst.
pub const FIRST_BURST: u16 = 1;

/// Parameters of [`Clocks`].
#[derive(Clone, Copy, Debug)]
pub struct ClockOptions {
    /// Number of sources, at most 64.
    pub sources: usize,
    /// How far a time stamp may be ahead of the last one of its source, and of the others.
    pub horizon: u64,
    /// How far a time stamp may be behind an earlier one of its source.
    pub slack: u64,
    /// What sources say of one event is nearer than this.
    pub grain: u64,
    /// How long sources wait for each other.
    pub deadline: Ns,
    /// Units of time in a nanosecond.
    pub units_per_ns: f64,
    /// The number of the last burst, which the first one follows.
    pub last_burst: u16,
}

/// What there is to be said of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News<'a> {
    /// Bit s: source s differs from the majority.
    pub off: u64,
    /// Times that each source was put off, or came back to the others from a time of its own.
    pub strays: &'a [u64],
    /// Number of the burst that the majority is in.
    pub burst: u16,
}

/// What a builder has to do with its timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Close all events of the main timeline; the other one takes its place, and its burst
    /// ([`Clocks::take_burst`]).
    Adopted,
    /// Forget the other timeline, whose frames are lost for this cause.
    Rejected(Cause),
    /// There is no majority: close events of both timelines from now on.
    Disputed,
    /// There is no majority, and these sources (bit s: source s) are ahead: with their events from
    /// this time on they go on in the other timeline.
    Split {
        /// Bit s: source s is ahead.
        ahead: u64,
        /// The first time that is in the other timeline.
        from: u64,
    },
    /// The dispute is over: close all events of the other timeline.
    Joined,
}

/// What a majority says to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Most have come to it, or no source is heard that has not.
    Reached,
    /// As many have come to it as have not.
    Tie,
    /// Most are still behind it.
    Ahead,
}

/// What to do with a fragment that is behind what was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Refuse it.
    Refused(Cause),
    /// Most sources are behind what was closed: go back there.
    StepBack,
    /// Its source goes on in the other timeline.
    Moved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    Unused,
    Trial {
        opened: Moment,
        frames: u32,
        /// For which cause its frames are lost if its source comes back.
        stray: Cause,
    },
    Disputed,
}

/// The clocks of all sources.
///
/// # Panics
/// Methods panic where `source` is not below [`ClockOptions::sources`].
#[derive(Debug)]
pub struct Clocks {
    options: ClockOptions,
    /// The deadline in units of time.
    tolerance: u64,
    /// One for each source.
    each: Box<[Clock]>,
    other: Other,
    /// A split that the builder has not been told of.
    split: Option<Change>,
    /// Bit s: the last frames of source s were late.
    lates: u64,
    /// When a time that a source said is to be looked at.
    next_probe: Moment,
    /// Bit s: source s is off.
    off: u64,
    /// Times that each source was put off, or came back to the others from a time of its own.
    strays: Box<[u64]>,
    /// The burst that each timeline is in, from 1.
    bursts: [u16; 2],
    /// What is to be shown may have changed.
    has_news: bool,
}

impl Clocks {
    /// For at most 64 sources, of which nothing has been heard.
    #[must_use]
    pub fn new(options: ClockOptions) -> Self {
        let tolerance = options.deadline.0 as f64 * options.units_per_ns;
        Self {
            options,
            tolerance: (tolerance as u64).max(1),
            each: vec![Clock::default(); options.sources].into(),
            other: Other::Unused,
            split: None,
            lates: 0,
            next_probe: NEVER,
            off: 0,
            strays: vec![0; options.sources].into(),
            bursts: [FIRST_BURST; 2],
            has_news: true,
        }
    }

    /// What there is to be said of the sources, if that may have changed since this was asked last.
    #[inline]
    pub fn take_news(&mut self) -> Option<News<'_>> {
        std::mem::take(&mut self.has_news).then(|| News {
            off: self.off,
            strays: &self.strays,
            burst: self.bursts[MAIN],
        })
    }

    /// The number of the burst behind that of the main timeline.
    fn next_burst(&self) -> u16 {
        self.bursts[MAIN] % self.options.last_burst + 1
    }

    /// The timeline of a source.
    #[must_use]
    #[inline]
    pub fn line(&self, source: usize) -> Line {
        self.each[source].line
    }

    /// Number of the burst that a timeline is in, from 1: one more whenever time has begun anew, which
    /// is when a majority goes back, or the first source that is heard when all have been silent.
    #[must_use]
    #[inline]
    pub fn burst(&self, line: Line) -> u16 {
        self.bursts[line & 1]
    }

    /// The main timeline goes on with the burst of the other one, whose place it has taken.
    pub fn take_burst(&mut self) {
        self.bursts[MAIN] = self.bursts[OTHER];
        self.has_news = true;
    }

    /// The latest time that a source said in its timeline, since it was last compared with the others.
    #[must_use]
    #[inline]
    pub fn said_by(&self, source: usize) -> u64 {
        self.each[source].said
    }

    /// Bit s: source s is in this timeline.
    #[must_use]
    pub fn members(&self, line: Line) -> u64 {
        self.mask(|clock| clock.line == line)
    }

    /// Bit s: source s differs from the majority.
    #[must_use]
    #[inline]
    pub fn off(&self) -> u64 {
        self.off
    }

    /// Whether two timelines go on for want of a majority.
    #[must_use]
    #[inline]
    pub fn is_disputed(&self) -> bool {
        self.other == Other::Disputed
    }

    /// Whether the second timeline is on trial, so that nothing of it may be closed.
    #[must_use]
    #[inline]
    pub fn is_on_trial(&self) -> bool {
        matches!(self.other, Other::Trial { .. })
    }

    /// Whether [`change`](Self::change) may have something to say.
    #[must_use]
    #[inline]
    pub fn is_restless(&self) -> bool {
        self.other != Other::Unused
    }

    fn mask(&self, holds: impl Fn(&Clock) -> bool) -> u64 {
        let bit = |(n, clock): (usize, &Clock)| u64::from(holds(clock)) << n;
        self.each.iter().enumerate().map(bit).sum()
    }

    /// A frame of `source` begins with `time`; events before `floor` of the main timeline are
    /// closed. If it is admitted, it belongs to the [`line`](Self::line) of its source. A frame that
    /// is known to come behind later ones of its source (`reordered`) says nothing of its clock.
    ///
    /// # Errors
    /// The cause for which all of the frame is refused.
    #[inline]
    pub fn admit(
        &mut self,
        source: usize,
        time: u64,
        at: Moment,
        floor: u64,
        reordered: bool,
    ) -> Result<(), Cause> {
        let clock = &mut self.each[source];
        if reordered && clock.is_known && !clock.off && time <= clock.said {
            return Ok(());
        }
        let goes_on = time.saturating_add(self.options.slack) >= clock.said
            && time.saturating_sub(clock.said) <= self.options.horizon;
        if clock.is_plain && goes_on && at < self.next_probe {
            clock.heard = at;
            return Ok(());
        }
        self.judge(source, time, at, floor)
    }

    /// `source` has come to `time` in its timeline, of which `time` was admitted.
    #[inline]
    pub fn said(&mut self, source: usize, time: u64) {
        let clock = &mut self.each[source];
        clock.said = clock.said.max(time);
    }

    /// A fragment of `source` was in time.
    #[inline]
    pub fn in_time(&mut self, source: usize) {
        if self.lates != 0 {
            self.lates &= !(1 << source);
            self.each[source].late = 0;
        }
    }

    #[cold]
    fn judge(&mut self, source: usize, time: u64, at: Moment, floor: u64) -> Result<(), Cause> {
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
        // What it has said lately contradicts itself.
        let lately = known && clock.line == MAIN && clock.is_live(at);
        let in_step = self.is_near(source, MAIN, time, at, self.tolerance) == Some(true);
        let went_back = lately && time < clock.said && time < floor && !in_step;
        let went_ahead = lately && time > clock.said;
        let in_other = self.agrees(source, OTHER, time, at) == Some(true);
        let line = match in_main {
            Some(true) if !went_back => Some(MAIN),
            _ if in_other => Some(OTHER),
            // Nobody else is heard, and it has said nothing else of late: nobody contradicts.
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

    /// A source has no place in either timeline. After a while it is compared with the others as if
    /// it had said nothing.
    fn forget_if_lost(&mut self, source: usize, at: Moment) {
        if self.count_late(source, at) {
            self.each[source] = Clock::default();
            self.set_plain(source);
        }
    }

    /// Counts a late frame; whether there have been many in a row, for longer than a deadline.
    fn count_late(&mut self, source: usize, at: Moment) -> bool {
        let clock = &mut self.each[source];
        if clock.late == 0 {
            clock.late_since = at;
        }
        clock.late = clock.late.saturating_add(1);
        self.lates |= 1 << source;
        clock.late >= LATE_RUN && clock.late_since.after(self.options.deadline) < at
    }

    /// Whether a source that was at `said` may be at `time` now.
    fn goes_on(&self, said: u64, heard: Moment, time: u64, at: Moment) -> bool {
        let reach = self.options.horizon.saturating_add(self.passed(heard, at));
        time.saturating_add(self.options.slack) >= said && time.saturating_sub(said) <= reach
    }

    /// Time that has passed between two moments, in units.
    fn passed(&self, from: Moment, to: Moment) -> u64 {
        (to.0.saturating_sub(from.0) as f64 * self.options.units_per_ns) as u64
    }

    /// The others that have a say in a timeline.
    fn voters(&self, line: Line, at: Moment) -> impl Iterator<Item = (usize, &Clock)> {
        let clocks = self.each.iter().enumerate();
        clocks.filter(move |(_, clock)| clock.line == line && !clock.off && clock.is_live(at))
    }

    /// Whether most others in a timeline are near a time; `None` where nobody else is heard.
    fn agrees(&self, source: usize, line: Line, time: u64, at: Moment) -> Option<bool> {
        let reach = if self.each[source].off {
            self.tolerance
        } else {
            self.options.horizon
        };
        self.is_near(source, line, time, at, reach)
    }

    fn is_near(
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

    /// Whether a time of a source is near that of most others in its timeline, to the deadline.
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

    /// Puts a source into a timeline, at a time.
    fn enter(&mut self, source: usize, line: Line, time: u64, at: Moment) {
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

    /// Notes whether a source needs no more than the check that it goes on.
    fn set_plain(&mut self, source: usize) {
        let on_trial = self.is_on_trial();
        let clock = &mut self.each[source];
        clock.is_plain = clock.is_known && !clock.off && !(on_trial && clock.line == OTHER);
        self.off = self.off & !(1 << source) | u64::from(clock.off) << source;
        self.has_news = true;
    }

    fn set_all_plain(&mut self) {
        (0..self.each.len()).for_each(|source| self.set_plain(source));
    }

    /// What the sources of a timeline say to a time: those that have come to it, against those that
    /// have been heard since `since` and have not, or up to a deadline before, and are further behind
    /// than that.
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

    fn put_off(&mut self, source: usize) {
        self.strays[source] += 1;
        let clock = &mut self.each[source];
        (clock.off, clock.agreed, clock.late, clock.lags) = (true, 0, 0, 0);
        (clock.line, clock.before, clock.probe_due) = (MAIN, None, NEVER);
        self.set_plain(source);
    }

    /// The first fragment of a frame of `source`, of `time`, is behind `floor`, the end of what was
    /// closed in its timeline.
    pub fn late(&mut self, source: usize, time: u64, floor: u64, at: Moment) -> Late {
        let line = self.each[source].line;
        // It may have come so far itself, and have a second fragment for what was closed.
        let grain = self.options.grain;
        let last = floor.saturating_sub(1);
        let own = self.each[source].has_come_to(last, grain);
        let (mut reached, mut behind) = (usize::from(own), usize::from(!own));
        for (_, clock) in self.voters(line, at).filter(|&(n, _)| n != source) {
            let has = clock.has_come_to(last, grain);
            reached += usize::from(has);
            behind += usize::from(!has);
        }
        // Its clock may be right, and its frames slow.
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

#[cfg(test)]
mod tests;
