//! Build: fragments of all sources into events, by time stamp.
//!
//! An event is closed when all sources have contributed or when its deadline comes, whichever is
//! first, and events leave in the order of their time stamps: one that is complete waits for the
//! older ones. An event that is opened behind a younger one shares that one's deadline, so that no
//! event waits longer than its own. What comes for a closed event is late. The number of open
//! events is bounded; when one more is needed, the oldest is closed. The hits of an event are
//! gathered in its buffer, in the order of the sources.
//!
//! Time stamps are not trusted: time is what a majority of the sources says ([`pollux_pipelines::clocks`]).
//!
//! - An event that most sources have not come to stays open at its deadline, and those behind it
//!   keep their own. So a source that is ahead closes nothing of the others, and is put off.
//! - A source that jumps opens a second timeline. Its events are closed when a majority has
//!   followed, and forgotten when none does.
//! - Without a majority events of both timelines are closed, and marked as disputed.

mod close;
mod options;
mod timeline;

use std::collections::VecDeque;
use std::sync::Arc;

use pollux_mempool::PoolCache;
use pollux_mempool::time::Ns;
use pollux_pipelines::StageEnv;
use pollux_pipelines::clocks::{Change, ClockOptions, Clocks, Late, Line, MAIN, OTHER, Vote};
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Moment, Stage};
use pollux_pmd::Cause;

pub use self::options::BuildOptions;
use self::options::MAX_OPEN;
use self::timeline::{Open, Timeline};
use super::limits::{MAX_WINDOW, check_hot, check_sources, check_times};
use super::outcome::{Outcome, Outcomes};
use crate::formats::hits::MAX_HITS;
use crate::l0::{
    Apart, Draft, Event, Fragment, Fragments, L0Record, L0Stats, MAX_SOURCES, make_events, stats,
};
use crate::merge::SLOT;
use crate::rich::Hit;

/// Buffers that are asked for before they are needed: they were last used by whoever took the
/// events at the end of the chain. Half of them at a time, so that they are waited for together.
const AHEAD: usize = 16;

/// Nanoseconds of a slot.
const SLOT_NS: u64 = 25;

/// The frame whose fragments are being taken.
#[derive(Clone, Copy)]
struct Taking {
    /// Key of its first fragment, and the timeline that it belongs to.
    first: u64,
    line: Line,
    /// What becomes of all of it.
    fate: Outcome,
    /// What becomes of its late fragments, once one was.
    late: Option<Cause>,
}

/// The event builder.
pub struct Build {
    window: u64,
    deadline: Ns,
    /// In windows.
    horizon: u64,
    /// Bit s for each source s.
    all: u16,
    /// More than half of the sources.
    majority: u16,
    /// That of the majority, and that of sources which jumped or are in dispute.
    lines: [Timeline; 2],
    clocks: Clocks,
    taking: Taking,
    /// More of its fragments are to come.
    in_frame: bool,
    /// When the last fragment came.
    now: Moment,
    /// Open events of each source to which no other has contributed.
    alone: [u32; MAX_SOURCES],
    apart: Apart,
    max_open: usize,
    /// Most hits of a source that is not hot.
    hot_hits: u16,
    /// Buffers for events.
    events: PoolCache,
    /// The next ones, on their way into the processor's cache.
    ahead: VecDeque<Draft>,
    stats: Arc<L0Stats>,
    fates: Outcomes,
}

