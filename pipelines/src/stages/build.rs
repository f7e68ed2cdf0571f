//! Build: fragments of all sources into events, by time stamp.
//!
//! An event is closed when all sources have contributed or when its deadline comes, whichever is
//! first, and events leave in the order of their time stamps: one that is complete waits for an
//! older one, at most until that one's deadline. What comes for a closed event is late. The number
//! of open events is bounded; when one more is needed, the oldest is closed.
//!
//! Time stamps are not trusted. One that is further ahead of the oldest open event than the
//! horizon is refused, so that a corrupt one cannot close everything before it. When nothing has
//! been accepted for the length of a deadline, the sources have jumped (a new burst), and building
//! begins anew with whatever comes.

use std::collections::VecDeque;
use std::sync::Arc;

use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::{Cause, Tally};
use serde::Deserialize;

use crate::l0::{Event, EventHead, Fragment, L0Stats, List, MAX_EVENT_HITS, MAX_SOURCES};
use crate::registry::StageEnv;
use crate::rich::Hit;
use crate::stage::{Batch, Moment, Sink, Stage};

/// Options of the stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BuildOptions {
    /// Width of an event in slots of 25 ns: fragments whose time stamps fall into the same window
    /// are one event.
    pub window_slots: u64,
    /// How long an event waits for its sources, from the arrival of its first fragment.
    pub deadline_us: u64,
    /// How far a time stamp may be ahead of the oldest open event.
    pub horizon_us: u64,
    /// Most events that may be open at once.
    pub max_open: usize,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { window_slots: 1, deadline_us: 300, horizon_us: 100_000, max_open: 4096 }
    }
}

/// An event that waits for its sources.
struct Open {
    key: u64,
    deadline: Moment,
    arrival: Tsc,
    sources: u16,
    /// Which element of `Build::hits` is this event's.
    slot: usize,
    /// Where each source's hits lie there: start and end.
    parts: [(u16, u16); MAX_SOURCES],
}

/// What became of a fragment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Accepted,
    Late,
    OutOfWindow,
    Duplicate,
}

/// The event builder.
pub struct Build {
    window: u64,
    deadline: Ns,
    /// In windows.
    horizon: u64,
    /// Bit s for each source s.
    all: u16,
    /// In the order of their keys.
    open: VecDeque<Open>,
    hits: Vec<List<Hit, MAX_EVENT_HITS>>,
    free_slots: Vec<usize>,
    /// Lowest key that is not closed.
    floor: u64,
    last_accepted: Moment,
    /// For each source, the place in `open` behind its last fragment: where the next one goes
    /// unless something was lost.
    cursor: [usize; MAX_SOURCES],
    /// The best fate of the present frame's fragments so far.
    frame: Option<Fate>,
    stats: Arc<L0Stats>,
    tally: Tally,
}

impl Build {
    /// Makes the stage.
    ///
    /// # Errors
    /// A width, deadline or number that is zero or too large.
    pub fn new(options: &BuildOptions, env: &mut StageEnv) -> Result<Self, String> {
        let &BuildOptions { window_slots, deadline_us, horizon_us, max_open } = options;
        let sources = env.stats.sources.len();
        if sources == 0 || sources > MAX_SOURCES {
            return Err(format!("{sources} sources: there must be 1 to {MAX_SOURCES}"));
        }
        if !(1..=1 << 20).contains(&window_slots) {
            return Err(format!("window_slots = {window_slots}: it must be 1 to 1048576"));
        }
        if !(1..=60_000_000).contains(&deadline_us) {
            return Err(format!("deadline_us = {deadline_us}: it must be 1 to 60000000 (a minute)"));
        }
        if !(2..=1 << 20).contains(&max_open) {
            return Err(format!("max_open = {max_open}: it must be 2 to 1048576"));
        }
        let horizon = horizon_us.saturating_mul(1000 / 25) / window_slots;
        if horizon == 0 {
            return Err(format!("horizon_us = {horizon_us}: it must be at least one window"));
        }
        let tally = Tally::new();
        env.ledger.add("build", tally.view());
        Ok(Self {
            window: window_slots,
            deadline: Ns(deadline_us * 1000),
            horizon,
            all: u16::MAX >> (MAX_SOURCES - sources),
            open: VecDeque::with_capacity(max_open),
            hits: vec![List::default(); max_open],
            free_slots: (0..max_open).rev().collect(),
            floor: 0,
            last_accepted: Moment(0),
            cursor: [0; MAX_SOURCES],
            frame: None,
            stats: Arc::clone(&env.stats),
            tally,
        })
    }

    /// Place of the open event with this key, or where it would be inserted.
    #[inline]
    fn find(&self, source: usize, key: u64) -> Result<usize, usize> {
        let guess = self.cursor[source];
        match self.open.get(guess) {
            Some(open) if open.key == key => Ok(guess),
            None if self.open.back().is_none_or(|last| last.key < key) => Err(self.open.len()),
            _ => self.open.binary_search_by_key(&key, |open| open.key),
        }
    }

