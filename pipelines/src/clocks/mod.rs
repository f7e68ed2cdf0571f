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
use crate::stage::Moment;

/// Late frames in a row, for at least a deadline, that put a source off; frames of a single source
/// that prove a jump.
const LATE_RUN: u32 = 8;
/// Frames in a row in agreement after which a source that was off is believed again.
const AGREED: u32 = 8;
/// Ties in a row that make a dispute of a difference.
const TIES: u32 = 2;

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
