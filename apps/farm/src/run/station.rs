//! A loop: some members of the farm and the carrier of their messages.

use std::ops::Deref;
use std::sync::Arc;

use pollux_farm::carrier::{Arrival, Carrier};
use pollux_farm::role::{Address, Role};
use pollux_farm::time::Time;
use pollux_mempool::time::Tsc;
use pollux_pmd::{Clock, TscClock};

use super::counters::Control;
use super::rest::{Rest, Resting};
use super::seats::{FeederSeat, NodeSeat, ResultSeat, SchedulerSeat};

/// Messages between two readings of the clock.
const READ_CLOCK: usize = 32;

/// Messages of a round at most: then what was gathered is sent.
const ROUND: usize = 512;

/// Rounds between two shows of the counts.
const SHOW: u64 = 256;

/// The members of a loop.
pub struct Members<P> {
    pub scheduler: Option<SchedulerSeat>,
    pub results: Option<ResultSeat>,
    /// Feeders from this number on.
    pub first_feeder: usize,
    pub feeders: Vec<FeederSeat>,
    /// Nodes from this number on.
    pub first_node: usize,
    pub nodes: Vec<NodeSeat<P>>,
}

/// A loop.
pub struct Station<C: Carrier> {
    pub members: Members<C::Payload>,
    pub carrier: C,
    control: Arc<Control>,
    clock: TscClock,
    start: Tsc,
    resting: Resting,
    rounds: u64,
    /// When a feeder, a node or the result node is to be polled next.
    due: Time,
    /// Messages for members that are not in this loop.
    pub misrouted: u64,
}

impl<C: Carrier<Payload: Deref<Target = [u8]>>> Station<C> {
    pub fn new(
        members: Members<C::Payload>,
        carrier: C,
        control: Arc<Control>,
        clock: TscClock,
        start: Tsc,
        rest: Rest,
    ) -> Self {
        Self {
            members,
            carrier,
            control,
            clock,
            start,
            resting: Resting::new(rest),
            rounds: 0,
            due: Time::ZERO,
            misrouted: 0,
        }
    }

    /// Polls the members until the run stops.
    pub fn run(&mut self) {
        while !self.control.stop.is_set() {
            let worked = self.round();
            self.resting.after(worked);
        }
        // What has arrived belongs to the run.
        for _ in 0..ROUND {
            if !self.round() {
                break;
            }
        }
        self.show();
    }

    fn now(&self) -> Time {
        Time::from_ns(self.clock.to_ns(self.clock.now().since(self.start)).0)
    }

    /// A round; whether the events are all decided and nothing arrives any more.
    #[cfg(test)]
    pub fn round_to_end(&mut self) -> bool {
        !self.round() && self.control.done.is_set()
    }

    /// Delivers what has arrived, and does what is due. Returns whether something arrived.
    fn round(&mut self) -> bool {
        let mut now = self.now();
        let mut delivered = 0;
        while delivered < ROUND
            && let Some(arrival) = self.carrier.next()
        {
            delivered += 1;
            if delivered.is_multiple_of(READ_CLOCK) {
                now = self.now();
            }
            self.deliver(now, arrival);
        }
        // After the end, answers are all that is sent.
        if !self.control.done.is_set() {
            self.poll(now);
        }
        self.carrier.flush();
        self.rounds += 1;
        if self.rounds.is_multiple_of(SHOW) {
            self.show();
        }
        delivered > 0
    }

    fn deliver(&mut self, now: Time, arrival: Arrival<C::Payload>) {
        let Arrival {
            to,
            message,
            payload,
        } = arrival;
        let (members, out) = (&mut self.members, &mut self.carrier);
        out.set_sender(to);
        match to {
            Address::Scheduler => {
                if let Some(seat) = &mut members.scheduler {
                    return seat.receive(now, &message, out);
                }
            }
            Address::Results => {
                if let Some(seat) = &mut members.results {
                    return seat.receive(now, &message, out);
                }
            }
            Address::Feeder(feeder) => {
                let place = usize::from(feeder).checked_sub(members.first_feeder);
                if let Some(seat) = place.and_then(|place| members.feeders.get_mut(place)) {
                    return seat.receive(now, &message, out);
                }
            }
            Address::Node(node) => {
                let place = usize::from(node).checked_sub(members.first_node);
                if let Some(seat) = place.and_then(|place| members.nodes.get_mut(place)) {
                    seat.receive(now, &message, payload, out);
                    self.due = self.due.min(seat.node.next_deadline());
                    return;
                }
            }
        }
        self.misrouted += 1;
    }

    /// Does what is due.
    fn poll(&mut self, now: Time) {
        if now >= self.due {
            self.poll_members(now);
        }
        let (members, out) = (&mut self.members, &mut self.carrier);
        if let Some(seat) = &mut members.scheduler {
            out.set_sender(Address::Scheduler);
            seat.scheduler.poll(now, out);
            seat.trigger(now, out);
        }
    }

    /// Polls the members beside the scheduler.
    fn poll_members(&mut self, now: Time) {
        let (members, out) = (&mut self.members, &mut self.carrier);
        let mut due = Time::MAX;
        for (n, seat) in (members.first_feeder..).zip(&mut members.feeders) {
            out.set_sender(Address::Feeder(n as u8));
            seat.poll(now, out);
            if !seat.is_dead {
                due = due.min(seat.feeder.next_deadline());
            }
        }
        for (n, seat) in (members.first_node..).zip(&mut members.nodes) {
            out.set_sender(Address::Node(n as u16));
            seat.poll(now, out);
            if !seat.is_dead {
                due = due.min(seat.node.next_deadline());
            }
        }
        if let Some(seat) = &mut members.results {
            out.set_sender(Address::Results);
            seat.results.poll(now, out);
            due = due.min(seat.results.next_deadline());
        }
        self.due = due;
    }

    /// Shows counts to readers.
    fn show(&self) {
        if let Some(seat) = &self.members.scheduler {
            seat.show();
        }
        if let Some(seat) = &self.members.results {
            seat.show();
        }
    }
}
