//! The open events of one timeline.

use std::collections::VecDeque;

use crate::sources::SourceSet;
use crate::stage::Moment;

/// An event that waits for its sources.
pub(super) struct Open<E, S> {
    pub(super) key: u64,
    /// From when on it has waited for those that are behind it.
    pub(super) since: Moment,
    pub(super) deadline: Moment,
    /// Most sources had not come to it at its deadline.
    pub(super) held: bool,
    /// The sources that contributed, and how many.
    pub(super) sources: S,
    pub(super) count: u16,
    /// The first that did.
    pub(super) opener: u16,
    pub(super) event: E,
}

impl<E, S> Open<E, S> {
    /// It is open no more: takes it out of the events to which one source alone has contributed.
    #[inline]
    pub(super) fn leave(&self, alone: &mut [u32]) {
        if self.count == 1 {
            alone[usize::from(self.opener)] -= 1;
        }
    }
}

/// Events in the order of their keys.
pub(super) struct Timeline<E, S: SourceSet> {
    pub(super) open: VecDeque<Open<E, S>>,
    /// Lowest key that is not closed.
    pub(super) floor: u64,
    /// Events that were closed.
    closed: usize,
    /// For each source, the place behind its last fragment: where the next one goes unless
    /// something was lost. Places of events that were closed count.
    cursor: S::Each<usize>,
}

impl<E, S: SourceSet> Timeline<E, S> {
    /// Without events, and with memory for so many.
    pub(super) fn with_capacity(events: usize) -> Self {
        Self {
            open: VecDeque::with_capacity(events),
            floor: 0,
            closed: 0,
            cursor: S::each(0),
        }
    }

    /// Place of the open event with this key, or where it would be inserted.
    #[inline]
    pub(super) fn find(&self, source: usize, key: u64) -> Result<usize, usize> {
        let guess = self.cursor.as_ref()[source].saturating_sub(self.closed);
        match self.open.get(guess) {
            Some(open) if open.key == key => Ok(guess),
            None if self.open.back().is_none_or(|last| last.key < key) => Err(self.open.len()),
            _ => self.open.binary_search_by_key(&key, |open| open.key),
        }
    }

    /// The last fragment of a source is in the event at a place.
    #[inline]
    pub(super) fn point(&mut self, source: usize, place: usize) {
        self.cursor.as_mut()[source] = self.closed + place + 1;
    }

    /// Opens an event at a place in the order.
    #[inline]
    pub(super) fn insert(&mut self, place: usize, open: Open<E, S>) {
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
        (self.floor, self.closed) = (0, 0);
        self.cursor.as_mut().fill(0);
    }

    /// Moves the events from a key on to another timeline, which is empty.
    pub(super) fn split_to(&mut self, other: &mut Self, from: u64) {
        let first = self.open.partition_point(|open| open.key < from);
        other.open.extend(self.open.drain(first..));
        other.floor = from;
    }
}
