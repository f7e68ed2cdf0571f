//! Hits of all sources, merged into windows of time.
//!
//! Where boards send single hits with their times rather than events, an event is what falls into
//! one window of time. Each source's hits wait in a ring of their own, sorted; those of one window
//! are taken from all rings together, the sources in their order.
//!
//! **When a window closes.** A source is never further behind itself than `disorder`, so it has
//! said all about what lies before its latest hit less that. A window closes when all sources have
//! said all about it, those apart that have been silent for a second; or when a majority of those
//! that go on has, a deadline ago. A hit that arrives for it later is late, and counted.
//!
//! **Edges.** An event on the edge of two windows must not be torn apart: each window is given the
//! hits of a `guard` before and behind it too. A result found in a window counts if its time lies
//! inside ([`Span::holds`]): each time lies in exactly one window.
//!
//! **Whose time it is.** Times are not trusted: what a majority of the sources says holds
//! ([`pollux_pipelines::clocks`]). A source that jumps has a second set of rings, whose windows are
//! closed when a majority has followed it; one that differs from the majority is not heard.
//!
//! **What is missing.** Of a frame that was lost it is known where it would have been
//! ([`Merge::missed`]): windows there are without its source.
//!
//! Memory is bounded by the rings. A source whose ring is full loses its own hits, unless a majority
//! has come further than its oldest ones: then the windows of those are closed.

mod close;
mod hit;
mod line;
mod options;
mod source;
mod window;

use pollux_mempool::time::Tsc;
use pollux_pipelines::build::BuilderStats;
use pollux_pipelines::clocks::{Change, ClockOptions, Clocks, Late, Line, MAIN, OTHER};
use pollux_pipelines::stage::Moment;
use pollux_pmd::Cause;

use self::hit::refusal;
pub use self::hit::{HitArrival, Refusal, SLOT, StampedHit};
use self::line::Timeline;
pub use self::options::{MergeCounts, MergeError, MergeOptions};
use self::source::Waiting;
pub use self::window::Window;
pub use crate::l0::Span;
use crate::l0::{L0Record, L0Stats, MAX_EVENT_HITS};
use crate::rich::Hit;

/// Latest time that there can be: no sum with it overflows.
const LAST: u64 = 1 << 62;

/// Merges hits into windows. Allocates when it is made, and not again.
#[derive(Debug)]
pub struct Merge {
    options: MergeOptions,
    clocks: Clocks<u64>,
    /// That of the majority, and that of sources which jumped or are in dispute.
    lines: [Timeline; 2],
    /// The latest arrival of all hits.
    arrival: Tsc,
    hits: Box<[Hit; MAX_EVENT_HITS]>,
    counts: MergeCounts,
    /// Hits on trial.
    on_trial: u64,
    /// Outcome of a trial that has not been reported to the caller.
    settled: Option<Result<(), Refusal>>,
}

