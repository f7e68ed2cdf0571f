//! The builder itself.

use std::collections::VecDeque;
use std::sync::Arc;

use pollux_mempool::time::Ns;
use pollux_pmd::{Cause, Tally, TallyView};

use super::options::{BuilderCounts, BuilderError, BuilderOptions, Built, Gather};
use super::sources::SourceSet;
use crate::clocks::LIVE;
use crate::sink::Output;
use crate::stage::{Batch, Moment, Stage};

/// How often, in parts of the deadline, an event that was held at its deadline is looked at.
const LOOKS: u64 = 8;

/// Refused fragments, at least, after which keys begin anew, however few sources there are.
const RESYNC: u32 = 8;

/// An event that waits for its sources.
struct Open<E, S> {
    key: u64,
    since: Moment,
    deadline: Moment,
    sources: S,
    count: usize,
    /// The first source that contributed.
    opener: usize,
    event: E,
}

/// What is known of a source.
#[derive(Clone, Copy, Default)]
struct Source {
    /// Its last key that was taken, and when any came.
    said: u64,
    heard: Option<Moment>,
    /// The place behind its last fragment: where the next one goes unless something was lost.
    /// Places of events that were closed count.
    cursor: usize,
    /// Open events that no other source has contributed to.
    alone: usize,
}

/// Builds events, as a stage: fragments in, events out.
pub struct Builder<G: Gather, S> {
    gather: G,
    options: BuilderOptions,
    open: VecDeque<Open<G::Event, S>>,
    each: Box<[Source]>,
    /// Events that were closed.
    closed: usize,
    /// The lowest key that is not closed.
    floor: u64,
    /// The key that most sources have come to; `None` before any.
    front: Option<u64>,
    /// Sources whose last key was refused, and near this one.
    strays: S,
    stray: u64,
    /// Fragments that said so.
    strayed: u32,
    run: u32,
    now: Moment,
    tally: Tally,
    counts: Arc<BuilderCounts>,
}

impl<G: Gather, S: SourceSet> Builder<G, S> {
    /// Makes a builder.
    ///
    /// # Errors
    /// Options out of range.
    pub fn new(gather: G, options: BuilderOptions) -> Result<Self, BuilderError> {
        options.check::<S>()?;
        Ok(Self {
            gather,
            options,
            open: VecDeque::with_capacity(options.max_open),
            each: vec![Source::default(); options.sources].into(),
            closed: 0,
            floor: 0,
            front: None,
            strays: S::default(),
            stray: 0,
            strayed: 0,
            run: 0,
            now: Moment(0),
            tally: Tally::new(),
            counts: Arc::default(),
        })
    }

    /// Its place in the ledger: a fragment is delivered when it is in its event.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// What it counts.
    #[must_use]
    pub fn counts(&self) -> Arc<BuilderCounts> {
        Arc::clone(&self.counts)
    }

    /// Adds a fragment.
    #[inline]
    fn add(
        &mut self,
        fragment: G::Fragment,
        out: &mut impl Output<Built<G::Event, S>>,
    ) -> Result<(), Cause> {
        let address = self.gather.address(&fragment);
        // Deadlines are checked before the first fragment of a moment, and not between two
        // fragments of the same moment: the output does not depend on their order.
        if std::mem::replace(&mut self.now, address.at) != address.at {
            self.close_due(address.at, out);
        }
        let (key, number) = (address.key, address.source);
        let source = self.each.get_mut(number).ok_or(Cause::Unsupported)?;
        source.heard = Some(address.at);
        let front = *self.front.get_or_insert_with(|| {
            self.floor = key.saturating_sub(self.options.horizon);
            key
        });
        let late = key < self.floor;
        // There would be no floor above the last of all keys.
        if late || key.saturating_sub(front) > self.options.horizon || key == u64::MAX {
            self.refuse(number, key, address.at, out)?;
        } else {
            self.strays.remove(number);
        }
        let place = match self.find(number, key) {
            Ok(place) => place,
            Err(place) => self.insert(place, number, key, address.at, out)?,
        };
        let Some(open) = self.open.get_mut(place) else {
            return Err(Cause::NoRoom);
        };
        let source = &mut self.each[number];
        source.said = key;
        source.cursor = self.closed + place + 1;
        if !open.sources.insert(number) {
            return Err(Cause::Duplicate);
        }
        open.count += 1;
        match open.count {
            1 => source.alone += 1,
            2 => self.each[open.opener].alone -= 1,
            _ => {}
        }
        if 2 * open.count > self.options.sources {
            self.front = self.front.max(Some(key));
        }
        self.gather.add(&mut open.event, number, fragment)
    }

    /// A key that is not taken, unless most sources say the same: then it is, and keys begin anew.
    #[cold]
    fn refuse(
        &mut self,
        source: usize,
        key: u64,
        at: Moment,
        out: &mut impl Output<Built<G::Event, S>>,
    ) -> Result<(), Cause> {
        let horizon = self.options.horizon;
        let behind = self.floor.saturating_sub(key);
        if key == u64::MAX {
            return Err(Cause::OutOfWindow);
        }
        // A little late is no jump.
        if (1..=horizon).contains(&behind) {
            self.strays.remove(source);
            return Err(Cause::Late);
        }
        if key.abs_diff(self.stray) > horizon {
            (self.strays, self.strayed) = (S::default(), 0);
        }
        self.stray = key;
        self.strays.insert(source);
        self.strayed += 1;
        let is_live = |source: &&Source| source.heard.is_some_and(|heard| at <= heard.after(LIVE));
        let live = self.each.iter().filter(is_live).count();
        if self.strayed < RESYNC || 2 * self.strays.iter().count() <= live {
            return Err(if behind > 0 {
                Cause::Late
            } else {
                Cause::OutOfWindow
            });
        }
        self.close_all(out);
        (self.strays, self.strayed) = (S::default(), 0);
        self.each.iter_mut().for_each(|source| source.said = 0);
        self.floor = key.saturating_sub(horizon);
        self.front = Some(key);
        self.run += 1;
        self.counts.restarts.add(1);
        Ok(())
    }

