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
//! time lies inside ([`Window::holds`]): each time lies in exactly one window.
//!
//! **Nonsense.** Times are not trusted. One that is behind what was closed, further behind its
//! source than `disorder`, or further ahead of all others than `horizon` is refused. It may be that
//! time has jumped (a new burst): this is believed when no source has said anything else for a
//! while, or for as long as its deadline. So a source that lies is not heard, and what it says
//! moves nothing. One that was ahead of all others when nothing else had been heard is taken back
//! when it goes on where the others are.
//!
//! Memory is bounded by the rings: where one is full, the oldest windows are closed early.

mod source;

use pollux_mempool::time::Ns;

use self::source::Source;
use crate::stage::Moment;

/// Units of 25/256 ns in a slot of 25 ns.
pub const SLOT: u64 = 256;
/// Most hits of a window; what is beyond is counted.
pub const MAX_HITS: usize = 2048;
/// Latest time that there can be: no sum with it overflows.
const LAST: u64 = 1 << 62;
/// Hits that must be refused in a row before a source is believed.
const STUBBORN: u32 = 16;

/// A hit as a source sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampedHit {
    /// In units of 25/256 ns.
    pub time: u64,
    /// Photomultiplier.
    pub pm: u16,
}

/// A hit in its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowHit {
    /// Photomultiplier.
    pub pm: u16,
    /// In units of 25/256 ns since the window's beginning, less its guard.
    pub time: u16,
}

/// The hits of one window.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Where it begins, in units of 25/256 ns.
    pub start: u64,
    /// Units of 25/256 ns before and behind it whose hits it has too.
    pub guard: u16,
    /// Its width, in units of 25/256 ns.
    pub width: u16,
    /// Its hits: in the order of the sources, those of each in the order of time.
    pub hits: &'a [WindowHit],
}

impl Window<'_> {
    /// Whether what happened at `time`, counted as that of the hits, is this window's. What is not
    /// is a neighbour's, which has seen it as well.
    #[must_use]
    #[inline]
    pub fn holds(&self, time: f32) -> bool {
        let start = f32::from(self.guard);
        (start..start + f32::from(self.width)).contains(&time)
    }
}

/// Options of a [`Merge`], times in units of 25/256 ns unless they say otherwise.
#[derive(Clone, Copy, Debug)]
pub struct MergeOptions {
    /// Sources, 1 to 64.
    pub sources: usize,
    /// Width of a window.
    pub width: u16,
    /// What a window shares with each of its neighbours; at most half its width.
    pub guard: u16,
    /// How far a hit may be behind an earlier one of its source.
    pub disorder: u64,
    /// How far a hit may be ahead of all others.
    pub horizon: u64,
    /// How long a silent source is waited for.
    pub deadline: Ns,
    /// Hits of each source that may wait.
    pub capacity: usize,
}

impl Default for MergeOptions {
    /// Four sources, windows of 25 ns that share 2 ns.
    fn default() -> Self {
        Self {
            sources: 4,
            width: SLOT as u16,
            guard: 20,
            disorder: 4 * SLOT,
            // A millisecond.
            horizon: 40_000 * SLOT,
            deadline: Ns(300_000),
            capacity: 1 << 14,
        }
    }
}

/// Why [`MergeOptions`] are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// No source, or too many.
    #[error("there must be 1 to 64 sources")]
    Sources,
    /// A window cannot be like this.
    #[error("the width of a window must be 2 to 32768, and its guard at most half of it")]
    Width,
    /// A ring cannot be like this.
    #[error("the capacity of a source must be 64 to 16777216 hits")]
    Capacity,
}

