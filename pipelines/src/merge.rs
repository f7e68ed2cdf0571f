//! Hits of all sources, merged into windows of time.
//!
//! Where boards send single hits with their times rather than events, an event is what falls into
//! one window of time. Each source's hits wait in a ring of their own, sorted; those of one window
//! are taken from all rings together, the sources in their order.
//!
//! **When a window closes.** A source is never further behind itself than `disorder`, so it has
//! said all about what lies before its latest hit less that. A window closes when all sources have
//! said all about it, those apart that have not gone on in time for a deadline. What comes for it
//! then is late, and counted.
//!
//! **Edges.** An event on the edge of two windows must not be torn apart: each window is given the
//! hits of a `guard` before and behind it too. Whoever finds something in a window keeps it if its
//! time lies inside ([`Span::holds`]): each time lies in exactly one window.
//!
//! **Nonsense.** Times are not trusted. One that is behind what was closed, further behind its
//! source than `disorder`, or further ahead of all others than `horizon` is refused. It may be that
//! time has jumped (a new burst): this is believed when no source has said anything else for a
//! while, or for as long as its deadline. So a source that lies is not heard, and what it says
//! moves nothing. One that was ahead of all others when nothing else had been heard is taken back
//! when it goes on where the others are.
//!
//! Memory is bounded by the rings: where one is full, the oldest windows are closed early.

mod options;
mod source;

use pollux_mempool::time::Tsc;

pub use self::options::{MergeCounts, MergeError, MergeOptions};
use self::source::{Source, Waiting};
use crate::l0::MAX_EVENT_HITS;
use crate::rich::Hit;
use crate::stage::Moment;

/// Units of 25/256 ns in a slot of 25 ns.
pub const SLOT: u64 = 256;
/// Latest time that there can be: no sum with it overflows.
const LAST: u64 = 1 << 62;
/// Times in a row that all hits of a source must be refused before it is believed.
const STUBBORN: u32 = 16;

/// A hit as a source sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampedHit {
    /// In units of 25/256 ns.
    pub time: u64,
    /// Photomultiplier.
    pub pm: u16,
}

/// When hits came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// On the time line of the deadlines.
    pub at: Moment,
    /// On the clock.
    pub arrival: Tsc,
}

/// Why hits were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Their window had been closed.
    Late,
    /// Too far ahead of all others.
    Ahead,
    /// Too far behind their source.
    Disordered,
    /// Of a source that there is not.
    Unknown,
}

/// Of which time the hits of an event are: that of its window, and a guard on either side of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Units of 25/256 ns before and behind the window whose hits are there too. Hits count their
    /// times from the beginning of the first guard.
    pub guard: u16,
    /// Width of the window, in units of 25/256 ns; 0 where all hits are the event's own.
    pub width: u16,
}

impl Span {
    /// Whether what happened at `time`, counted as that of the hits, is this window's. What is not
    /// is a neighbour's, which has seen it as well.
    #[must_use]
    #[inline]
    pub fn holds(self, time: f32) -> bool {
        let start = f32::from(self.guard);
        self.width == 0 || (start..start + f32::from(self.width)).contains(&time)
    }
}

/// The hits of one window.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Where it begins, in units of 25/256 ns.
    pub start: u64,
    /// Of which time its hits are.
    pub span: Span,
    /// Bit s: source s had come to it, or further, when it was closed.
    pub sources: u64,
    /// When the first of its hits came, on the clock.
    pub arrival: Tsc,
    /// Its hits: in the order of the sources, those of each in the order of time.
    pub hits: &'a [Hit],
}

/// Merges hits into windows. Allocates when it is made, and not again.
#[derive(Debug)]
pub struct Merge {
    options: MergeOptions,
    sources: Vec<Source>,
    /// Times before this belong to windows that are closed.
    floor: u64,
    /// The latest time of all sources.
    front: Option<u64>,
    /// The latest arrival of all hits.
    arrival: Tsc,
    hits: Box<[Hit; MAX_EVENT_HITS]>,
    counts: MergeCounts,
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
        Ok(Self {
            options,
            sources: (0..options.sources)
                .map(|_| Source::new(options.capacity))
                .collect(),
            floor: 0,
            front: None,
            arrival: Tsc::default(),
            hits: Box::new([Hit::default(); MAX_EVENT_HITS]),
            counts: MergeCounts::default(),
        })
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> MergeCounts {
        self.counts
    }

