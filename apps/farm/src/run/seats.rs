//! Members in a loop: their roles, and what the run does with them.

use std::sync::Arc;

use pollux_farm::feeder::Feeder;
use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::message::{Decision, Flow, Fragment, Message};
use pollux_farm::node::Node;
use pollux_farm::results::Results;
use pollux_farm::role::{Address, Builder, Hop, Outbox, Role};
use pollux_farm::scheduler::{Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::{Feeders, Topology};
use pollux_pmd::LatencyHistogram;
use serde::{Deserialize, Serialize};

use super::awaited::Awaited;
use super::counters::{Control, Counts};
use super::run_clock::RunClock;
use super::triggers::Triggers;
use super::work::NodeWork;

/// Packs of events that are triggered in one round at most.
const ROUND: usize = 64;

/// The scheduler, and the source of its triggers.
pub struct SchedulerSeat {
    pub scheduler: Scheduler,
    triggers: Triggers,
    control: Arc<Control>,
    counts: Arc<Counts>,
    clock: RunClock,
    awaited: Awaited,
    /// When events are triggered though members are awaited.
    start: Time,
    /// Events of the run.
    events: u64,
    pack: u16,
    in_flight: usize,
    /// Undecided packs up to which new ones are triggered, where that is not at given times.
    window: u64,
    /// When the first event of each MEP was due.
    due: Box<[Time]>,
    /// MEPs that have a time in `due`.
    noted: u64,
    latency: LatencyHistogram,
    /// MEPs whose latency is recorded.
    seen: u64,
    is_closed: bool,
    /// When triggers began, and when the last event was decided.
    pub began: Option<Time>,
    pub ended: Time,
}

/// What a scheduler's seat is told.
pub struct Order {
    pub triggers: Triggers,
    pub control: Arc<Control>,
    pub counts: Arc<Counts>,
    pub clock: RunClock,
    pub start: Time,
    pub events: u64,
    pub pack: u16,
    pub in_flight: usize,
    pub window: u64,
    pub latency: LatencyHistogram,
}

impl SchedulerSeat {
    pub fn new(scheduler: Scheduler, order: Order) -> Self {
        Self {
            awaited: Awaited::all(scheduler.topology()),
            scheduler,
            triggers: order.triggers,
            control: order.control,
            counts: order.counts,
            clock: order.clock,
            start: order.start,
            events: order.events,
            pack: order.pack,
            in_flight: order.in_flight,
            window: order.window,
            due: vec![Time::ZERO; order.in_flight].into(),
            noted: 0,
            latency: order.latency,
            seen: 0,
            is_closed: false,
            began: None,
            ended: Time::ZERO,
        }
    }

    fn slot(&self, mep: u64) -> usize {
        (mep % self.due.len() as u64) as usize
    }

    fn taken(&self) -> u64 {
        self.scheduler.counters().triggers.taken
    }

    /// Triggers what is due, and notices the end.
    fn trigger(&mut self, now: Time, out: &mut impl Outbox) {
        let Some(began) = self.begin(now) else { return };
        let left = self.events.saturating_sub(self.taken());
        if left == 0 || self.control.enough.is_set() {
            if !self.is_closed {
                self.is_closed = true;
                self.scheduler.close(now, out);
            }
            if self.scheduler.is_idle() {
                self.control.done.stop();
            } else if self.scheduler.decided() == self.scheduler.triggered() {
                self.scheduler.tell_decided(now);
            }
        } else if matches!(self.triggers, Triggers::AsManyAsPossible) {
            self.trigger_most(now, left, out);
        } else {
            self.trigger_due(now, now - began, left, out);
        }
    }

    fn begin(&mut self, now: Time) -> Option<Time> {
        if self.began.is_some() {
            return self.began;
        }
        let enough = self.control.enough.is_set();
        if self.is_awaiting() && now < self.start && !enough {
            return None;
        }
        // Who was not heard is as one that fell silent: events go past it from the first one on.
        for member in self.awaited.members().filter(|_| !enough) {
            self.scheduler.miss(member, now);
        }
        self.began = Some(now);
        self.ended = now;
        self.began
    }

    /// Whether a member that may be heard has not been.
    fn is_awaiting(&self) -> bool {
        self.awaited.left() as u64 > self.control.absent.get()
    }

    /// Triggers packs until one waits for a receive buffer.
    fn trigger_most(&mut self, now: Time, mut left: u64, out: &mut impl Outbox) {
        // The messages of a round have been delivered since its time: triggers are due now.
        let mut due = None;
        for _ in 0..ROUND {
            let undecided = self.scheduler.triggered() - self.scheduler.decided();
            if left == 0 || undecided >= self.window || self.scheduler.pending() > 0 {
                return;
            }
            if self.scheduler.in_flight() >= self.in_flight {
                // No message returns in some policies: feeders would be told after a time-out only.
                self.scheduler.tell_decided(now);
                return;
            }
            let count = u64::from(self.pack).min(left) as u16;
            self.note(*due.get_or_insert_with(|| self.clock.now()));
            let taken = self.scheduler.trigger(Source::Internal, count, now, out);
            left -= u64::from(taken);
        }
    }

    fn trigger_due(&mut self, now: Time, since: Time, mut left: u64, out: &mut impl Outbox) {
        for _ in 0..ROUND * usize::from(self.pack) {
            let Triggers::Timed(next, times) = &mut self.triggers else {
                return;
            };
            if left == 0 || *next > since {
                return;
            }
            // Latency counts from the time of the trigger, not from when the loop saw it.
            let due = now - (since - *next);
            *next = times.next();
            self.note(due);
            let taken = self.scheduler.trigger(Source::Internal, 1, now, out);
            left -= u64::from(taken);
        }
    }

    /// The next trigger is due then.
    fn note(&mut self, due: Time) {
        let mep = self.scheduler.triggered();
        if self.noted <= mep {
            let slot = self.slot(mep);
            self.due[slot] = due;
            self.noted = mep + 1;
        }
    }

    /// All MEPs before this one are decided, as a message has just said. The clock is read for each such
    /// message: a round is as long as events take.
    fn record(&mut self, decided: u64) {
        let now = self.clock.now();
        while self.seen < decided {
            let due = self.due[self.slot(self.seen)];
            self.latency.record((now - due).ps() / 1000);
            self.seen += 1;
        }
        self.ended = now;
    }

    /// Shows counts to readers.
    pub fn show(&self) {
        let (counts, counters) = (&self.counts, self.scheduler.counters());
        let triggers = &counters.triggers;
        counts.triggered.set(triggers.taken);
        counts
            .refused
            .set(triggers.pending_full + triggers.in_flight_full);
        counts.resent.set(counters.flow.resent);
        let awaited = self.awaited.left() as u64;
        let awaited = awaited.saturating_sub(self.control.absent.get());
        counts.awaited.set(self.began.map_or(awaited, |_| 0));
        counts.settled.set(self.scheduler.decided());
        counts.in_flight.set(self.scheduler.in_flight() as u64);
        counts.pending.set(self.scheduler.pending() as u64);
        let timeout = self.scheduler.timeout().ps() / 1_000_000;
        counts.timeout_us.set(timeout);
        let nodes = self.scheduler.topology().nodes();
        let excluded = (0..nodes).filter(|&n| self.scheduler.is_excluded(n as u16));
        let feeders = self.scheduler.topology().feeders() - self.scheduler.members().len();
        counts.excluded.set((excluded.count() + feeders) as u64);
        for (column, free) in (0..).zip(&counts.free) {
            free.set(self.scheduler.free(column) as u64);
        }
    }
}

impl Role for SchedulerSeat {
    type Payload = ();

    fn receive(&mut self, now: Time, message: &Message, (): (), out: &mut impl Outbox) {
        if self.began.is_none() {
            self.awaited.hear(message);
        }
        self.scheduler.receive(now, message, (), out);
        let decided = self.scheduler.decided();
        if self.seen < decided {
            self.record(decided);
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        self.scheduler.poll(now, out);
        self.trigger(now, out);
    }

    fn next_deadline(&self) -> Time {
        self.scheduler.next_deadline()
    }
}

/// A feeder.
pub struct FeederSeat {
    pub feeder: Feeder<Mockup>,
    /// The first event that it does nothing for.
    pub death: Option<u64>,
    pub is_dead: bool,
}

impl FeederSeat {
    /// Dies of one of these events, if it is among them.
    fn see(&mut self, event: u64, count: u16) {
        if let Some(death) = self.death
            && event.saturating_add(count.into()) > death
            && count > 0
        {
            self.is_dead = true;
        }
    }
}

impl Hop for FeederSeat {
    fn pass(&mut self, flow: &mut Flow, out: &mut impl Outbox) -> Option<Address> {
        self.see(flow.event, flow.count);
        if self.is_dead {
            return None;
        }
        self.feeder.pass(flow, out)
    }
}

impl Role for FeederSeat {
    type Payload = ();

    fn receive(&mut self, now: Time, message: &Message, (): (), out: &mut impl Outbox) {
        match message {
            Message::Flow(flow) => self.see(flow.event, flow.count),
            // With credits, nodes ask for fragments.
            Message::Request(request) => self.see(request.event, request.count),
            _ => {}
        }
        if !self.is_dead {
            self.feeder.receive(now, message, (), out);
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        if !self.is_dead {
            self.feeder.poll(now, out);
        }
    }

    fn next_deadline(&self) -> Time {
        if self.is_dead {
            return Time::MAX;
        }
        self.feeder.next_deadline()
    }
}

/// A node.
pub struct NodeSeat<P> {
    pub node: Node<Option<P>, NodeWork>,
    /// The first event that it does nothing for.
    pub death: Option<u64>,
    pub is_dead: bool,
}

impl<P: std::ops::Deref<Target = [u8]>> NodeSeat<P> {
    /// Dies of the event of a fragment, if it is the one.
    #[inline]
    fn see(&mut self, fragment: &Fragment) {
        if let Some(death) = self.death
            && fragment.event.saturating_add(fragment.count.into()) > death
            && !self.is_dead
        {
            self.is_dead = true;
            self.node.work().die();
        }
    }
}

impl<P: std::ops::Deref<Target = [u8]>> Role for NodeSeat<P> {
    type Payload = Option<P>;

    fn receive(&mut self, now: Time, message: &Message, payload: Option<P>, out: &mut impl Outbox) {
        if let Message::Fragment(fragment) = message {
            self.see(fragment);
        }
        if !self.is_dead {
            self.node.receive(now, message, payload, out);
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        if !self.is_dead {
            self.node.poll(now, out);
        }
    }

    fn next_deadline(&self) -> Time {
        if self.is_dead {
            return Time::MAX;
        }
        self.node.next_deadline()
    }
}

impl<P: std::ops::Deref<Target = [u8]>> Builder for NodeSeat<P> {
    #[inline]
    fn receive_all(
        &mut self,
        now: Time,
        fragment: &Fragment,
        feeders: Feeders,
        payloads: impl Iterator<Item = Option<P>>,
        out: &mut impl Outbox,
    ) {
        self.see(fragment);
        if !self.is_dead {
            self.node.receive_all(now, fragment, feeders, payloads, out);
        }
    }
}

/// The result node, and what it hands on.
pub struct ResultSeat {
    pub results: Results,
    counts: Arc<Counts>,
    pub handed: Handed,
}

/// Events by what the result node handed on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Handed {
    /// Events, each once and in order.
    pub decided: u64,
    pub accepted: u64,
    pub incomplete: u64,
    /// Events that came again.
    pub twice: u64,
    /// Events that were not in order.
    pub out_of_order: u64,
    /// Events without the fragment of a feeder, by feeder.
    pub missing: Vec<u64>,
    /// Events by the node that built them.
    pub built_by: Vec<u64>,
    next: u64,
}

impl Handed {
    fn take(&mut self, decision: &Decision) {
        let count = u64::from(decision.count);
        let end = decision.event.saturating_add(count);
        if decision.event != self.next {
            self.out_of_order += count;
            self.twice += self.next.min(end).saturating_sub(decision.event);
        }
        self.next = self.next.max(end);
        self.decided += count;
        self.accepted += u64::from(decision.accepted.count_ones());
        // The descriptor is node + buffer x nodes, of those that the result node has checked.
        let node = decision.descriptor.index() % self.built_by.len().max(1);
        if let Some(built) = self.built_by.get_mut(node) {
            *built += count;
        }
        if decision.missing.is_empty() {
            self.incomplete += count.min(decision.absent.into());
            return;
        }
        self.incomplete += count;
        for (feeder, missing) in (0..).zip(&mut self.missing) {
            *missing += if decision.missing.has(feeder) {
                count
            } else {
                0
            };
        }
    }
}

impl Role for ResultSeat {
    type Payload = ();

    fn receive(&mut self, now: Time, message: &Message, (): (), out: &mut impl Outbox) {
        self.results.receive(now, message, (), out);
        while let Some(decision) = self.results.fetch() {
            self.handed.take(&decision);
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        self.results.poll(now, out);
    }

    fn next_deadline(&self) -> Time {
        self.results.next_deadline()
    }
}

impl ResultSeat {
    pub fn new(results: Results, topology: &Topology, counts: Arc<Counts>) -> Self {
        Self {
            results,
            counts,
            handed: Handed {
                missing: vec![0; topology.feeders()],
                built_by: vec![0; topology.nodes()],
                ..Handed::default()
            },
        }
    }

    /// Shows counts to readers.
    pub fn show(&self) {
        self.counts.decided.set(self.handed.decided);
        self.counts.accepted.set(self.handed.accepted);
        self.counts.incomplete.set(self.handed.incomplete);
    }
}

#[cfg(test)]
mod tests;