    fn add(&mut self, fragment: &Fragment, out: &mut impl Sink<Event>) -> Fate {
        let key = fragment.timestamp / self.window;
        let source = usize::from(fragment.source);
        if key < self.floor {
            let idle = fragment.at.0.saturating_sub(self.last_accepted.0) > self.deadline.0;
            if !(self.open.is_empty() && idle) {
                self.stats.sources[source].late_fragments.add(1);
                return Fate::Late;
            }
            self.floor = key;
            self.stats.events.resyncs.add(1);
        }
        if self.open.front().is_some_and(|oldest| key.saturating_sub(oldest.key) > self.horizon) {
            return Fate::OutOfWindow;
        }
        let place = match self.find(source, key) {
            Ok(place) => place,
            Err(_) => match self.insert(key, fragment, out) {
                Some(place) => place,
                None => {
                    self.stats.sources[source].late_fragments.add(1);
                    return Fate::Late;
                }
            },
        };
        let event = &mut self.open[place];
        self.cursor[source] = place + 1;
        if event.sources >> source & 1 == 1 {
            self.stats.sources[source].duplicate_fragments.add(1);
            return Fate::Duplicate;
        }
        event.sources |= 1 << source;
        let hits = &mut self.hits[event.slot];
        let start = hits.len() as u16;
        if !hits.extend(&fragment.hits) {
            // The event keeps what it has; the source counts as heard, the overflow as counted.
            self.stats.events.overfull.add(1);
        }
        event.parts[source] = (start, hits.len() as u16);
        self.last_accepted = fragment.at;
        Fate::Accepted
    }

    /// Opens an event; `None` if room had to be made by closing a younger one.
    fn insert(&mut self, key: u64, fragment: &Fragment, out: &mut impl Sink<Event>) -> Option<usize> {
        if self.free_slots.is_empty() {
            self.stats.events.forced.add(1);
            self.close_oldest(out);
            if key < self.floor {
                return None;
            }
        }
        let slot = self.free_slots.pop()?;
        self.hits[slot].clear();
        let place = self.open.partition_point(|open| open.key < key);
        let event = Open {
            key,
            deadline: fragment.at.after(self.deadline),
            arrival: fragment.arrival,
            sources: 0,
            slot,
            parts: [(0, 0); MAX_SOURCES],
        };
        self.open.insert(place, event);
        Some(place)
    }

    fn close_oldest(&mut self, out: &mut impl Sink<Event>) {
        let Some(event) = self.open.pop_front() else { return };
        self.cursor.iter_mut().for_each(|place| *place = place.saturating_sub(1));
        self.floor = event.key + 1;
        self.free_slots.push(event.slot);
        let complete = event.sources == self.all;
        let collected = &self.hits[event.slot];
        let mut hits = List::default();
        for &(start, end) in &event.parts {
            // It fits: the parts do not overlap, and both lists have the same capacity.
            let _ = hits.extend(&collected[usize::from(start)..usize::from(end)]);
        }
        let counts = &self.stats.events;
        counts.built.add(1);
        counts.hits.add(hits.len() as u64);
        if complete {
            counts.complete.add(1);
        } else {
            counts.incomplete.add(1);
            for (source, counts) in self.stats.sources.iter().enumerate() {
                counts.absent.add(u64::from(event.sources >> source & 1 == 0));
            }
        }
        let head = EventHead {
            timestamp: event.key * self.window,
            sources: event.sources,
            complete,
            hits: hits.len() as u16,
            arrival: event.arrival,
        };
        out.push(Event { head, hits });
    }

    /// Closes, from the oldest on, what is complete or has waited until `now`.
    #[inline]
    fn close_due(&mut self, now: Moment, out: &mut impl Sink<Event>) {
        while let Some(oldest) = self.open.front() {
            if oldest.sources != self.all && oldest.deadline > now {
                break;
            }
            self.close_oldest(out);
        }
    }

    /// Counts a frame by the best fate of its fragments: if one was of use, it was delivered.
    fn settle(&mut self, source: usize, fate: Fate) {
        match fate {
            Fate::Accepted => self.tally.count_delivered(1),
            Fate::Late => {
                self.stats.sources[source].late.add(1);
                self.tally.count_dropped(Cause::Late, 1);
            }
            Fate::OutOfWindow => self.tally.count_dropped(Cause::OutOfWindow, 1),
            Fate::Duplicate => self.tally.count_dropped(Cause::Duplicate, 1),
        }
    }
}

impl Stage for Build {
    type In = Fragment;
    type Out = Event;

    fn process(&mut self, batch: &mut Batch<Fragment>, out: &mut impl Sink<Event>) {
        for fragment in batch.as_slice() {
            self.close_due(fragment.at, out);
            let fate = self.add(fragment, out);
            if fate == Fate::Accepted || self.frame.is_none() {
                self.frame = Some(fate);
            }
            self.close_due(fragment.at, out);
            if fragment.ends_frame
                && let Some(fate) = self.frame.take()
            {
                self.settle(usize::from(fragment.source), fate);
            }
        }
    }

    fn tick(&mut self, now: Moment, out: &mut impl Sink<Event>) {
        self.close_due(now, out);
    }

    fn finish(&mut self, out: &mut impl Sink<Event>) {
        while !self.open.is_empty() {
            self.close_oldest(out);
        }
    }
}