impl Build {
    /// Makes the stage.
    ///
    /// # Errors
    /// A width, deadline or number that is zero or too large.
    pub fn new(options: &BuildOptions, env: &mut StageEnv) -> Result<Self, String> {
        let &BuildOptions {
            window_slots,
            deadline_us,
            horizon_us,
            max_open,
            hot_hits,
        } = options;
        let sources = check_sources(env)?;
        if !(1..=u64::from(MAX_WINDOW)).contains(&window_slots) {
            return Err(format!(
                "window_slots = {window_slots}: it must be 1 to {MAX_WINDOW}"
            ));
        }
        let deadline = check_times(deadline_us, horizon_us)?;
        if !(2..=MAX_OPEN).contains(&max_open) {
            return Err(format!("max_open = {max_open}: it must be 2 to {MAX_OPEN}"));
        }
        let horizon = horizon_us.saturating_mul(1000 / SLOT_NS) / window_slots;
        if horizon == 0 {
            return Err(format!(
                "horizon_us = {horizon_us}: it must be at least one window"
            ));
        }
        Ok(Self {
            window: window_slots,
            deadline,
            horizon,
            all: u16::MAX >> (MAX_SOURCES - sources),
            majority: sources as u16 / 2 + 1,
            lines: [(); 2].map(|()| Timeline::with_capacity(max_open)),
            clocks: Clocks::new(ClockOptions {
                sources,
                horizon,
                slack: 0,
                grain: 1,
                deadline,
                units_per_ns: 1.0 / (SLOT_NS * window_slots) as f64,
                last_burst: L0Record::LAST_BURST,
            }),
            taking: Taking {
                first: 0,
                line: MAIN,
                fate: Ok(()),
                late: None,
            },
            in_frame: false,
            now: Moment(0),
            alone: [0; MAX_SOURCES],
            apart: Apart::default(),
            max_open,
            hot_hits: check_hot(hot_hits)?,
            events: make_events(env, max_open + AHEAD)?,
            ahead: VecDeque::with_capacity(AHEAD),
            stats: stats(env)?,
            fates: Outcomes::new("build", env)?,
        })
    }

    /// Events that are open, of both timelines.
    fn open(&self) -> usize {
        self.lines.iter().map(|line| line.open.len()).sum()
    }

    /// Adds a fragment, whose hits are the first of `places`.
    #[inline]
    fn add(
        &mut self,
        fragment: &Fragment,
        places: &[Hit; MAX_HITS],
        out: &mut impl Output<Event>,
    ) -> Outcome {
        // Most windows are one slot wide, and a division takes as long as all else.
        let (key, slot) = match self.window {
            1 => (fragment.timestamp, 0),
            window => (fragment.timestamp / window, fragment.timestamp % window),
        };
        let source = usize::from(fragment.source);
        // In its place: copied with each fragment, it cost more than all that is asked of it.
        if !self.in_frame {
            self.taking = self.begin(source, key, fragment, out);
        }
        self.in_frame = !fragment.ends_frame;
        let taking = &self.taking;
        taking.fate?;
        // Within a frame time stamps ascend. There would be no floor above the last of all.
        if key.wrapping_sub(taking.first) > self.horizon || key == u64::MAX {
            return Err(Cause::OutOfWindow);
        }
        let mut line = taking.line;
        if key < self.lines[line & 1].floor {
            line = self.late(source, key, fragment, out)?;
        }
        self.clocks.said(source, key);
        let place = match self.lines[line & 1].find(source, key) {
            Ok(place) => place,
            Err(place) => self.insert(line, place, key, fragment, out)?,
        };
        self.clocks.in_time(source);
        let timeline = &mut self.lines[line & 1];
        timeline.point(source, place);
        let Some(open) = timeline.open.get_mut(place) else {
            return Err(Cause::NoRoom);
        };
        // The source itself, and those whose hits come behind its own.
        let heard = open.sources >> source;
        if heard & 1 == 1 {
            return Err(Cause::Duplicate);
        }
        let off = self.clocks.off();
        if off != 0 && u64::from(open.sources) & !off == 0 {
            // So far only sources that are put off have contributed: it begins now.
            open.arrival = fragment.arrival;
        }
        match open.count {
            0 => self.alone[source] += 1,
            1 => self.alone[usize::from(open.opener)] -= 1,
            _ => {}
        }
        open.sources |= 1 << source;
        open.count += 1;
        if open.count == self.majority {
            // The others have as long from now on, whoever opened it, and when.
            open.deadline = open.deadline.max(fragment.at.after(self.deadline));
        }
        let count = fragment.hits.len();
        let Some(draft) = &mut open.draft else {
            return Err(Cause::NoRoom);
        };
        let (before, added) = if heard == 0 {
            (draft.hits(), draft.append(places, count))
        } else {
            let before = open.hits[..source].iter().sum();
            let added = draft.insert(usize::from(before), fragment.hits);
            (before, added)
        };
        if added {
            open.hits[source] = count as u16;
            if count > usize::from(self.hot_hits) {
                open.hot |= 1 << source;
            }
            if slot > 0 {
                let later = (slot * SLOT) as u16;
                draft.delay(usize::from(before), count, later);
            }
        } else {
            // The event keeps what it has; the source counts as heard, the overflow as counted.
            open.truncated = true;
            self.stats.events.overfull.add(1);
        }
        Ok(())
    }

