//! Time by majority vote: which source's time stamps are accepted.
//!
//! The clock of a source may have an offset, drift, jump, or be random. Time is therefore kept for
//! each source, and an event builder advances only to a time that a majority of the sources has
//! reached.
//!
//! - A source *goes on* if its time stamp is not behind its last one, and ahead of it by at most
//!   the horizon plus the time elapsed since: idle time is no jump.
//! - A source that does not go on, or sends for the first time, is compared with the others. If
//!   most of them are near its time stamp, it belongs to the main timeline. Otherwise it opens a
//!   second timeline, on trial: its fragments are kept apart. If a majority follows, time has
//!   jumped (a new burst, see [`Clocks::burst`]), and the second timeline becomes the main one;
//!   none of its fragments is lost. If the source returns to its old time, the time stamp was a
//!   stray one. If neither happens within the deadline, the source is *off*.
//! - A source that goes on may be ahead of the others, or behind. Once per deadline its time is
//!   compared with the time that the others have reached a deadline later ([`Clocks::vote`]). A
//!   source is off if most others have not reached its time, if it repeatedly has not reached the
//!   time of most others, or if all its fragments have been late for a deadline.
//! - A source that is off does not advance time. Its frames are refused ([`Cause::ClockSkew`])
//!   unless their time agrees with the others to within the deadline. After some frames that agree,
//!   the source is accepted again.
//! - Without a majority (two sources, or two pairs), both timelines go on, and their events are
//!   marked ([`Clocks::is_disputed`]), until one side has a majority or the other is silent.
//!
//! The caller chooses the unit of time, for example slots. Memory is constant.

mod clock;
mod judge;
mod outcome;
mod probe;
mod trial;
mod votes;

use pollux_mempool::time::Ns;
use pollux_pmd::Cause;

use self::clock::{Clock, NEVER};
pub use self::clock::{LIVE, Line, MAIN, OTHER};
pub use self::outcome::{Change, Late, News, Vote};
use crate::sources::{SourceSet, set_of};
use crate::stage::Moment;

/// Consecutive late frames, over at least a deadline, that put a source off; frames of a single
/// source that prove a jump.
const LATE_RUN: u32 = 8;
/// Consecutive frames in agreement after which a source that was off is accepted again.
const AGREED: u32 = 8;
/// Consecutive ties that turn a difference into a dispute.
const TIES: u32 = 2;

/// The number of the first burst.
pub const FIRST_BURST: u16 = 1;

/// Parameters of [`Clocks`].
#[derive(Clone, Copy, Debug)]
pub struct ClockOptions {
    /// Number of sources, at most as many as the set of sources has.
    pub sources: usize,
    /// How far a time stamp may be ahead of the last one of its source, and of the others.
    pub horizon: u64,
    /// How far a time stamp may be behind an earlier one of its source.
    pub slack: u64,
    /// Bound on the difference between the time stamps of sources for one event.
    pub grain: u64,
    /// Longest time that sources wait for each other.
    pub deadline: Ns,
    /// Units of time in a nanosecond.
    pub units_per_ns: f64,
    /// The number of the last burst, which the first one follows.
    pub last_burst: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    Unused,
    Trial {
        opened: Moment,
        frames: u32,
        /// Drop cause of its frames if its source returns to the main timeline.
        stray: Cause,
    },
    Disputed,
}

/// The clocks of all sources.
///
/// # Panics
/// Methods panic where `source` is not below [`ClockOptions::sources`].
#[derive(Debug)]
pub struct Clocks<S> {
    options: ClockOptions,
    /// The deadline in units of time.
    tolerance: u64,
    /// One for each source.
    each: Box<[Clock]>,
    other: Other,
    /// A split that [`change`](Self::change) has not reported yet.
    split: Option<Change<S>>,
    /// Sources whose last frames were late.
    lates: S,
    /// When the time of a source is next compared with the others.
    next_probe: Moment,
    /// Sources that are off.
    off: S,
    /// Number of times that each source was put off, or returned to the others from another time.
    strays: Box<[u64]>,
    /// The burst that each timeline is in, from 1.
    bursts: [u16; 2],
    /// The result of [`take_news`](Self::take_news) may have changed.
    has_news: bool,
}

