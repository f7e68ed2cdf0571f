//! The hits of one source that wait.

use pollux_mempool::time::{Ns, Tsc};

use super::StampedHit;
use crate::stage::Moment;

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
    /// When it last went on in time, or the first hit of any source came; `None` before both.
    pub(super) heard: Option<Moment>,
    /// Times that all of its hits were refused since.
    pub(super) refused: u32,
}

impl Source {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            ring: vec![Waiting::default(); capacity.next_power_of_two()].into(),
            head: 0,
            tail: 0,
            latest: 0,
            heard: None,
            refused: 0,
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
    pub(super) fn last(&self) -> Option<u64> {
        (self.head < self.tail).then(|| self.ring[self.place(self.tail - 1)].time)
    }

    /// Forgets the hits behind a time; returns how many there were.
    pub(super) fn take_back(&mut self, behind: u64) -> u64 {
        let before = self.tail;
        while self.last().is_some_and(|time| time > behind) {
            self.tail -= 1;
        }
        (before - self.tail) as u64
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

    /// Whether nothing was heard for a deadline.
    #[inline]
    pub(super) fn is_silent(&self, deadline: Ns, now: Moment) -> bool {
        self.heard.is_none_or(|heard| heard.after(deadline) < now)
    }
}
