//! MEPs from the trigger to the decision: the copies that returned messages are compared with.

use crate::message::Flow;
use crate::place::place_of;
use crate::time::Time;
use crate::topology::{Descriptor, Feeders};

use super::rounds::Shift;
use super::timers::{Timer, Timers};

/// How far a MEP is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No receive buffer yet.
    Waiting,
    /// Its flow control message is in the ring.
    Ring,
    /// All feeders have transferred.
    Building,
    /// Its node has finished.
    Processed,
    /// The result node has the decision.
    Decided,
}

/// Whether a MEP was sent again, and is not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Repeat {
    #[default]
    No,
    Out,
}

/// A MEP in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) mep: u64,
    pub(super) event: u64,
    pub(super) count: u16,
    pub(super) phase: Phase,
    pub(super) triggered: Time,
    /// The flow control message is expected back.
    pub(super) expected: bool,
    pub(super) node: u16,
    pub(super) column: u8,
    pub(super) descriptor: Descriptor,
    pub(super) generation: u32,
    pub(super) attempt: u16,
    pub(super) part: u8,
    pub(super) loops: u8,
    pub(super) hold: bool,
    pub(super) members: Feeders,
    pub(super) pending: Feeders,
    /// Time-outs of the node since the assignment.
    pub(super) overdue: u16,
    /// The second part waits for its turn.
    pub(super) wants_more: bool,
    /// Slots: whether it is in a round.
    pub(super) shift: Shift,
    /// The first attempt of this part and buffer, and when it was sent.
    pub(super) first: (u16, Time),
    pub(super) repeat: Repeat,
}

impl Flight {
    const VACANT: Self = Self {
        mep: u64::MAX,
        event: 0,
        count: 0,
        phase: Phase::Decided,
        triggered: Time::ZERO,
        expected: false,
        node: 0,
        column: 0,
        descriptor: Descriptor(0),
        generation: 0,
        attempt: 0,
        part: 0,
        loops: 0,
        hold: false,
        members: Feeders::NONE,
        pending: Feeders::NONE,
        overdue: 0,
        wants_more: false,
        shift: Shift::No,
        first: (0, Time::ZERO),
        repeat: Repeat::No,
    };

    /// The message of the MEP.
    pub(super) fn flow(&self, run: u32, decided: u64) -> Flow {
        Flow {
            run,
            mep: self.mep,
            event: self.event,
            count: self.count,
            descriptor: self.descriptor,
            generation: self.generation,
            attempt: self.attempt,
            part: self.part,
            loops: self.loops,
            hold: self.hold,
            members: self.members,
            pending: self.pending,
            decided,
        }
    }

    /// Whether the present attempt is the first one.
    pub(super) fn is_first(&self) -> bool {
        self.attempt == self.first.0
    }

    /// Whether a message of an earlier attempt says that all feeders have transferred that take
    /// part now.
    pub(super) fn is_done_before(&self, flow: &Flow) -> bool {
        let since = flow.attempt.wrapping_sub(self.first.0);
        since < self.attempt.wrapping_sub(self.first.0)
            && self.event == flow.event
            && self.count == flow.count
            && self.descriptor == flow.descriptor
            && self.generation == flow.generation
            && self.part == flow.part
            && self.members == flow.members
            && flow.pending.is_empty()
    }

    /// Whether a message that returned is the one that was sent, but for the feeders that have
    /// transferred since.
    pub(super) fn is_copy(&self, flow: &Flow) -> bool {
        self.event == flow.event
            && self.count == flow.count
            && self.descriptor == flow.descriptor
            && self.generation == flow.generation
            && self.part == flow.part
            && self.loops == flow.loops
            && self.hold == flow.hold
            && self.members == flow.members
            && flow.pending.without(self.pending).is_empty()
    }
}

/// Table of the MEPs in flight.
#[derive(Debug)]
pub(super) struct Flights {
    slots: Box<[Flight]>,
    /// The oldest MEP that is kept.
    oldest: u64,
    /// The next MEP that is triggered.
    next: u64,
    /// The next event that is triggered.
    next_event: u64,
    /// Time-outs by slot.
    pub(super) timers: Timers,
}

impl Flights {
    pub(super) fn new(in_flight: usize) -> Self {
        Self {
            slots: vec![Flight::VACANT; in_flight].into(),
            oldest: 0,
            next: 0,
            next_event: 0,
            timers: Timers::new(in_flight),
        }
    }

    /// Whether no MEP can be added.
    pub(super) fn is_full(&self) -> bool {
        self.len() == self.slots.len()
    }

    /// MEPs that are kept.
    pub(super) fn len(&self) -> usize {
        (self.next - self.oldest) as usize
    }

    /// Adds a MEP of `count` events, unless the table is full.
    pub(super) fn add(&mut self, count: u16, triggered: Time) {
        if self.is_full() {
            return;
        }
        let slot = self.slot(self.next);
        self.slots[slot] = Flight {
            mep: self.next,
            event: self.next_event,
            count,
            phase: Phase::Waiting,
            triggered,
            ..Flight::VACANT
        };
        self.next += 1;
        self.next_event += u64::from(count);
    }

    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn next_event(&self) -> u64 {
        self.next_event
    }

    /// The slot of a MEP.
    pub(super) fn slot(&self, mep: u64) -> usize {
        place_of(mep, self.slots.len())
    }

    /// The MEP, if it is in flight.
    pub(super) fn get(&mut self, mep: u64) -> Option<&mut Flight> {
        let slot = self.slot(mep);
        let kept = self.oldest..self.next;
        self.slots.get_mut(slot).filter(|_| kept.contains(&mep))
    }

    /// The MEP, if it is in flight, to look at.
    pub(super) fn look(&self, mep: u64) -> Option<&Flight> {
        let kept = self.oldest..self.next;
        self.slots
            .get(self.slot(mep))
            .filter(|_| kept.contains(&mep))
    }

    /// The MEP in a slot, if one is in flight there.
    pub(super) fn at(&mut self, slot: usize) -> Option<&mut Flight> {
        let mep = self.slots.get(slot)?.mep;
        self.get(mep)
    }

    /// Starts a time-out of a MEP.
    pub(super) fn start(&mut self, mep: u64, timer: Timer, now: Time) {
        let slot = self.slot(mep);
        self.timers.start(slot, timer, now);
    }

    /// Which time-out of a MEP runs, and since when.
    pub(super) fn running(&self, mep: u64) -> Option<(Timer, Time)> {
        self.timers.running(self.slot(mep))
    }

    /// Ends the time-out of a MEP.
    pub(super) fn stop(&mut self, mep: u64) {
        let slot = self.slot(mep);
        self.timers.stop(slot);
    }

    /// Forgets the oldest MEP if it is decided and its message is not expected any more, and if the
    /// feeders know that its events are decided: all events before `told`.
    pub(super) fn retire(&mut self, told: u64) -> Option<Flight> {
        let flight = *self.get(self.oldest)?;
        let is_told = flight.event + u64::from(flight.count) <= told;
        let is_over = flight.phase == Phase::Decided && !flight.expected && is_told;
        is_over.then(|| {
            self.oldest += 1;
            flight
        })
    }
}
