//! Time-outs of the MEPs in flight: two lists, each of one duration, so that each is in order.

use crate::time::Time;

/// Which time-out runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Until the flow control message returns.
    Ring,
    /// Until the node has finished.
    Event,
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
    deadline: Time,
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
    lists: [List; 2],
}

impl Timers {
    pub(super) fn new(slots: usize) -> Self {
        let free = Link {
            before: NONE,
            after: NONE,
            deadline: Time::MAX,
            timer: None,
        };
        let empty = List {
            first: NONE,
            last: NONE,
        };
        Self {
            links: vec![free; slots].into(),
            lists: [empty; 2],
        }
    }

    /// Starts a time-out of a slot anew. Those of one list have one duration.
    pub(super) fn start(&mut self, slot: usize, timer: Timer, deadline: Time) {
        self.stop(slot);
        let last = self.lists[timer as usize].last;
        self.links[slot] = Link {
            before: last,
            after: NONE,
            deadline,
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

    /// Takes a slot whose time is over.
    pub(super) fn expired(&mut self, now: Time) -> Option<(Timer, usize)> {
        for list in self.lists {
            let slot = list.first as usize;
            let due = self.links.get(slot).filter(|link| link.deadline <= now);
            if let Some(timer) = due.and_then(|link| link.timer) {
                self.stop(slot);
                return Some((timer, slot));
            }
        }
        None
    }

    /// When the next time is over.
    pub(super) fn next_deadline(&self) -> Time {
        let deadline = |list: &List| self.links.get(list.first as usize).map(|l| l.deadline);
        self.lists
            .iter()
            .filter_map(deadline)
            .min()
            .unwrap_or(Time::MAX)
    }
}