    /// Place of the open event with this key, or where it would be inserted.
    #[inline]
    fn find(&self, source: usize, key: u64) -> Result<usize, usize> {
        let guess = self.each[source].cursor.saturating_sub(self.closed);
        match self.open.get(guess) {
            Some(open) if open.key == key => Ok(guess),
            None if self.open.back().is_none_or(|last| last.key < key) => Err(self.open.len()),
            _ => self.open.binary_search_by_key(&key, |open| open.key),
        }
    }

    /// Opens an event at a place in the order; returns where it is then.
    fn insert(
        &mut self,
        mut place: usize,
        source: usize,
        key: u64,
        at: Moment,
        out: &mut impl Output<Built<G::Event, S>>,
    ) -> Result<usize, Cause> {
        if self.options.sources > 1 && 2 * self.each[source].alone >= self.options.max_open {
            return Err(Cause::NoRoom);
        }
        if self.open.len() == self.options.max_open {
            // It is older than all that are open, and so the one to be given up; or most sources
            // have not come to the oldest.
            place = place.checked_sub(1).ok_or(Cause::Late)?;
            if !self.is_reached(0, at) {
                return Err(Cause::NoRoom);
            }
            self.counts.forced.add(1);
            self.close_oldest(out);
        }
        let event = self.gather.open(key).ok_or(Cause::NoMbuf)?;
        let mut deadline = at.after(self.options.deadline);
        if let Some(next) = self.open.get(place) {
            // It must not hold up the next younger one.
            deadline = deadline.min(next.deadline);
        }
        let open = Open {
            key,
            since: at,
            deadline,
            sources: S::default(),
            count: 0,
            opener: source,
            event,
        };
        // Nearly always behind all others, which takes no moving.
        if place == self.open.len() {
            self.open.push_back(open);
        } else {
            self.open.insert(place, open);
        }
        Ok(place)
    }

    /// Whether most sources have come to an open event, or are not heard: of those that were heard
    /// since it was opened, no more are behind it than have come to it.
    #[cold]
    fn is_reached(&self, place: usize, now: Moment) -> bool {
        let Some(open) = self.open.get(place) else {
            return true;
        };
        if self.front.is_some_and(|front| open.key <= front) {
            return true;
        }
        let (mut reached, mut behind) = (0, 0);
        for source in &self.each {
            let heard = source
                .heard
                .is_some_and(|heard| heard >= open.since && heard <= now);
            let has = source.said >= open.key;
            reached += usize::from(has && source.heard.is_some());
            behind += usize::from(heard && !has);
        }
        behind <= reached
    }

    /// Closes, from the oldest on, what is complete or has waited until `now`.
    fn close_due(&mut self, now: Moment, out: &mut impl Output<Built<G::Event, S>>) {
        while let Some(oldest) = self.open.front() {
            if oldest.count < self.options.sources {
                if oldest.deadline > now {
                    break;
                }
                if !self.is_reached(0, now) {
                    let step = Ns((self.options.deadline.0 / LOOKS).max(1));
                    self.open[0].deadline = now.after(step);
                    break;
                }
            }
            self.close_oldest(out);
        }
    }

    #[inline]
    fn close_complete(&mut self, out: &mut impl Output<Built<G::Event, S>>) {
        while let Some(oldest) = self.open.front()
            && oldest.count == self.options.sources
        {
            self.close_oldest(out);
        }
    }

    fn close_oldest(&mut self, out: &mut impl Output<Built<G::Event, S>>) {
        let Some(open) = self.open.pop_front() else {
            return;
        };
        if open.count == 1 {
            self.each[open.opener].alone -= 1;
        }
        self.closed += 1;
        self.floor = open.key + 1;
        self.front = self.front.max(Some(open.key));
        let complete = open.count == self.options.sources;
        let count = if complete {
            &self.counts.complete
        } else {
            &self.counts.incomplete
        };
        count.add(1);
        out.push(Built {
            key: open.key,
            run: self.run,
            sources: open.sources,
            complete,
            event: open.event,
        });
    }

    fn close_all(&mut self, out: &mut impl Output<Built<G::Event, S>>) {
        while !self.open.is_empty() {
            self.close_oldest(out);
        }
    }
}

impl<G: Gather, S: SourceSet> Stage for Builder<G, S> {
    type In = G::Fragment;
    type Out = Built<G::Event, S>;

    fn process(&mut self, batch: &mut Batch<G::Fragment>, out: &mut impl Output<Self::Out>) {
        for fragment in batch.drain() {
            match self.add(fragment, out) {
                Ok(()) => self.tally.count_delivered(1),
                Err(cause) => self.tally.count_dropped(cause, 1),
            }
            self.close_complete(out);
        }
    }

    fn tick(&mut self, now: Moment, out: &mut impl Output<Self::Out>) {
        self.close_due(now, out);
    }

    fn finish(&mut self, out: &mut impl Output<Self::Out>) {
        self.close_all(out);
    }
}
