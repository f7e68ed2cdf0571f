//! The queue pairs of a loop, found by number.

use super::qp::Qp;
use crate::address::QpNumber;

/// No queue pair.
const NONE: u16 = u16::MAX;

/// Queue pairs side by side, with a hash table of their places. Nothing allocates but the construction.
#[allow(clippy::vec_box)] // the loop moves and drops no queue pair, but its pointer
pub(super) struct Table {
    qps: Vec<Box<Qp>>,
    /// Places by number, with linear probing; twice as many as queue pairs, or more.
    places: Box<[u16]>,
}

impl Table {
    /// Room for so many queue pairs, up to 4096.
    pub(super) fn new(most: usize) -> Self {
        Self {
            qps: Vec::with_capacity(most),
            places: vec![NONE; (2 * most).next_power_of_two().max(2)].into(),
        }
    }

    /// Adds a queue pair; handed back if there is no room, or if its number is taken.
    pub(super) fn insert(&mut self, qp: Box<Qp>) -> Option<Box<Qp>> {
        let is_full =
            self.qps.len() == self.qps.capacity() || 2 * self.qps.len() >= self.places.len();
        if is_full || self.find(qp.number).is_some() {
            return Some(qp);
        }
        self.qps.push(qp);
        self.enter(self.qps.len() - 1);
        None
    }

    pub(super) fn remove(&mut self, number: QpNumber) -> Option<Box<Qp>> {
        let place = self.find(number)?;
        let removed = self.qps.swap_remove(place);
        self.places.fill(NONE);
        for place in 0..self.qps.len() {
            self.enter(place);
        }
        Some(removed)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: QpNumber) -> Option<&mut Qp> {
        let place = self.find(number)?;
        self.qps.get_mut(place).map(|qp| &mut **qp)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.qps.len()
    }

    /// All, beginning with the one at `first`.
    #[inline]
    pub(super) fn from(&mut self, first: usize) -> impl Iterator<Item = &mut Qp> {
        let first = first.min(self.qps.len());
        let (before, after) = self.qps.split_at_mut(first);
        after.iter_mut().chain(before).map(|qp| &mut **qp)
    }

    /// All.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Qp> {
        self.qps.iter().map(|qp| &**qp)
    }

    #[inline]
    fn probe(&self, number: QpNumber) -> impl Iterator<Item = usize> + use<> {
        let mask = self.places.len() - 1;
        let first = (number.get() ^ number.get() >> 8) as usize;
        (0..=mask).map(move |way| first.wrapping_add(way) & mask)
    }

    #[inline]
    fn find(&self, number: QpNumber) -> Option<usize> {
        for at in self.probe(number) {
            let place = usize::from(self.places[at]);
            let qp = self.qps.get(place)?;
            if qp.number == number {
                return Some(place);
            }
        }
        None
    }

    fn enter(&mut self, place: usize) {
        let number = self.qps[place].number;
        let free = self.probe(number).find(|&at| self.places[at] == NONE);
        if let Some(free) = free {
            self.places[free] = place as u16;
        }
    }
}

/// The end of the loop.
impl Drop for Table {
    fn drop(&mut self) {
        for qp in &mut self.qps {
            qp.end();
        }
    }
}
