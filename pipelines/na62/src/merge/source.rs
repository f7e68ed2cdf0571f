//! The hits of one source that wait.

use std::collections::VecDeque;

use pollux_mempool::time::Tsc;
use pollux_pipelines::stage::Moment;

use super::hit::{SLOT, StampedHit};

/// A hit that waits, in 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pub(super) time: u64,
    /// Bits 15-0 the photomultiplier, above them the lower bits of its arrival.
    rest: u64,
}

impl Waiting {
    #[inline]
    pub(super) fn new(hit: StampedHit, arrival: Tsc) -> Self {
        Self {
            time: hit.time,
            rest: arrival.0 << 16 | u64::from(hit.pm),
        }
    }

    #[inline]
    pub(super) fn pm(self) -> u16 {
        self.rest as u16
    }

    /// Cycles from its arrival to a later one: less than the 48 bits that are kept, which last a
    /// day.
    #[inline]
    pub(super) fn age(self, now: Tsc) -> u64 {
        (now.0 << 16).wrapping_sub(self.rest & !0xFFFF) >> 16
    }
}

/// The hits of one source that wait, sorted by time.
#[derive(Debug)]
pub(super) struct Source {
    /// A power of two of places.
    pub(super) ring: Box<[Waiting]>,
    pub(super) head: usize,
    pub(super) tail: usize,
    /// Its latest time.
    pub(super) latest: u64,
    /// When it last went on in time; `None` before it has said anything.
    pub(super) heard: Option<Moment>,
    /// Where frames of it are missing.
    gaps: VecDeque<Gap>,
}

/// Times between which frames are missing, and how many.
#[derive(Clone, Copy, Debug)]
struct Gap {
    from: u64,
    to: u64,
    frames: u16,
}

/// Most gaps that are distinguished.
const GAPS: usize = 64;

impl Source {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            ring: vec![Waiting::default(); capacity.next_power_of_two()].into(),
            head: 0,
            tail: 0,
            latest: 0,
            heard: None,
            gaps: VecDeque::with_capacity(GAPS),
        }
    }

    #[inline]
    fn place(&self, at: usize) -> usize {
        at & (self.ring.len() - 1)
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.tail - self.head == self.ring.len()
    }

    /// The earliest time that waits.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        (self.head < self.tail).then(|| self.ring[self.place(self.head)].time)
    }

    /// The latest time that waits.
    #[inline]
    pub(super) fn last(&self) -> Option<u64> {
        (self.head < self.tail).then(|| self.ring[self.place(self.tail - 1)].time)
    }

    /// Forgets all; the memory stays.
    pub(super) fn clear(&mut self) {
        (self.head, self.tail, self.latest, self.heard) = (0, 0, 0, None);
        self.gaps.clear();
    }

    /// It has come to a time.
    #[inline]
    pub(super) fn come_to(&mut self, time: u64, at: Moment) {
        if time > self.latest || self.heard.is_none() {
            (self.latest, self.heard) = (time, Some(at));
        }
    }

    /// Its clock has been put back to a time, if that is before its latest: what it said beyond that
    /// is not where it is. Its hits of then stay until that time comes.
    #[inline]
    pub(super) fn put_back(&mut self, time: u64) {
        self.latest = self.latest.min(time);
    }

    /// Frames are missing between what it said last and a time.
    pub(super) fn add_gap(&mut self, to: u64, frames: u16) {
        // A frame begins with another slot. Before the first one nothing is known.
        let from = (self.latest / SLOT + 1) * SLOT;
        if self.heard.is_none() || to <= from {
            return;
        }
        if self.gaps.len() == GAPS {
            // The oldest two become one, which what lies between them pays for.
            if let Some(first) = self.gaps.pop_front()
                && let Some(next) = self.gaps.front_mut()
            {
                next.from = first.from;
                next.frames = next.frames.saturating_add(first.frames);
            }
        }
        self.gaps.push_back(Gap { from, to, frames });
    }

    /// One of the frames that are missing around a time has come.
    pub(super) fn fill_gap(&mut self, time: u64) {
        let around = |gap: &Gap| (gap.from..gap.to).contains(&time);
        if let Some(gap) = self.gaps.iter_mut().find(|gap| around(gap)) {
            gap.frames -= u16::from(gap.frames > 0);
        }
    }

    /// Whether something is missing between two times; what ends before them is forgotten.
    #[inline]
    pub(super) fn lacks(&mut self, start: u64, end: u64) -> bool {
        while self.gaps.front().is_some_and(|gap| gap.to <= start) {
            self.gaps.pop_front();
        }
        let lacks = |gap: &Gap| gap.frames > 0 && gap.from < end && gap.to > start;
        self.gaps.iter().any(lacks)
    }

    /// Adds a hit in its place; there is room for it.
    #[inline]
    pub(super) fn insert(&mut self, hit: Waiting) {
        let mut at = self.tail;
        self.tail += 1;
        while at > self.head {
            let before = self.ring[self.place(at - 1)];
            if before.time <= hit.time {
                break;
            }
            let place = self.place(at);
            self.ring[place] = before;
            at -= 1;
        }
        let place = self.place(at);
        self.ring[place] = hit;
    }
}
