//! The open events of one timeline.

use std::collections::VecDeque;

use pollux_mempool::time::Tsc;
use pollux_pipelines::stage::Moment;

use crate::l0::{Draft, MAX_SOURCES};

/// An event that waits for its sources.
pub(super) struct Open {
    pub(super) key: u64,
    /// From when on it has waited for those that are behind it.
    pub(super) since: Moment,
    pub(super) deadline: Moment,
    /// Most sources had not come to it at its deadline.
    pub(super) held: bool,
    pub(super) arrival: Tsc,
    /// Bit s: source s contributed; and how many did.
    pub(super) sources: u16,
    pub(super) count: u16,
    /// The first that did.
    pub(super) opener: u16,
    /// Hits of each source.
    pub(super) hits: [u16; MAX_SOURCES],
    /// Bit s: source s has more hits than rings explain.
    pub(super) hot: u16,
    /// Hits of a source did not fit.
    pub(super) truncated: bool,
    /// The event's buffer, until the event is closed: taken out of the list alone, since the rest of
    /// this structure need not be copied.
    pub(super) draft: Option<Draft>,
}

impl Open {
    /// It is open no more: takes it out of the events to which one source alone has contributed.
    #[inline]
    pub(super) fn leave(&self, alone: &mut [u32; MAX_SOURCES]) {
        if self.count == 1 {
            alone[usize::from(self.opener)] -= 1;
        }
    }
}

/// Events in the order of their keys.
#[derive(Default)]
pub(super) struct Timeline {
    pub(super) open: VecDeque<Open>,
    /// Lowest key that is not closed.
    pub(super) floor: u64,
    /// Events that were closed.
    closed: usize,
    /// For each source, the place behind its last fragment: where the next one goes unless
    /// something was lost. Places of events that were closed count.
    cursor: [usize; MAX_SOURCES],
}

impl Timeline {
    /// Without events, and with memory for so many.
    pub(super) fn with_capacity(events: usize) -> Self {
        Self {
            open: VecDeque::with_capacity(events),
            ..Self::default()
        }
    }

    /// Place of the open event with this key, or where it would be inserted.
    #[inline]
    pub(super) fn find(&self, source: usize, key: u64) -> Result<usize, usize> {
        let guess = self.cursor[source].saturating_sub(self.closed);
        match self.open.get(guess) {
            Some(open) if open.key == key => Ok(guess),
            None if self.open.back().is_none_or(|last| last.key < key) => Err(self.open.len()),
            _ => self.open.binary_search_by_key(&key, |open| open.key),
        }
    }

    /// The last fragment of a source is in the event at a place.
    #[inline]
    pub(super) fn point(&mut self, source: usize, place: usize) {
        self.cursor[source] = self.closed + place + 1;
    }

    /// Opens an event at a place in the order.
    #[inline]
    pub(super) fn insert(&mut self, place: usize, open: Open) {
        // Nearly always behind all others, which takes no moving.
        if place == self.open.len() {
            self.open.push_back(open);
        } else {
            self.open.insert(place, open);
        }
    }

    /// Removes the oldest event; its later fragments are late.
    #[inline]
    pub(super) fn close(&mut self) {
        if let Some(open) = self.open.front() {
            self.floor = open.key + 1;
            self.closed += 1;
            self.open.pop_front();
        }
    }

    /// Forgets all; the memory stays.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        (self.floor, self.closed, self.cursor) = (0, 0, [0; MAX_SOURCES]);
    }

    /// Moves the events from a key on to another timeline, which is empty.
    pub(super) fn split_to(&mut self, other: &mut Self, from: u64) {
        let first = self.open.partition_point(|open| open.key < from);
        other.open.extend(self.open.drain(first..));
        other.floor = from;
    }
}
