//! The hits of one source that wait.

use pollux_mempool::time::Ns;

use super::StampedHit;
use crate::stage::Moment;

/// The hits of one source that wait, sorted by time.
#[derive(Debug)]
pub(super) struct Source {
    /// A power of two of places.
    pub(super) ring: Box<[StampedHit]>,
    pub(super) head: usize,
    pub(super) tail: usize,
    /// Its latest time.
    pub(super) latest: u64,
    /// When it last went on in time, or the first hit of any source came; `None` before both.
    pub(super) heard: Option<Moment>,
    /// Hits that were refused since.
    pub(super) refused: u32,
}

impl Source {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            ring: vec![StampedHit::default(); capacity.next_power_of_two()].into(),
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
    pub(super) fn insert(&mut self, hit: StampedHit) {
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
        self.latest = self.latest.max(hit.time);
    }

    /// Whether nothing was heard for a deadline.
    #[inline]
    pub(super) fn is_silent(&self, deadline: Ns, now: Moment) -> bool {
        self.heard.is_none_or(|heard| heard.after(deadline) < now)
    }
}