    /// Looks at the first fragment of a frame.
    #[inline]
    fn begin(
        &mut self,
        source: usize,
        key: u64,
        fragment: &Fragment,
        out: &mut impl Output<Event>,
    ) -> Taking {
        let &Fragment { at, reordered, .. } = fragment;
        let mut fate = Err(Cause::Unsupported);
        if source < self.stats.sources.len() {
            self.settle(at, out);
            let floor = self.lines[MAIN].floor;
            fate = self.clocks.admit(source, key, at, floor, reordered);
            self.settle(at, out);
        }
        let line = match fate {
            Ok(()) => self.clocks.line(source),
            Err(_) => MAIN,
        };
        Taking {
            first: key,
            line,
            fate,
            // It is late, and no more, if it comes behind others.
            late: reordered.then_some(Cause::Late),
        }
    }

    /// A fragment for an event that was closed: where it goes, if it is not refused.
    #[cold]
    fn late(
        &mut self,
        source: usize,
        key: u64,
        fragment: &Fragment,
        out: &mut impl Output<Event>,
    ) -> Result<Line, Cause> {
        let line = self.taking.line;
        if let Some(cause) = self.taking.late {
            return Err(cause);
        }
        let floor = self.lines[line].floor;
        match self.clocks.late(source, key, floor, fragment.at) {
            Late::Refused(cause) => {
                self.clocks.said(source, key);
                self.taking.late = Some(cause);
                Err(cause)
            }
            Late::StepBack => {
                self.lines[line].floor = key;
                self.stats.events.resyncs.add(1);
                Ok(line)
            }
            Late::Moved => {
                self.settle(fragment.at, out);
                let line = self.clocks.line(source);
                self.taking.line = line;
                Ok(line)
            }
        }
    }

    /// Does what has been decided about the second timeline.
    #[inline]
    fn settle(&mut self, now: Moment, out: &mut impl Output<Event>) {
        if self.clocks.is_restless() {
            self.do_settle(now, out);
        }
    }

    #[cold]
    fn do_settle(&mut self, now: Moment, out: &mut impl Output<Event>) {
        while let Some(change) = self.clocks.change(now) {
            self.apply(change, out);
        }
    }

    fn apply(&mut self, change: Change, out: &mut impl Output<Event>) {
        match change {
            Change::Adopted => {
                self.close_all(MAIN, out);
                self.lines.swap(MAIN, OTHER);
                self.lines[OTHER].clear();
                self.clocks.take_burst();
                self.fates.settle(Ok(()));
                self.stats.events.resyncs.add(1);
            }
            Change::Rejected(cause) => {
                for open in self.lines[OTHER].open.drain(..) {
                    open.leave(&mut self.alone);
                }
                self.lines[OTHER].clear();
                self.fates.settle(Err(cause));
            }
            Change::Disputed => {
                self.fates.settle(Ok(()));
            }
            Change::Split { from, .. } => {
                let [main, other] = &mut self.lines;
                main.split_to(other, from);
            }
            Change::Joined => {
                self.close_all(OTHER, out);
                self.lines[OTHER].clear();
            }
        }
    }