    /// Takes hits of `source`, and shows the windows that close to `out`.
    ///
    /// # Errors
    /// All hits were refused: why the first of them was.
    pub fn push(
        &mut self,
        source: usize,
        hits: &[StampedHit],
        came: Came,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        if source >= self.sources.len() {
            self.counts.unknown += hits.len() as u64;
            return Err(Refusal::Unknown);
        }
        let (mut rest, mut refusal, mut refused) = (hits, None, 0);
        self.arrival = self.arrival.max(came.arrival);
        while let Some((&hit, others)) = rest.split_first() {
            let taken = self.append(source, rest, came);
            if taken > 0 {
                rest = &rest[taken..];
                continue;
            }
            rest = others;
            if let Err(why) = self.admit(source, hit.time, came.at, out) {
                refusal.get_or_insert(why);
                refused += 1;
                continue;
            }
            if self.sources[source].is_full() {
                self.make_room(source, out);
            }
            self.sources[source].insert(Waiting::new(hit, came.arrival));
            self.counts.taken += 1;
        }
        self.close_until(self.complete(came.at), out);
        match refusal {
            Some(why) if refused == hits.len() => {
                self.sources[source].refused += 1;
                Err(why)
            }
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
        if source >= self.sources.len() {
            return Err(Refusal::Unknown);
        }
        let admitted = self.admit(source, time, now, out);
        self.sources[source].refused += u32::from(admitted.is_err());
        self.close_until(self.complete(now), out);
        admitted
    }

    /// Closes what silent sources have held up; called now and then.
    pub fn tick(&mut self, now: Moment, out: &mut impl FnMut(Window)) {
        self.close_until(self.complete(now), out);
    }

    /// The input has ended: closes all windows.
    pub fn finish(&mut self, out: &mut impl FnMut(Window)) {
        while let Some(start) = self.next() {
            self.close(start, out);
        }
    }

    /// Takes those of the hits, from the first on, that come in the order of time and for which
    /// there is room: nearly all. Returns how many.
    #[inline]
    fn append(&mut self, source: usize, hits: &[StampedHit], came: Came) -> usize {
        let Some(front) = self.front else {
            return 0;
        };
        let limit = front.saturating_add(self.options.horizon).min(LAST);
        let own = &mut self.sources[source];
        let room = own.ring.len() - (own.tail - own.head);
        let mask = own.ring.len() - 1;
        let (mut latest, mut taken) = (own.latest.max(self.floor), 0);
        for &hit in &hits[..hits.len().min(room)] {
            if hit.time < latest || hit.time > limit {
                break;
            }
            latest = hit.time;
            own.ring[(own.tail + taken) & mask] = Waiting::new(hit, came.arrival);
            taken += 1;
        }
        if taken > 0 {
            own.tail += taken;
            if latest > own.latest {
                own.heard = Some(came.at);
            }
            own.latest = latest;
            own.refused = 0;
            self.front = Some(front.max(latest));
            self.counts.taken += taken as u64;
        }
        taken
    }

    /// Lets a source go on to a time; counts it, with the reason, if it is refused.
    #[inline]
    fn admit(
        &mut self,
        source: usize,
        time: u64,
        now: Moment,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        if let Err(why) = self.check(source, time, now, out) {
            match why {
                Refusal::Late => self.counts.late += 1,
                Refusal::Ahead => self.counts.ahead += 1,
                Refusal::Disordered => self.counts.disordered += 1,
                Refusal::Unknown => self.counts.unknown += 1,
            }
            return Err(why);
        }
        if self.front.is_none() {
            // From now on all are waited for.
            self.sources
                .iter_mut()
                .for_each(|source| source.heard = Some(now));
        }
        let own = &mut self.sources[source];
        if time > own.latest {
            own.heard = Some(now);
            own.latest = time;
        }
        own.refused = 0;
        self.front = self.front.max(Some(time));
        Ok(())
    }

    /// Whether a time is believed.
    #[inline]
    fn check(
        &mut self,
        source: usize,
        time: u64,
        now: Moment,
        out: &mut impl FnMut(Window),
    ) -> Result<(), Refusal> {
        let Some(front) = self.front else {
            return if time > LAST {
                Err(Refusal::Ahead)
            } else {
                Ok(())
            };
        };
        let own = &self.sources[source];
        let ahead = time > front.saturating_add(self.options.horizon).min(LAST);
        let late = time < self.floor;
        let disordered = time.saturating_add(self.options.disorder) < own.latest;
        if !(ahead || late || disordered) {
            return Ok(());
        }
        if own.refused >= STUBBORN && !ahead && !late {
            // It was ahead by itself, and is not any more.
            let own = &mut self.sources[source];
            let taken_back = own.take_back(time.saturating_add(self.options.disorder));
            own.latest = own.last().unwrap_or(time).max(time);
            self.counts.taken -= taken_back;
            self.counts.ahead += taken_back;
            self.front = self.sources.iter().map(|source| source.latest).max();
            return Ok(());
        }
        let has_jumped = |other: &Source| {
            other.refused >= STUBBORN || other.is_silent(self.options.deadline, now)
        };
        let own = &self.sources[source];
        let possible = time <= LAST && own.refused >= STUBBORN;
        if possible && self.sources.iter().all(has_jumped) {
            self.finish(out);
            self.counts.jumps += 1;
            self.floor = 0;
            self.front = None;
            for source in &mut self.sources {
                (source.latest, source.refused, source.heard) = (0, 0, None);
            }
            return Ok(());
        }
        Err(if late {
            Refusal::Late
        } else if ahead {
            Refusal::Ahead
        } else {
            Refusal::Disordered
        })
    }

    /// The time before which all has been said.
    #[inline]
    fn complete(&self, now: Moment) -> u64 {
        // One that has said nothing yet is at the beginning of time.
        let said = |source: &Source| source.latest.saturating_sub(self.options.disorder);
        let waited_for = |source: &&Source| !source.is_silent(self.options.deadline, now);
        let complete = self.sources.iter().filter(waited_for).map(said).min();
        complete.unwrap_or(u64::MAX)
    }

    /// Closes windows until a ring has room.
    #[cold]
    fn make_room(&mut self, source: usize, out: &mut impl FnMut(Window)) {
        while self.sources[source].is_full() {
            let Some(start) = self.next() else {
                return;
            };
            self.counts.forced += 1;
            self.close(start, out);
        }
    }

    /// Where the next window with hits begins.
    #[inline]
    fn next(&self) -> Option<u64> {
        let width = u64::from(self.options.width);
        // What waits before the floor is there for its neighbour alone.
        let first = self.sources.iter().filter_map(Source::first).min()?;
        let first = first.max(self.floor);
        Some(first - first % width)
    }

    /// Closes the windows that end, with their guard, before `complete`.
    #[inline]
    fn close_until(&mut self, complete: u64, out: &mut impl FnMut(Window)) {
        let reach = u64::from(self.options.width) + u64::from(self.options.guard);
        while let Some(start) = self.next() {
            if start.saturating_add(reach) > complete {
                break;
            }
            self.close(start, out);
        }
    }

    /// Takes the hits of a window out of the rings; those that the next one shares stay.
    fn close(&mut self, start: u64, out: &mut impl FnMut(Window)) {
        let MergeOptions { width, guard, .. } = self.options;
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
        for (number, source) in self.sources.iter_mut().enumerate() {
            sources |= u64::from(source.latest >= start) << number;
            let mask = source.ring.len() - 1;
            let mut done = source.head;
            for at in source.head..source.tail {
                let hit = source.ring[at & mask];
                if hit.time >= last {
                    break;
                }
                self.hits[n.min(MAX_EVENT_HITS - 1)] = Hit {
                    pm: hit.pm(),
                    fine: (hit.time.saturating_sub(base) + skip) as u16,
                };
                // Those of a neighbour that was closed long ago are not looked at.
                n += usize::from(hit.time >= base);
                age = age.max(hit.age(self.arrival));
                inside += usize::from(hit.time >= start && hit.time < end);
                done += usize::from(hit.time < keep);
            }
            source.head = done;
        }
        self.floor = end;
        if inside == 0 {
            return;
        }
        let kept = n.min(MAX_EVENT_HITS);
        self.counts.windows += 1;
        self.counts.hits += kept as u64;
        self.counts.overfull += (n - kept) as u64;
        out(Window {
            start,
            span: Span { guard, width },
            sources,
            arrival: Tsc(self.arrival.0 - age),
            hits: &self.hits[..kept],
        });
    }
}

#[cfg(test)]
mod tests;
