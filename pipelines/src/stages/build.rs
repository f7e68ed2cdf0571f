//! Build: fragments of all sources into events, by time stamp.
//!
//! An event is closed when all sources have contributed or when its deadline comes, whichever is
//! first, and events leave in the order of their time stamps: one that is complete waits for the
//! older ones. An event that is opened behind a younger one shares that one's deadline, so that no
//! event waits longer than its own. What comes for a closed event is late. The number of open
//! events is bounded; when one more is needed, the oldest is closed. The hits of an event are
//! gathered in its buffer, in the order of the sources.
//!
//! Time stamps are not trusted. One that is further ahead of the oldest open event (or, if none is
//! open, of the last one that was closed) than the horizon is refused, so that a corrupt one cannot
//! close everything before it. The sources may jump, though (a new burst): when all that came for
//! the length of a deadline, and at least two frames for each source, was refused as late or too
//! far ahead, or when nothing was accepted for the length of the horizon, building goes on from
//! whatever comes. So a corrupt time stamp that is believed costs the frames of one deadline: those
//! that are late by it. A few late frames alone reopen nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use pollux_mempool::PoolCache;
use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::Cause;
use serde::Deserialize;

use super::fate::{Fate, Fates};
use crate::formats::hits::MAX_HITS;
use crate::l0::{Draft, Event, EventHead, Fragment, Fragments, L0Stats, MAX_SOURCES};
use crate::merge::{SLOT, Span};
use crate::registry::StageEnv;
use crate::rich::Hit;
use crate::stage::{Batch, Moment, Sink, Stage};

/// Options of the stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BuildOptions {
    /// Width of an event in slots of 25 ns, at most 128: fragments whose time stamps fall into the
    /// same window are one event, and times of its hits count from the window's beginning. A source
    /// has one fragment in a window; a second one is a duplicate.
    pub window_slots: u64,
    /// How long an event waits for its sources, from the arrival of its first fragment.
    pub deadline_us: u64,
    /// How far a time stamp may be ahead of the oldest open event, in time of the detector.
    pub horizon_us: u64,
    /// Most events that may be open at once.
    pub max_open: usize,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self {
            window_slots: 1,
            deadline_us: 300,
            horizon_us: 100_000,
            max_open: 4096,
        }
    }
}

/// Slots of the widest event: a hit's time within it fits 16 bits.
const MAX_WINDOW: u64 = 128;

/// Buffers that are asked for before they are needed: they were last used by whoever took the
/// events at the end of the chain. Half of them at a time, so that they are waited for together.
const AHEAD: usize = 16;

/// An event that waits for its sources.
struct Open {
    key: u64,
    deadline: Moment,
    arrival: Tsc,
    /// Bit s: source s contributed.
    sources: u16,
    /// Hits of each source.
    hits: [u16; MAX_SOURCES],
    draft: Draft,
}

