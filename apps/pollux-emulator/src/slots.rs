//! The slots in which events have hits: their own, and the ones beside it where light is carried
//! over an edge.

use std::collections::VecDeque;

use pollux_na62::rich::Hit;
use pollux_na62::rich::geometry::PMS;

use crate::truth::Moment;
use pollux_na62::physics::model::{SlotEdges, TruthEvent};

/// What the boards read in a slot of 25 ns.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) timestamp: u64,
    /// Sorted by photomultiplier, each once: of two hits the first in time stays.
    pub(crate) hits: Vec<Hit>,
}

/// Slots whose hits are not all known yet, in order: at most three of them.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Slots beside its own that an event may have hits in.
    reach: u64,
    open: VecDeque<Slot>,
    spare: Vec<Slot>,
}

impl Slots {
    /// No slots. `edges` says whether events have hits in others than their own.
    pub(crate) fn new(edges: SlotEdges) -> Self {
        let slot = |_| Slot {
            timestamp: 0,
            hits: Vec::with_capacity(PMS),
        };
        Self {
            reach: u64::from(edges == SlotEdges::Carry),
            open: VecDeque::with_capacity(8),
            spare: (0..8).map(slot).collect(),
        }
    }

    /// Adds the slot of an event, and those beside it that it has hits in. Events come in the order
    /// of their times. What is before the first slot of a run or a spill is not read out.
    pub(crate) fn add(&mut self, at: Moment, event: &TruthEvent) {
        let carried = |later: bool| {
            let hits = event.carried.iter();
            hits.filter(move |carried| carried.is_later == later)
                .map(|carried| carried.hit)
        };
        if let Some(before) = at.timestamp.checked_sub(1)
            && carried(false).next().is_some()
        {
            self.merge(before, carried(false));
        }
        self.merge(at.timestamp, event.hits.iter().copied());
        if carried(true).next().is_some() {
            self.merge(at.timestamp + 1, carried(true));
        }
    }

    fn merge(&mut self, timestamp: u64, hits: impl Iterator<Item = Hit>) {
        let place = self.open.partition_point(|slot| slot.timestamp < timestamp);
        if self
            .open
            .get(place)
            .is_none_or(|slot| slot.timestamp != timestamp)
        {
            let mut slot = self.spare.pop().unwrap_or(Slot {
                timestamp,
                hits: Vec::new(),
            });
            slot.timestamp = timestamp;
            slot.hits.clear();
            self.open.insert(place, slot);
        }
        if let Some(slot) = self.open.get_mut(place) {
            let was_empty = slot.hits.is_empty();
            slot.hits.extend(hits);
            if !was_empty {
                slot.hits.sort_unstable_by_key(|hit| (hit.pm, hit.fine));
                slot.hits.dedup_by_key(|hit| hit.pm);
            }
        }
    }

    /// The next slot of the spill `spill` that the event of `next`, and any later one, adds nothing
    /// to.
    pub(crate) fn pop(&mut self, spill: u64, next: Option<Moment>) -> Option<Slot> {
        let front = self.open.front()?.timestamp;
        let waits = |next: Moment| next.spill == spill && front + self.reach >= next.timestamp;
        let is_done = !next.is_some_and(waits);
        is_done.then(|| self.open.pop_front()).flatten()
    }

    /// Takes back the memory of a slot.
    pub(crate) fn put(&mut self, slot: Slot) {
        self.spare.push(slot);
    }
}
