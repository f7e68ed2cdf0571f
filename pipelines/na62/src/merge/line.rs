//! The hits of all sources that wait in one timeline.

use std::collections::VecDeque;

use pollux_mempool::time::{Ns, Tsc};
use pollux_pipelines::clocks::LIVE;
use pollux_pipelines::stage::Moment;

use super::hit::{HitArrival, StampedHit};
use super::options::MergeOptions;
use super::source::{Source, Waiting};
use crate::l0::MAX_EVENT_HITS;
use crate::rich::Hit;

/// Times at which it is noted, within a deadline, how far a majority has come.
const NOTES: usize = 16;

/// What was taken out of the rings for a window.
pub(super) struct Taken {
    /// Hits of the window and its guards, those included that found no room.
    pub(super) hits: usize,
    /// Those of the window itself.
    pub(super) inside: usize,
    pub(super) sources: u64,
    /// Bit s: source s has more hits than rings explain.
    pub(super) hot: u64,
    /// Cycles since the first of them came.
    pub(super) age: u64,
}

/// Rings of hits, one for each source.
#[derive(Debug)]
pub(super) struct Timeline {
    options: MergeOptions,
    pub(super) sources: Vec<Source>,
    /// Times before this belong to windows that are closed.
    pub(super) floor: u64,
    /// When a source was heard as the first, or as the first after all had been silent: from then on
    /// the others are waited for.
    begun: Option<Moment>,
    /// When a source was last heard.
    heard: Moment,
    /// How far the sources had come: the oldest note first.
    notes: VecDeque<Note>,
    /// Where the hits of each source end in the window that was taken last.
    ends: Box<[usize]>,
}

/// How far most sources had come that went on at a moment, less the disorder.
#[derive(Clone, Copy, Debug)]
struct Note {
    at: Moment,
    front: u64,
}

impl Timeline {
    pub(super) fn new(options: &MergeOptions) -> Self {
        Self {
            options: *options,
            sources: (0..options.sources)
                .map(|_| Source::new(options.capacity))
                .collect(),
            floor: 0,
            begun: None,
            heard: Moment(0),
            notes: VecDeque::with_capacity(2 * NOTES),
            ends: vec![0; options.sources].into(),
        }
    }

    /// Forgets all; the memory stays.
    pub(super) fn clear(&mut self) {
        self.sources.iter_mut().for_each(Source::clear);
        (self.floor, self.begun) = (0, None);
        self.notes.clear();
    }

    /// Moves sources (bit s: source s), with their hits, to another timeline, which is empty.
    pub(super) fn split_to(&mut self, other: &mut Self, sources: u64) {
        let pairs = self.sources.iter_mut().zip(&mut other.sources);
        for (n, (here, there)) in pairs.enumerate() {
            if sources >> n & 1 == 1 {
                std::mem::swap(here, there);
            }
        }
        (other.floor, other.begun, other.heard) = (self.floor, self.begun, self.heard);
        self.notes.clear();
    }

    /// Takes those of the hits, from the first on, that come in the order of time and for which
    /// there is room: nearly all. Returns how many.
    #[inline]
    pub(super) fn append(
        &mut self,
        source: usize,
        hits: &[StampedHit],
        limit: u64,
        when: HitArrival,
    ) -> usize {
        let own = &mut self.sources[source];
        let room = own.ring.len() - (own.tail - own.head);
        let mask = own.ring.len() - 1;
        // A clock that was put back leaves later hits behind.
        let last = own.last().unwrap_or(0);
        let (mut latest, mut taken) = (own.latest.max(last).max(self.floor), 0);
        for &hit in &hits[..hits.len().min(room)] {
            if hit.time < latest || hit.time > limit {
                break;
            }
            latest = hit.time;
            own.ring[(own.tail + taken) & mask] = Waiting::new(hit, when.arrival);
            taken += 1;
        }
        if taken > 0 {
            own.tail += taken;
            own.come_to(latest, when.at);
            self.begin(when.at);
        }
        taken
    }

    /// Adds a hit, for which there is room, in its place.
    pub(super) fn insert(&mut self, source: usize, hit: Waiting, at: Moment) {
        self.hear(source, hit.time, at);
        self.sources[source].insert(hit);
    }

    /// A source has come to a time.
    pub(super) fn hear(&mut self, source: usize, time: u64, at: Moment) {
        self.sources[source].come_to(time, at);
        self.begin(at);
    }

    /// A source is heard.
    #[inline]
    fn begin(&mut self, at: Moment) {
        if self.begun.is_none() || at > self.heard.after(LIVE) {
            self.begun = Some(at);
        }
        self.heard = at;
    }

    /// Those of the members (bit s: source s) that are waited for.
    fn waited_for(&self, members: u64, now: Moment) -> impl Iterator<Item = &Source> {
        let deadline = self.options.deadline;
        // One that is silent, or has never been heard, is waited for once when others begin.
        let at_first = self.begun.is_some_and(|begun| now <= begun.after(deadline));
        let is_live = move |heard: Moment| now <= heard.after(LIVE);
        let waits = move |source: &Source| at_first || source.heard.is_some_and(is_live);
        let sources = self.sources.iter().enumerate();
        let members = sources.filter(move |(n, _)| members >> n & 1 == 1);
        members
            .map(|(_, source)| source)
            .filter(move |source| waits(source))
    }