/// The event builder.
pub struct Build {
    window: u64,
    deadline: Ns,
    /// In windows.
    horizon: u64,
    /// The pause after which any time stamp is believed: that of the horizon, or of a deadline.
    pause: Ns,
    /// Bit s for each source s.
    all: u16,
    /// In the order of their keys, and of their deadlines.
    open: VecDeque<Open>,
    max_open: usize,
    /// Buffers for events.
    events: PoolCache,
    /// The next ones, on their way into the processor's cache.
    ahead: VecDeque<Draft>,
    /// Lowest key that is not closed.
    floor: u64,
    /// Events that were closed.
    closed: usize,
    /// When the last fragment was accepted; `None` before the first one.
    last_accepted: Option<Moment>,
    /// Since when fragments have been refused, with none accepted between.
    refused_since: Option<Moment>,
    /// How many frames those were.
    refused_frames: usize,
    /// For each source, the place behind its last fragment: where the next one goes unless
    /// something was lost. Places of events that were closed count.
    cursor: [usize; MAX_SOURCES],
    stats: Arc<L0Stats>,
    fates: Fates,
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
        } = options;
        let sources = env.stats.sources.len();
        if sources == 0 || sources > MAX_SOURCES {
            return Err(format!(
                "{sources} sources: there must be 1 to {MAX_SOURCES}"
            ));
        }
        if !(1..=MAX_WINDOW).contains(&window_slots) {
            return Err(format!(
                "window_slots = {window_slots}: it must be 1 to {MAX_WINDOW}"
            ));
        }
        if !(1..=60_000_000).contains(&deadline_us) {
            return Err(format!(
                "deadline_us = {deadline_us}: it must be 1 to 60000000 (a minute)"
            ));
        }
        if !(2..=1 << 20).contains(&max_open) {
            return Err(format!("max_open = {max_open}: it must be 2 to 1048576"));
        }
        let horizon = horizon_us.saturating_mul(1000 / 25) / window_slots;
        if horizon == 0 {
            return Err(format!(
                "horizon_us = {horizon_us}: it must be at least one window"
            ));
        }
        Ok(Self {
            window: window_slots,
            deadline: Ns(deadline_us * 1000),
            horizon,
            pause: Ns(horizon_us.max(deadline_us).saturating_mul(1000)),
            all: u16::MAX >> (MAX_SOURCES - sources),
            open: VecDeque::with_capacity(max_open),
            max_open,
            events: env
                .make_events(max_open + AHEAD)
                .map_err(|e| e.to_string())?,
            ahead: VecDeque::with_capacity(AHEAD),
            floor: 0,
            closed: 0,
            last_accepted: None,
            refused_since: None,
            refused_frames: 0,
            cursor: [0; MAX_SOURCES],
            stats: Arc::clone(&env.stats),
            fates: Fates::new("build", env),
        })
    }

    /// Place of the open event with this key, or where it would be inserted.
    #[inline]
    fn find(&self, source: usize, key: u64) -> Result<usize, usize> {
        let guess = self.cursor[source].saturating_sub(self.closed);
        match self.open.get(guess) {
            Some(open) if open.key == key => Ok(guess),
            None if self.open.back().is_none_or(|last| last.key < key) => Err(self.open.len()),
            _ => self.open.binary_search_by_key(&key, |open| open.key),
        }
    }

    /// Whether a time stamp that should not be is believed: after a pause, or when nothing else has
    /// come for a deadline, and that in more frames than could all be late.
    #[inline]
    fn believes(&self, now: Moment) -> bool {
        self.last_accepted
            .is_none_or(|last| last.after(self.pause) < now)
            || self.refused_frames >= 2 * self.stats.sources.len()
                && self
                    .refused_since
                    .is_some_and(|since| since.after(self.deadline) < now)
    }

    /// Adds a fragment, whose hits are the first of `places`.
    #[inline]
    fn add(
        &mut self,
        fragment: &Fragment,
        places: &[Hit; MAX_HITS],
        out: &mut impl Sink<Event>,
    ) -> Fate {
        // Most windows are one slot wide, and a division takes as long as all else.
        let (key, slot) = match self.window {
            1 => (fragment.timestamp, 0),
            window => (fragment.timestamp / window, fragment.timestamp % window),
        };
        let source = usize::from(fragment.source);
        if source >= self.stats.sources.len() {
            return Err(Cause::Unsupported);
        }
        let oldest = self.open.front().map_or(self.floor, |event| event.key);
        let too_far = key.saturating_sub(oldest) > self.horizon;
        if (key < self.floor || too_far) && !self.believes(fragment.at) {
            return Err(if too_far {
                Cause::OutOfWindow
            } else {
                Cause::Late
            });
        }
        if key == u64::MAX {
            // There would be no floor above it.
            return Err(Cause::OutOfWindow);
        }
        if key < self.floor {
            self.floor = key;
            self.stats.events.resyncs.add(1);
        }
        let place = match self.find(source, key) {
            Ok(place) => place,
            Err(place) => self.insert(place, key, fragment, out)?,
        };
        let open = &mut self.open[place];
        self.cursor[source] = self.closed + place + 1;
        // The source itself, and those whose hits come behind its own.
        let heard = open.sources >> source;
        if heard & 1 == 1 {
            return Err(Cause::Duplicate);
        }
        open.sources |= 1 << source;
        let count = fragment.hits.len();
        let (before, added) = if heard == 0 {
            (open.draft.hits(), open.draft.append(places, count))
        } else {
            let before = open.hits[..source].iter().sum();
            let added = open.draft.insert(usize::from(before), fragment.hits);
            (before, added)
        };
        if added {
            open.hits[source] = count as u16;
            if slot > 0 {
                let later = (slot * SLOT) as u16;
                open.draft.delay(usize::from(before), count, later);
            }
        } else {
            // The event keeps what it has; the source counts as heard, the overflow as counted.
            self.stats.events.overfull.add(1);
        }
        Ok(())
    }

    /// Counts a fragment.
    #[inline]
    fn count(&mut self, fragment: &Fragment, fate: Fate) {
        match fate {
            Ok(()) => {
                self.last_accepted = Some(fragment.at);
                self.refused_since = None;
                self.refused_frames = 0;
            }
            Err(Cause::Late | Cause::OutOfWindow) => {
                self.refused_since.get_or_insert(fragment.at);
                self.refused_frames += usize::from(fragment.ends_frame);
            }
            Err(_) => {}
        }
        self.fates.count(fragment, fate);
    }

    /// Opens an event at a place in the order; returns where it is then.
    ///
    /// # Errors
    /// There is no room for it: as it is older than all that are open, and so the one to be given
    /// up; or because somebody holds more events than was said.
    fn insert(
        &mut self,
        mut place: usize,
        key: u64,
        fragment: &Fragment,
        out: &mut impl Sink<Event>,
    ) -> Result<usize, Cause> {
        if self.open.len() == self.max_open {
            place = place.checked_sub(1).ok_or(Cause::Late)?;
            self.stats.events.forced.add(1);
            self.close_oldest(out);
        }
        if self.ahead.len() <= AHEAD / 2 {
            let more = std::iter::from_fn(|| Draft::new(&mut self.events));
            self.ahead.extend(more.take(AHEAD / 2));
        }
        let draft = self.ahead.pop_front().ok_or(Cause::NoMbuf)?;
        let deadline = fragment.at.after(self.deadline);
        // It must not hold up the next younger one.
        let deadline = self
            .open
            .get(place)
            .map_or(deadline, |next| deadline.min(next.deadline));
        let open = Open {
            key,
            deadline,
            arrival: fragment.arrival,
            sources: 0,
            hits: [0; MAX_SOURCES],
            draft,
        };
        // Nearly always behind all others, which takes no moving.
        if place == self.open.len() {
            self.open.push_back(open);
        } else {
            self.open.insert(place, open);
        }
        Ok(place)
    }

    fn close_oldest(&mut self, out: &mut impl Sink<Event>) {
        let Some(open) = self.open.pop_front() else {
            return;
        };
        self.closed += 1;
        self.floor = open.key + 1;
        let complete = open.sources == self.all;
        let hits = open.draft.hits();
        let counts = &self.stats.events;
        counts.built.add(1);
        counts.hits.add(u64::from(hits));
        if complete {
            counts.complete.add(1);
        } else {
            counts.incomplete.add(1);
            for (source, counts) in self.stats.sources.iter().enumerate() {
                counts
                    .absent
                    .add(u64::from(open.sources >> source & 1 == 0));
            }
        }
        let head = EventHead {
            timestamp: open.key * self.window,
            sources: open.sources,
            complete,
            hits,
            arrival: open.arrival,
        };
        out.push(open.draft.finish(&head, Span::default()));
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
}

impl Stage for Build {
    type In = Fragments;
    type Out = Event;

    fn process(&mut self, batch: &mut Batch<Fragments>, out: &mut impl Sink<Event>) {
        let mut now = None;
        for fragments in batch.as_slice() {
            for (fragment, places) in fragments.padded() {
                if now.replace(fragment.at) != Some(fragment.at) {
                    self.close_due(fragment.at, out);
                }
                let fate = self.add(&fragment, places, out);
                self.count(&fragment, fate);
                self.close_due(fragment.at, out);
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