impl Merge {
    /// Makes one.
    ///
    /// # Errors
    /// Options out of range.
    pub fn new(options: MergeOptions) -> Result<Self, MergeError> {
        if !(1..=64).contains(&options.sources) {
            return Err(MergeError::Sources);
        }
        if !(2..=1 << 15).contains(&options.width) || options.guard > options.width / 2 {
            return Err(MergeError::Width);
        }
        if !(64..=1 << 24).contains(&options.capacity) {
            return Err(MergeError::Capacity);
        }
        let units_per_ns = SLOT as f64 / 25.0;
        if options.horizon as f64 <= options.deadline.0 as f64 * units_per_ns {
            return Err(MergeError::Horizon);
        }
        Ok(Self {
            options,
            clocks: Clocks::new(ClockOptions {
                sources: options.sources,
                horizon: options.horizon,
                deadline: options.deadline,
                slack: options.disorder,
                grain: options.disorder.max(SLOT),
                units_per_ns,
                last_burst: L0Record::LAST_BURST,
            }),
            lines: [(); 2].map(|()| Timeline::new(&options)),
            arrival: Tsc::default(),
            hits: Box::new([Hit::default(); MAX_EVENT_HITS]),
            counts: MergeCounts::default(),
            on_trial: 0,
            settled: None,
        })
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> MergeCounts {
        self.counts
    }

    /// Bit s: source s differs from the majority.
    #[must_use]
    pub fn off(&self) -> u64 {
        self.clocks.off()
    }

    /// Shows what the clocks say of the sources.
    pub(crate) fn show_clocks(&mut self, stats: &L0Stats) {
        if let Some(news) = self.clocks.take_news() {
            stats.show_clocks(&news);
        }
    }

    /// Whether it is not known yet what becomes of the hits of a source.
    #[must_use]
    pub fn is_on_trial(&self, source: usize) -> bool {
        self.clocks.is_on_trial() && self.clocks.line(source) == OTHER
    }

    /// What became of hits on trial, once.
    pub fn take_settled(&mut self) -> Option<Result<(), Refusal>> {
        self.settled.take()
    }

    /// Takes hits of `source`, and shows the windows that close to `out`.
    ///
    /// # Errors
    /// All hits were refused: why the first of them was.
    pub fn push(
        &mut self,
        source: usize,
        hits: &[StampedHit],
        when: HitArrival,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        let Some(first) = hits.first() else {
            return Ok(());
        };
        if let Err(why) = self.admit(source, first.time, when.at, false, out) {
            self.refuse(why, hits.len());
            self.close_due(when.at, out);
            return Err(why);
        }
        self.add(source, hits, when, out)
    }

    /// The same for hits of a frame whose beginning was admitted.
    pub(crate) fn add(
        &mut self,
        source: usize,
        hits: &[StampedHit],
        when: HitArrival,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        let Some(first) = hits.first() else {
            return Ok(());
        };
        let line = self.clocks.line(source);
        self.arrival = self.arrival.max(when.arrival);
        let limit = first.time.saturating_add(self.options.horizon).min(LAST);
        let (mut rest, mut why, mut refused) = (hits, None, 0);
        while let Some((&hit, others)) = rest.split_first() {
            let taken = self.lines[line].append(source, rest, limit, when);
            if taken > 0 {
                self.count_taken(source, taken as u64);
                rest = &rest[taken..];
                continue;
            }
            rest = others;
            let outcome = if hit.time > limit {
                Err(Refusal::Ahead)
            } else if hit.time < self.lines[line].floor {
                Err(Refusal::Late)
            } else {
                self.make_room(line, source, when.at, out)
            };
            match outcome {
                Ok(()) => {
                    self.lines[line].insert(source, Waiting::new(hit, when.arrival), when.at);
                    self.count_taken(source, 1);
                }
                Err(cause) => {
                    self.refuse(cause, 1);
                    why.get_or_insert(cause);
                    refused += 1;
                }
            }
        }
        let latest = self.lines[line].sources[source].latest;
        self.clocks.said(source, latest);
        if refused < hits.len() {
            self.clocks.in_time(source);
        }
        self.close_due(when.at, out);
        match why {
            Some(why) if refused == hits.len() => Err(why),
            _ => Ok(()),
        }
    }

    /// Hears that `source` has come to `time` without a hit there, which closes windows as a hit
    /// would.
    ///
    /// # Errors
    /// A hit of that time would be refused.
    pub fn hear(
        &mut self,
        source: usize,
        time: u64,
        now: Moment,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        let admitted = self.admit(source, time, now, false, out);
        if admitted.is_ok() {
            return self.go_on(source, time, now, out);
        }
        self.close_due(now, out);
        admitted
    }

    /// The same for a frame whose beginning was admitted.
    pub(crate) fn go_on(
        &mut self,
        source: usize,
        time: u64,
        now: Moment,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        let line = self.clocks.line(source);
        let late = time < self.lines[line].floor;
        if !late {
            self.lines[line].hear(source, time, now);
            self.clocks.said(source, time);
            self.clocks.in_time(source);
        }
        self.close_due(now, out);
        if late { Err(Refusal::Late) } else { Ok(()) }
    }

    /// Hears that frames of `source` were lost, or came too late to be counted on, between what it
    /// said last and `time`.
    pub fn missed(&mut self, source: usize, time: u64, frames: u16) {
        if source < self.options.sources {
            let line = self.clocks.line(source);
            self.lines[line].sources[source].add_gap(time, frames);
        }
    }

    /// Hears that one of the frames that were missing has come, with hits at `time`.
    pub fn found(&mut self, source: usize, time: u64) {
        if source < self.options.sources {
            let line = self.clocks.line(source);
            self.lines[line].sources[source].fill_gap(time);
        }
    }

    /// Closes what silent sources have held up; called now and then.
    pub fn tick(&mut self, now: Moment, out: &mut impl FnMut(Window)) {
        self.clocks.tick(now);
        self.settle(now, out);
        self.close_due(now, out);
    }

    /// The input has ended: closes all windows.
    pub fn finish(&mut self, out: &mut impl FnMut(Window)) {
        while let Some(change) = self.clocks.finish() {
            self.apply(change, out);
        }
        self.close_until(MAIN, u64::MAX, out);
        self.close_until(OTHER, u64::MAX, out);
    }

    /// A frame of `source` begins with `time`; it may be known to come behind later ones.
    ///
    /// # Errors
    /// All of it is refused.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        source: usize,
        time: u64,
        at: Moment,
        reordered: bool,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        if source >= self.options.sources {
            return Err(Refusal::Unknown);
        }
        if time > LAST {
            return Err(Refusal::Ahead);
        }
        self.settle(at, out);
        let floor = self.lines[MAIN].floor;
        let admitted = self.clocks.admit(source, time, at, floor, reordered);
        self.settle(at, out);
        admitted.map_err(refusal)?;
        let line = self.clocks.line(source);
        self.lines[line].sources[source].put_back(self.clocks.said_by(source));
        let floor = self.lines[line].floor;
        if time >= floor || reordered {
            return Ok(());
        }
        match self.clocks.late(source, time, floor, at) {
            // Others of its hits may be in time.
            Late::Refused(Cause::Late) => {}
            Late::Refused(cause) => return Err(refusal(cause)),
            Late::StepBack => {
                self.lines[line].step_back(time);
                self.counts.jumps += 1;
            }
            Late::Moved => self.settle(at, out),
        }
        Ok(())
    }