    /// How far most members have come that go on; `None` if there is none.
    pub(super) fn front(&self, members: u64, now: Moment) -> Option<u64> {
        let disorder = self.options.disorder;
        let going_on = |source: &&Source| {
            let heard = source.heard.map(|heard| heard.after(self.options.deadline));
            heard.is_some_and(|heard| now <= heard)
        };
        let going_on = self.waited_for(members, now).filter(going_on);
        let mut times = [0; 64];
        let count = times
            .iter_mut()
            .zip(going_on)
            .map(|(place, source)| *place = source.latest.saturating_sub(disorder))
            .count();
        let times = &mut times[..count];
        times.sort_unstable();
        // The latest that more than half of them have come to.
        times.get(count.checked_sub(1)? / 2).copied()
    }

    /// The time before which all has been said, or has been waited for. `is_reached` says whether
    /// most sources that have been heard since a moment have come to a time.
    #[inline]
    pub(super) fn complete(
        &mut self,
        members: u64,
        now: Moment,
        is_reached: impl Fn(u64, Moment) -> bool,
    ) -> u64 {
        let disorder = self.options.disorder;
        let said = self.waited_for(members, now);
        let said = said.map(|source| source.latest.saturating_sub(disorder));
        let said = said.min().unwrap_or(u64::MAX);
        said.max(self.waited(members, now, is_reached))
    }

    /// How far a majority had come a deadline ago.
    #[inline]
    fn waited(
        &mut self,
        members: u64,
        now: Moment,
        is_reached: impl Fn(u64, Moment) -> bool,
    ) -> u64 {
        let step = Ns(self.options.deadline.0 / NOTES as u64);
        let due = |last: &Note| last.at.after(step) <= now;
        if self.notes.back().is_none_or(due) {
            self.note(members, now);
        }
        let old = |note: &Note| note.at.after(self.options.deadline) <= now;
        while self.notes.get(1).is_some_and(old) {
            self.notes.pop_front();
        }
        let note = self.notes.front().filter(|note| old(note));
        // Who goes on at a moment may be one that is ahead, while the others are between two frames.
        note.filter(|note| is_reached(note.front, note.at))
            .map_or(0, |note| note.front)
    }

    #[cold]
    fn note(&mut self, members: u64, now: Moment) {
        if self.notes.len() == 2 * NOTES {
            self.notes.pop_front();
        }
        if let Some(front) = self.front(members, now) {
            self.notes.push_back(Note { at: now, front });
        }
    }

    /// Goes back to a time.
    pub(super) fn step_back(&mut self, time: u64) {
        self.floor = self.window_of(time);
        self.notes.clear();
    }

    /// Where the window of a time begins.
    fn window_of(&self, time: u64) -> u64 {
        time - time % u64::from(self.options.width)
    }

    /// Where the next window with hits begins.
    #[inline]
    pub(super) fn next(&self) -> Option<u64> {
        // What waits before the floor is there for its neighbour alone.
        let first = self.sources.iter().filter_map(Source::first).min()?;
        Some(self.window_of(first.max(self.floor)))
    }

    /// Takes the hits of the window that begins at `start` out of the rings; those that the next one
    /// shares stay.
    pub(super) fn take(
        &mut self,
        start: u64,
        arrival: Tsc,
        to: &mut [Hit; MAX_EVENT_HITS],
    ) -> Taken {
        let MergeOptions {
            width,
            guard,
            hot_hits,
            ..
        } = self.options;
        let (wide, edge) = (u64::from(width), u64::from(guard));
        let base = start.saturating_sub(edge);
        // `base` is above zero but for the first window, whose hits are that much later.
        let skip = edge - (start - base);
        let (keep, end) = (
            start.saturating_add(wide - edge),
            start.saturating_add(wide),
        );
        let last = end.saturating_add(edge);
        let (mut n, mut inside, mut sources, mut age) = (0, 0, 0, 0);
        let (mut hot, most) = (0, usize::from(hot_hits));
        let each = self.sources.iter_mut().zip(&mut self.ends);
        for (number, (source, ends)) in each.enumerate() {
            let before = n;
            let whole = source.latest >= start && !source.lacks(start, end);
            sources |= u64::from(whole) << number;
            let mask = source.ring.len() - 1;
            let mut done = source.head;
            for at in source.head..source.tail {
                let hit = source.ring[at & mask];
                if hit.time >= last {
                    break;
                }
                to[n.min(MAX_EVENT_HITS - 1)] = Hit {
                    pm: hit.pm(),
                    fine: (hit.time.saturating_sub(base) + skip) as u16,
                };
                // Those of a neighbour that was closed long ago are not looked at.
                n += usize::from(hit.time >= base);
                age = age.max(hit.age(arrival));
                inside += usize::from(hit.time >= start && hit.time < end);
                done += usize::from(hit.time < keep);
            }
            source.head = done;
            *ends = n;
            hot |= u64::from(n - before > most) << number;
        }
        self.floor = end;
        Taken {
            hits: n,
            inside,
            sources,
            hot,
            age,
        }
    }

    /// Puts the hits of hot sources (bit s: source s), of those that were taken last, behind all
    /// others; how many they are.
    #[cold]
    pub(super) fn mask_hot(&self, hot: u64, hits: &mut [Hit]) -> u16 {
        let (mut begin, mut before, mut masked) = (0, 0, 0);
        for (source, &end) in self.ends.iter().enumerate() {
            let end = end.min(hits.len());
            let count = end - begin;
            begin = end;
            if hot >> source & 1 == 1 {
                hits[before..].rotate_left(count);
                masked += count;
            } else {
                before += count;
            }
        }
        masked as u16
    }
}
