//! Time-outs of the MEPs in flight, and those that wait to be sent again: lists in the order of
//! their starts. A list has one duration, which may change while it runs.

use crate::time::Time;

/// Which time-out runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Until the flow control message returns.
    Ring,
    /// Until the node has finished.
    Event,
    /// None: it waits until it is sent again.
    Again,
}

/// Timers that run.
const RUNNING: usize = 2;
const LISTS: usize = 3;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
    started: Time,
    timer: Option<Timer>,
}

#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

/// Doubly linked lists over the slots of the MEPs in flight.
#[derive(Debug)]
pub(super) struct Timers {
    links: Box<[Link]>,
    lists: [List; LISTS],
}

impl Timers {
    pub(super) fn new(slots: usize) -> Self {
        let free = Link {
            before: NONE,
            after: NONE,
            started: Time::ZERO,
            timer: None,
        };
        let empty = List {
            first: NONE,
            last: NONE,
        };
        Self {
            links: vec![free; slots].into(),
            lists: [empty; LISTS],
        }
    }

    /// Starts a time-out of a slot anew.
    pub(super) fn start(&mut self, slot: usize, timer: Timer, now: Time) {
        self.stop(slot);
        let last = self.lists[timer as usize].last;
        self.links[slot] = Link {
            before: last,
            after: NONE,
            started: now,
            timer: Some(timer),
        };
        self.point(last, timer, slot as u32);
        self.lists[timer as usize].last = slot as u32;
    }

    /// Ends the time-out of a slot, if it has one.
    pub(super) fn stop(&mut self, slot: usize) {
        let link = self.links[slot];
        let Some(timer) = link.timer else { return };
        self.point(link.before, timer, link.after);
        match self.links.get_mut(link.after as usize) {
            Some(after) => after.before = link.before,
            None => self.lists[timer as usize].last = link.before,
        }
        self.links[slot].timer = None;
    }

    /// Sets what is behind a slot, or first in the list.
    fn point(&mut self, before: u32, timer: Timer, to: u32) {
        match self.links.get_mut(before as usize) {
            Some(before) => before.after = to,
            None => self.lists[timer as usize].first = to,
        }
    }

    /// Which time-out of a slot runs, and since when.
    pub(super) fn running(&self, slot: usize) -> Option<(Timer, Time)> {
        let link = self.links.get(slot)?;
        Some((link.timer?, link.started))
    }

    /// Takes a slot whose time is over, and when that began; the durations are those of the timers.
    pub(super) fn expired(
        &mut self,
        durations: [Time; RUNNING],
        now: Time,
    ) -> Option<(Timer, usize, Time)> {
        for (list, duration) in self.lists.iter().zip(durations) {
            let slot = list.first as usize;
            let link = self.links.get(slot);
            let due = link.filter(|link| link.started + duration <= now);
            if let Some((timer, started)) = due.and_then(|link| Some((link.timer?, link.started))) {
                self.stop(slot);
                return Some((timer, slot, started));
            }
        }
        None
    }

    /// The slot that has waited longest to be sent again.
    pub(super) fn first_again(&self) -> Option<usize> {
        let slot = self.lists[Timer::Again as usize].first as usize;
        (slot < self.links.len()).then_some(slot)
    }

    /// When the next time is over.
    pub(super) fn next_deadline(&self, durations: [Time; RUNNING]) -> Time {
        let lists = self.lists.iter().zip(durations);
        let deadline = |(list, duration): (&List, Time)| {
            let link = self.links.get(list.first as usize)?;
            Some(link.started + duration)
        };
        lists.filter_map(deadline).min().unwrap_or(Time::MAX)
    }
}