impl<S: SourceSet> Clocks<S> {
    /// Clocks of sources that have sent nothing yet.
    #[must_use]
    pub fn new(options: ClockOptions) -> Self {
        let tolerance = options.deadline.0 as f64 * options.units_per_ns;
        Self {
            options,
            tolerance: (tolerance as u64).max(1),
            each: vec![Clock::default(); options.sources].into(),
            other: Other::Unused,
            split: None,
            lates: S::default(),
            next_probe: NEVER,
            off: S::default(),
            strays: vec![0; options.sources].into(),
            bursts: [FIRST_BURST; 2],
            has_news: true,
        }
    }

    /// State of the sources, if it may have changed since the last call.
    #[inline]
    pub fn take_news(&mut self) -> Option<News<'_, S>> {
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

    /// Number of the burst of a timeline, from 1. It is incremented whenever time restarts: a
    /// majority goes back, or the first source does that sends after all have been silent.
    #[must_use]
    #[inline]
    pub fn burst(&self, line: Line) -> u16 {
        self.bursts[line & 1]
    }

    /// Takes over the burst number of the other timeline, which has become the main one.
    pub fn take_burst(&mut self) {
        self.bursts[MAIN] = self.bursts[OTHER];
        self.has_news = true;
    }

    /// Latest time of a source in its timeline, since it was last compared with the others.
    #[must_use]
    #[inline]
    pub fn said_by(&self, source: usize) -> u64 {
        self.each[source].said
    }

    /// Sources in this timeline.
    #[must_use]
    pub fn members(&self, line: Line) -> S {
        set_of(self.each.len(), |source| self.each[source].line == line)
    }

    /// Sources that differ from the majority.
    #[must_use]
    #[inline]
    pub fn off(&self) -> S {
        self.off
    }

    /// Whether two timelines go on because there is no majority.
    #[must_use]
    #[inline]
    pub fn is_disputed(&self) -> bool {
        self.other == Other::Disputed
    }

    /// Whether the second timeline is on trial: none of its events may be closed.
    #[must_use]
    #[inline]
    pub fn is_on_trial(&self) -> bool {
        matches!(self.other, Other::Trial { .. })
    }

    /// Whether [`change`](Self::change) may return a change.
    #[must_use]
    #[inline]
    pub fn is_restless(&self) -> bool {
        self.other != Other::Unused
    }

    /// Checks a frame of `source` whose first time is `time`; events before `floor` of the main
    /// timeline are closed. An admitted frame belongs to the [`line`](Self::line) of its source. A
    /// frame that is known to be older than others of its source (`reordered`) does not change the
    /// state of the clock.
    ///
    /// # Errors
    /// The drop cause of the whole frame.
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

    /// Records that `source` has reached `time` in its timeline, after the frame was admitted.
    #[inline]
    pub fn said(&mut self, source: usize, time: u64) {
        let clock = &mut self.each[source];
        clock.said = clock.said.max(time);
    }

    /// Records that a fragment of `source` was in time.
    #[inline]
    pub fn in_time(&mut self, source: usize) {
        if !self.lates.is_empty() {
            self.lates.remove(source);
            self.each[source].late = 0;
        }
    }

    /// Updates whether the check that a source goes on is sufficient for it.
    fn set_plain(&mut self, source: usize) {
        let on_trial = self.is_on_trial();
        let clock = &mut self.each[source];
        clock.is_plain = clock.is_known && !clock.off && !(on_trial && clock.line == OTHER);
        if clock.off {
            self.off.insert(source);
        } else {
            self.off.remove(source);
        }
        self.has_news = true;
    }

    fn set_all_plain(&mut self) {
        (0..self.each.len()).for_each(|source| self.set_plain(source));
    }

    fn put_off(&mut self, source: usize) {
        self.strays[source] += 1;
        let clock = &mut self.each[source];
        (clock.off, clock.agreed, clock.late, clock.lags) = (true, 0, 0, 0);
        (clock.line, clock.before, clock.probe_due) = (MAIN, None, NEVER);
        self.set_plain(source);
    }
}

#[cfg(test)]
mod tests;
