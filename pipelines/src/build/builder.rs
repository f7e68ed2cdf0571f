//! The builder itself.

use pollux_mempool::time::Ns;
use pollux_pmd::{Cause, TallyView};

use super::gather::{Address, BuilderStats, Contribution, Gather};
use super::options::{BuilderError, BuilderOptions};
use super::outcomes::{Outcome, Outcomes};
use super::timeline::{Open, Timeline};
use crate::clocks::{Change, ClockOptions, Clocks, Late, Line, MAIN, OTHER, Vote};
use crate::sink::Output;
use crate::sources::{SourceSet, set_of};
use crate::stage::{Batch, Moment, Stage};

/// The frame whose fragments are being taken.
#[derive(Clone, Copy)]
struct Taking {
    source: usize,
    /// Key of its first fragment, and the timeline that it belongs to.
    first: u64,
    line: Line,
    /// What becomes of all of it.
    outcome: Outcome,
    /// What becomes of its late fragments, once one was.
    late: Option<Cause>,
}

/// The event builder, as a stage: fragments in, events out.
pub struct Builder<G: Gather<S>, S: SourceSet> {
    pub(super) gather: G,
    pub(super) deadline: Ns,
    /// In keys.
    horizon: u64,
    /// Number of sources, all of them, and more than half of them.
    pub(super) sources: u16,
    pub(super) all: S,
    pub(super) majority: u16,
    /// That of the majority, and that of sources which jumped or are in dispute.
    pub(super) lines: [Timeline<G::Event, S>; 2],
    pub(super) clocks: Clocks<S>,
    taking: Taking,
    /// When the last fragment came.
    now: Moment,
    /// Open events of each source to which no other has contributed.
    pub(super) alone: S::Each<u32>,
    max_open: usize,
    outcomes: Outcomes,
}

impl<G: Gather<S>, S: SourceSet> Builder<G, S> {
    /// Makes a builder.
    ///
    /// # Errors
    /// Options out of range.
    pub fn new(gather: G, options: BuilderOptions) -> Result<Self, BuilderError> {
        options.check::<S>()?;
        let BuilderOptions {
            sources,
            deadline,
            horizon,
            keys_per_ns,
            max_open,
            last_burst,
        } = options;
        Ok(Self {
            gather,
            deadline,
            horizon,
            sources: sources as u16,
            all: set_of(sources, |_| true),
            majority: sources as u16 / 2 + 1,
            lines: [(); 2].map(|()| Timeline::with_capacity(max_open)),
            clocks: Clocks::new(ClockOptions {
                sources,
                horizon,
                slack: 0,
                grain: 1,
                deadline,
                units_per_ns: keys_per_ns,
                last_burst,
            }),
            taking: Taking {
                source: 0,
                first: 0,
                line: MAIN,
                outcome: Ok(()),
                late: None,
            },
            now: Moment(0),
            alone: S::each(0),
            max_open,
            outcomes: Outcomes::new(sources),
        })
    }