    #[inline]
    fn count_taken(&mut self, source: usize, hits: u64) {
        self.counts.taken += hits;
        if self.is_on_trial(source) {
            self.on_trial += hits;
        }
    }

    /// Counts refused hits.
    pub(crate) fn refuse(&mut self, why: Refusal, hits: usize) {
        let count = match why {
            Refusal::Late => &mut self.counts.late,
            Refusal::Ahead => &mut self.counts.ahead,
            Refusal::Skewed => &mut self.counts.skewed,
            Refusal::Full => &mut self.counts.full,
            Refusal::Unknown => &mut self.counts.unknown,
        };
        *count += hits as u64;
    }

    /// Sees to it that the ring of a source has room for a hit.
    #[inline]
    fn make_room(
        &mut self,
        line: Line,
        source: usize,
        now: Moment,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        while self.lines[line].sources[source].is_full() {
            let on_trial = line == OTHER && self.clocks.is_on_trial();
            let members = self.clocks.members(line) & !self.clocks.off();
            let front = self.lines[line].front(members, now).unwrap_or(0);
            let start = self.lines[line].next().unwrap_or(u64::MAX);
            if on_trial || start.saturating_add(self.reach()) > front {
                return Err(Refusal::Full);
            }
            self.counts.forced += 1;
            self.close(line, start, out);
        }
        Ok(())
    }

    /// From the beginning of a window to the end of its guard.
    fn reach(&self) -> u64 {
        u64::from(self.options.width) + u64::from(self.options.guard)
    }

    /// Does what has been decided about the second timeline.
    #[inline]
    pub(crate) fn settle(&mut self, now: Moment, out: &mut impl FnMut(Window)) {
        if self.clocks.is_restless() {
            while let Some(change) = self.clocks.change(now) {
                self.apply(change, out);
            }
        }
    }

    #[cold]
    fn apply(&mut self, change: Change<u64>, out: &mut impl FnMut(Window)) {
        match change {
            Change::Adopted => {
                self.close_until(MAIN, u64::MAX, out);
                self.lines.swap(MAIN, OTHER);
                self.lines[OTHER].clear();
                self.clocks.take_burst();
                self.counts.jumps += 1;
                (self.on_trial, self.settled) = (0, Some(Ok(())));
            }
            Change::Rejected(cause) => {
                self.lines[OTHER].clear();
                let hits = std::mem::take(&mut self.on_trial);
                self.counts.taken -= hits;
                self.refuse(refusal(cause), hits as usize);
                self.settled = Some(Err(refusal(cause)));
            }
            Change::Disputed => (self.on_trial, self.settled) = (0, Some(Ok(()))),
            Change::Split { ahead, .. } => {
                let [main, other] = &mut self.lines;
                main.split_to(other, ahead);
            }
            Change::Joined => {
                self.close_until(OTHER, u64::MAX, out);
                self.lines[OTHER].clear();
            }
        }
    }
}

#[cfg(test)]
mod tests;