/// What a [`Merge`] counts. `taken` + all that were refused is what was pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeCounts {
    /// Hits that were taken.
    pub taken: u64,
    /// Refused: their window had been closed.
    pub late: u64,
    /// Refused: too far behind their source.
    pub disordered: u64,
    /// Refused: too far ahead of all others.
    pub ahead: u64,
    /// Refused: of a source that there is not.
    pub unknown: u64,
    /// Windows with hits.
    pub windows: u64,
    /// Hits in windows: those near an edge are in two.
    pub hits: u64,
    /// Hits that were more than a window holds.
    pub overfull: u64,
    /// Hits for which the ring had to be emptied before its time.
    pub forced: u64,
    /// Jumps of time that were believed.
    pub jumps: u64,
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
    hits: Box<[WindowHit; MAX_HITS]>,
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
            hits: Box::new([WindowHit::default(); MAX_HITS]),
            counts: MergeCounts::default(),
        })
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> MergeCounts {
        self.counts
    }

    /// Takes hits that came from `source` at `now`, and shows the windows that close to `out`.
    pub fn push(
        &mut self,
        source: usize,
        hits: &[StampedHit],
        now: Moment,
        out: &mut impl FnMut(Window),
    ) {
        if source >= self.sources.len() {
            self.counts.unknown += hits.len() as u64;
            return;
        }
        let mut rest = hits;
        while let Some((&hit, others)) = rest.split_first() {
            let taken = self.append(source, rest, now);
            if taken > 0 {
                rest = &rest[taken..];
                continue;
            }
            rest = others;
            if self.refuses(source, hit.time, now, out) {
                self.sources[source].refused += 1;
                continue;
            }
            if self.sources[source].is_full() {
                self.counts.forced += 1;
                self.make_room(source, out);
            }
            if self.front.is_none() {
                // From now on all are waited for.
                self.sources
                    .iter_mut()
                    .for_each(|source| source.heard = Some(now));
            }
            let own = &mut self.sources[source];
            if hit.time > own.latest {
                own.heard = Some(now);
            }
            own.insert(hit);
            own.refused = 0;
            self.front = self.front.max(Some(hit.time));
            self.counts.taken += 1;
        }
        self.close_until(self.complete(now), out);
    }

    /// Closes what silent sources have held up; called now and then.
    pub fn tick(&mut self, now: Moment, out: &mut impl FnMut(Window)) {
        self.close_until(self.complete(now), out);
    }

    /// The input has ended: closes all windows.
    pub fn finish(&mut self, out: &mut impl FnMut(Window)) {
        self.close_until(u64::MAX, out);
    }

    /// Takes those of the hits, from the first on, that come in the order of time and for which
    /// there is room: nearly all. Returns how many.
    #[inline]
    fn append(&mut self, source: usize, hits: &[StampedHit], now: Moment) -> usize {
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
            own.ring[(own.tail + taken) & mask] = hit;
            taken += 1;
        }
        if taken > 0 {
            own.tail += taken;
            if latest > own.latest {
                own.heard = Some(now);
            }
            own.latest = latest;
            own.refused = 0;
            self.front = Some(front.max(latest));
            self.counts.taken += taken as u64;
        }
        taken
    }

    /// Whether a hit is refused; counts it then.
    #[inline]
    fn refuses(
        &mut self,
        source: usize,
        time: u64,
        now: Moment,
        out: &mut impl FnMut(Window),
    ) -> bool {
        let Some(front) = self.front else {
            let impossible = time > LAST;
            self.counts.ahead += u64::from(impossible);
            return impossible;
        };
        let own = &self.sources[source];
        let ahead = time > front.saturating_add(self.options.horizon).min(LAST);
        let late = time < self.floor;
        let disordered = time.saturating_add(self.options.disorder) < own.latest;
        if !(ahead || late || disordered) {
            return false;
        }
        if own.refused >= STUBBORN && !ahead && !late {
            // It was ahead by itself, and is not any more.
            let own = &mut self.sources[source];
            let taken_back = own.take_back(time.saturating_add(self.options.disorder));
            own.latest = own.last().unwrap_or(time).max(time);
            self.counts.taken -= taken_back;
            self.counts.ahead += taken_back;
            self.front = self.sources.iter().map(|source| source.latest).max();
            return false;
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
            return false;
        }
        let count = if late {
            &mut self.counts.late
        } else if ahead {
            &mut self.counts.ahead
        } else {
            &mut self.counts.disordered
        };
        *count += 1;
        true
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
        let (mut n, mut inside) = (0, 0);
        for source in &mut self.sources {
            let mask = source.ring.len() - 1;
            let mut done = source.head;
            for at in source.head..source.tail {
                let hit = source.ring[at & mask];
                if hit.time >= last {
                    break;
                }
                self.hits[n.min(MAX_HITS - 1)] = WindowHit {
                    pm: hit.pm,
                    time: (hit.time.saturating_sub(base) + skip) as u16,
                };
                // Those of a neighbour that was closed long ago are not looked at.
                n += usize::from(hit.time >= base);
                inside += usize::from(hit.time >= start && hit.time < end);
                done += usize::from(hit.time < keep);
            }
            source.head = done;
        }
        self.floor = end;
        if inside == 0 {
            return;
        }
        let kept = n.min(MAX_HITS);
        self.counts.windows += 1;
        self.counts.hits += kept as u64;
        self.counts.overfull += (n - kept) as u64;
        out(Window {
            start,
            guard,
            width,
            hits: &self.hits[..kept],
        });
    }
}

#[cfg(test)]
mod tests;