    /// Its place in the ledger: a frame is delivered when one of its fragments is part of an event.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.outcomes.tally()
    }

    /// What gathers its events.
    #[must_use]
    pub fn gather(&self) -> &G {
        &self.gather
    }

    /// Events that are open, of both timelines.
    fn open(&self) -> usize {
        self.lines.iter().map(|line| line.open.len()).sum()
    }

    /// Adds a fragment, counts it, and closes what is complete.
    #[inline]
    fn take(&mut self, fragment: G::Fragment<'_>, out: &mut impl Output<G::Built>) {
        let address = self.gather.address(&fragment);
        // Deadlines are looked at before the first fragment of a moment, and not between two of one
        // moment: what comes out does not depend on their order.
        if std::mem::replace(&mut self.now, address.at) != address.at {
            self.close_due(address.at, out);
        }
        let outcome = self.add(fragment, &address, out);
        let source = self.taking.source;
        let on_trial =
            self.clocks.is_on_trial() && outcome.is_ok() && self.clocks.line(source) == OTHER;
        let stats = self.gather.stats();
        self.outcomes
            .count(stats, source, address.ends_frame, outcome, on_trial);
        self.close_complete(out);
    }

    /// Adds a fragment to its event.
    #[inline]
    fn add(
        &mut self,
        fragment: G::Fragment<'_>,
        address: &Address,
        out: &mut impl Output<G::Built>,
    ) -> Outcome {
        // In its place: copied with each fragment, it cost more than all that is asked of it.
        if !self.outcomes.is_in_frame() {
            self.taking = self.begin(address, out);
        }
        let (taking, key) = (&self.taking, address.key);
        taking.outcome?;
        // Within a frame keys ascend. There would be no floor above the last of all.
        if key.wrapping_sub(taking.first) > self.horizon || key == u64::MAX {
            return Err(Cause::OutOfWindow);
        }
        let (source, mut line) = (taking.source, taking.line);
        if key < self.lines[line & 1].floor {
            line = self.late(source, key, address.at, out)?;
        }
        self.clocks.said(source, key);
        let place = match self.lines[line & 1].find(source, key) {
            Ok(place) => place,
            Err(place) => self.insert(line, place, &fragment, address, out)?,
        };
        self.clocks.in_time(source);
        let timeline = &mut self.lines[line & 1];
        timeline.point(source, place);
        let Some(open) = timeline.open.get_mut(place) else {
            return Err(Cause::NoRoom);
        };
        let before = open.sources;
        if !open.sources.insert(source) {
            return Err(Cause::Duplicate);
        }
        let alone = self.alone.as_mut();
        match open.count {
            0 => alone[source] += 1,
            1 => alone[usize::from(open.opener)] -= 1,
            _ => {}
        }
        open.count += 1;
        if open.count == self.majority {
            // The others have as long from now on, however long it was open before.
            open.deadline = open.deadline.max(address.at.after(self.deadline));
        }
        let off = self.clocks.off();
        let contribution = Contribution {
            source,
            before,
            begins: !off.is_empty() && before.without(&off).is_empty(),
        };
        self.gather.add(&mut open.event, fragment, contribution)
    }

    /// Looks at the first fragment of a frame.
    #[inline]
    fn begin(&mut self, address: &Address, out: &mut impl Output<G::Built>) -> Taking {
        let &Address {
            key,
            source,
            at,
            reordered,
            ..
        } = address;
        let mut outcome = Err(Cause::Unsupported);
        if source < usize::from(self.sources) {
            self.settle(at, out);
            let floor = self.lines[MAIN].floor;
            outcome = self.clocks.admit(source, key, at, floor, reordered);
            self.settle(at, out);
        }
        let line = match outcome {
            Ok(()) => self.clocks.line(source),
            Err(_) => MAIN,
        };
        Taking {
            source,
            first: key,
            line,
            outcome,
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
        at: Moment,
        out: &mut impl Output<G::Built>,
    ) -> Result<Line, Cause> {
        let line = self.taking.line;
        if let Some(cause) = self.taking.late {
            return Err(cause);
        }
        let floor = self.lines[line].floor;
        match self.clocks.late(source, key, floor, at) {
            Late::Refused(cause) => {
                self.clocks.said(source, key);
                self.taking.late = Some(cause);
                Err(cause)
            }
            Late::StepBack => {
                self.lines[line].floor = key;
                self.gather.stats().count_restart();
                Ok(line)
            }
            Late::Moved => {
                self.settle(at, out);
                let line = self.clocks.line(source);
                self.taking.line = line;
                Ok(line)
            }
        }
    }

    /// Does what has been decided about the second timeline.
    #[inline]
    fn settle(&mut self, now: Moment, out: &mut impl Output<G::Built>) {
        if self.clocks.is_restless() {
            self.do_settle(now, out);
        }
    }

    #[cold]
    fn do_settle(&mut self, now: Moment, out: &mut impl Output<G::Built>) {
        while let Some(change) = self.clocks.change(now) {
            self.apply(&change, out);
        }
    }

    fn apply(&mut self, change: &Change<S>, out: &mut impl Output<G::Built>) {
        match *change {
            Change::Adopted => {
                self.close_all(MAIN, out);
                self.lines.swap(MAIN, OTHER);
                self.lines[OTHER].clear();
                self.clocks.take_burst();
                self.outcomes.settle(self.gather.stats(), Ok(()));
                self.gather.stats().count_restart();
            }
            Change::Rejected(cause) => {
                let stats = self.gather.stats();
                for open in self.lines[OTHER].open.drain(..) {
                    open.leave(self.alone.as_mut());
                    for source in open.sources.iter() {
                        stats.count_refused(source, cause);
                    }
                }
                self.lines[OTHER].clear();
                self.outcomes.settle(self.gather.stats(), Err(cause));
            }
            Change::Disputed => {
                self.outcomes.settle(self.gather.stats(), Ok(()));
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

    /// Opens an event at a place in the order; returns where it is then.
    ///
    /// # Errors
    /// There is no room for it: as it is older than all that are open, and so the one to be given
    /// up; as most sources have not come to it; or because there is no memory for one more.
    fn insert(
        &mut self,
        line: Line,
        mut place: usize,
        fragment: &G::Fragment<'_>,
        address: &Address,
        out: &mut impl Output<G::Built>,
    ) -> Result<usize, Cause> {
        let &Address { key, at, .. } = address;
        if 2 * self.open() >= self.max_open {
            place = self.make_room(line, place, key, at, out)?;
        }
        let event = self.gather.open(fragment).ok_or(Cause::NoMbuf)?;
        let mut deadline = at.after(self.deadline);
        if let Some(next) = self.lines[line].open.get(place)
            && next.deadline < deadline
            && self.clocks.are_close(key, next.key)
            && self.clocks.vote(line, next.key, next.since, at) == Vote::Reached
        {
            // It must not hold up the next younger one, unless that is ahead of most sources.
            deadline = next.deadline;
        }
        let open = Open {
            key,
            since: at,
            deadline,
            held: false,
            sources: S::default(),
            count: 0,
            opener: self.taking.source as u16,
            event,
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
        at: Moment,
        out: &mut impl Output<G::Built>,
    ) -> Result<usize, Cause> {
        let source = self.taking.source;
        // Half of the room is for events of several sources, of about now.
        let alone = 2 * self.alone.as_ref()[source] as usize >= self.max_open;
        if alone && self.clocks.has_company(source, at) || !self.clocks.is_in_step(source, key, at)
        {
            return Err(Cause::NoRoom);
        }
        if self.open() < self.max_open {
            return Ok(place);
        }
        if line == OTHER && self.clocks.is_on_trial() || self.lines[line].open.is_empty() {
            return Err(Cause::NoRoom);
        }
        let place = place.checked_sub(1).ok_or(Cause::Late)?;
        self.gather.stats().count_forced();
        self.close_oldest(line, out);
        Ok(place)
    }
}

impl<G: Gather<S>, S: SourceSet> Stage for Builder<G, S> {
    type In = G::Input;
    type Out = G::Built;

    fn process(&mut self, batch: &mut Batch<G::Input>, out: &mut impl Output<G::Built>) {
        G::each(batch, |fragment| self.take(fragment, out));
        if let Some(news) = self.clocks.take_news() {
            self.gather.stats().show_clocks(&news);
        }
    }

    fn tick(&mut self, now: Moment, out: &mut impl Output<G::Built>) {
        self.clocks.tick(now);
        self.settle(now, out);
        self.close_due(now, out);
    }

    fn finish(&mut self, out: &mut impl Output<G::Built>) {
        while let Some(change) = self.clocks.finish() {
            self.apply(&change, out);
        }
        self.close_all(MAIN, out);
        self.close_all(OTHER, out);
    }
}