    /// Counts a fragment.
    #[inline]
    fn count(&mut self, fragment: &Fragment, fate: Outcome) {
        let on_trial = self.clocks.is_on_trial()
            && fate.is_ok()
            && self.clocks.line(usize::from(fragment.source)) == OTHER;
        self.fates.count(fragment, fate, on_trial);
    }

    /// Opens an event at a place in the order; returns where it is then.
    ///
    /// # Errors
    /// There is no room for it: as it is older than all that are open, and so the one to be given
    /// up; as most sources have not come to it; or because the program holds more events than the
    /// pool was made for.
    fn insert(
        &mut self,
        line: Line,
        mut place: usize,
        key: u64,
        fragment: &Fragment,
        out: &mut impl Output<Event>,
    ) -> Result<usize, Cause> {
        let open = self.open();
        if 2 * open >= self.max_open {
            place = self.make_room(line, place, key, fragment, out)?;
        }
        if self.ahead.len() <= AHEAD / 2 {
            let more = std::iter::from_fn(|| Draft::new(&mut self.events));
            self.ahead.extend(more.take(AHEAD / 2));
        }
        let draft = self.ahead.pop_front().ok_or(Cause::NoMbuf)?;
        let mut deadline = fragment.at.after(self.deadline);
        if let Some(next) = self.lines[line].open.get(place)
            && next.deadline < deadline
            && self.clocks.are_close(key, next.key)
            && self.clocks.vote(line, next.key, next.since, fragment.at) == Vote::Reached
        {
            // It must not hold up the next younger one, unless that is ahead of most sources.
            deadline = next.deadline;
        }
        let open = Open {
            key,
            since: fragment.at,
            deadline,
            held: false,
            arrival: fragment.arrival,
            sources: 0,
            count: 0,
            opener: fragment.source,
            hits: [0; MAX_SOURCES],
            hot: 0,
            truncated: false,
            draft: Some(draft),
        };
        self.lines[line].insert(place, open);
        Ok(place)
    }

    /// Sees to it that one more event can be opened, while many are; returns its place then.
    #[cold]
    fn make_room(
        &mut self,
        line: Line,
        place: usize,
        key: u64,
        fragment: &Fragment,
        out: &mut impl Output<Event>,
    ) -> Result<usize, Cause> {
        let (source, at) = (usize::from(fragment.source), fragment.at);
        // Half of the room is for events of several sources, of about now.
        let alone = 2 * self.alone[source] as usize >= self.max_open;
        if alone && self.clocks.has_company(source, at) || !self.clocks.is_in_step(source, key, at)
        {
            return Err(Cause::NoRoom);
        }
        let open = self.open();
        if open < self.max_open {
            return Ok(place);
        }
        if line == OTHER && self.clocks.is_on_trial() || self.lines[line].open.is_empty() {
            return Err(Cause::NoRoom);
        }
        let place = place.checked_sub(1).ok_or(Cause::Late)?;
        self.stats.events.forced.add(1);
        self.close_oldest(line, out);
        Ok(place)
    }
}

impl Stage for Build {
    type In = Fragments;
    type Out = Event;

    fn process(&mut self, batch: &mut Batch<Fragments>, out: &mut impl Output<Event>) {
        for fragments in batch.as_slice() {
            for (fragment, places) in fragments.padded() {
                // Deadlines are looked at before the first fragment of a moment, and not between
                // two of one moment: what comes out does not depend on their order.
                if std::mem::replace(&mut self.now, fragment.at) != fragment.at {
                    self.close_due(fragment.at, out);
                }
                let fate = self.add(&fragment, places, out);
                self.count(&fragment, fate);
                self.close_complete(out);
            }
        }
        self.stats.show_clocks(&mut self.clocks);
    }

    fn tick(&mut self, now: Moment, out: &mut impl Output<Event>) {
        self.clocks.tick(now);
        self.settle(now, out);
        self.close_due(now, out);
    }

    fn finish(&mut self, out: &mut impl Output<Event>) {
        while let Some(change) = self.clocks.finish() {
            self.apply(change, out);
        }
        self.close_all(MAIN, out);
        self.close_all(OTHER, out);
    }
}
