//! The scheduler: gives each event to a free receive buffer, and watches the farm (thesis, III.B
//! and III.F).
//!
//! The next receive buffer is chosen as soon as the one before is used, so that a trigger becomes
//! a message at once (thesis, figure III-9). A copy of each message is kept until it returns and
//! its events are decided; what does not come back in time is sent again, and what an excluded
//! node had is given to others.

mod buffers;
mod columns;
mod config;
mod counters;
mod exclude;
mod flights;
mod registers;
mod ring;
mod timers;
mod triggers;
mod watch;

use std::collections::VecDeque;

pub use columns::{Choice, Columns};
pub use config::{Config, ConfigError, Discipline, MAX_IN_FLIGHT, Mode};
pub use counters::{
    Counters, ExclusionCounts, FeedbackCounts, FlowCounts, MoreCounts, TriggerCounts,
};
pub use registers::{Register, RegisterError};
pub use triggers::Source;
pub use watch::Exclusion;

use crate::message::{Decided, Feedback, Message, More};
use crate::role::{Outbox, Role};
use crate::time::Time;
use crate::topology::{Feeders, Topology};
use buffers::{Buffers, Release};
use flights::{Flights, Phase};
use ring::ReleaseMessage;
use timers::Timer;
use watch::Peer;

/// Why no event leaves the scheduler, though some wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// It is disabled.
    Disabled,
    /// All feeders are excluded.
    NoFeeder,
    /// All nodes are excluded.
    NoNode,
    /// No receive buffer that the discipline grants is free.
    Busy,
}

/// The scheduler.
#[derive(Debug)]
pub struct Scheduler {
    config: Config,
    columns: Columns,
    buffers: Buffers,
    flights: Flights,
    nodes: Box<[Peer]>,
    feeders: Box<[Peer]>,
    results: Peer,
    /// Feeders that take part.
    members: Feeders,
    /// The receive buffer of the next event.
    ready: Option<Choice>,
    /// The first MEP that has never been sent.
    unsent: u64,
    /// MEPs of excluded nodes.
    again: VecDeque<u64>,
    /// MEPs whose second part was asked for.
    second: VecDeque<u64>,
    triggers: triggers::State,
    /// All MEPs before this one are decided.
    decided: u64,
    release: ReleaseMessage,
    watch: Time,
    enabled: bool,
    counters: Counters,
}

impl Scheduler {
    /// A scheduler that is enabled and knows no free buffer. All memory is allocated here.
    ///
    /// # Errors
    /// A configuration that cannot be.
    pub fn new(config: Config, now: Time) -> Result<Self, ConfigError> {
        config.check()?;
        let topology = &config.topology;
        let peers = |n: usize| vec![Peer::new(now); n].into_boxed_slice();
        Ok(Self {
            columns: Columns::new(&config),
            buffers: Buffers::new(topology.descriptors()),
            flights: Flights::new(config.in_flight),
            nodes: peers(topology.nodes()),
            feeders: peers(topology.feeders()),
            results: Peer::new(now),
            members: Feeders::first(topology.feeders()),
            ready: None,
            unsent: 0,
            again: VecDeque::with_capacity(config.in_flight),
            second: VecDeque::with_capacity(config.in_flight),
            triggers: triggers::State::default(),
            decided: 0,
            release: ReleaseMessage::default(),
            watch: now + watch::interval(&config),
            enabled: true,
            counters: Counters::default(),
            config,
        })
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The farm.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.config.topology
    }

    /// Feeders that take part.
    #[must_use]
    pub fn members(&self) -> Feeders {
        self.members
    }

    /// MEPs that wait for a receive buffer, those of excluded nodes with them.
    #[must_use]
    pub fn pending(&self) -> usize {
        (self.flights.next() - self.unsent) as usize + self.again.len()
    }

    /// MEPs that are triggered, and not decided, still in the ring, or kept by feeders that do not
    /// know of the decision yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// All MEPs before this one are decided.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// MEPs that were triggered.
    #[must_use]
    pub fn triggered(&self) -> u64 {
        self.flights.next()
    }

    /// When the first event of a MEP in flight was triggered.
    pub fn triggered_at(&mut self, mep: u64) -> Option<Time> {
        self.flights.get(mep).map(|flight| flight.triggered)
    }

    /// Free receive buffers of a column, the one of the next event included.
    #[must_use]
    pub fn free(&self, column: u8) -> usize {
        let ready = self.ready.is_some_and(|choice| choice.column == column);
        self.columns.queued(column) + usize::from(ready)
    }

    /// Whether nothing is left to do: all events are decided, all messages have returned, and the
    /// feeders know.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flights.len() == 0 && self.triggers.gathered() == 0
    }

    /// Why nothing leaves the scheduler, if that is so and events wait.
    #[must_use]
    pub fn stall(&self) -> Option<Stall> {
        if self.pending() == 0 {
            return None;
        }
        let gone = |peers: &[Peer]| peers.iter().all(|peer| peer.excluded.is_some());
        if !self.enabled {
            Some(Stall::Disabled)
        } else if self.members.is_empty() {
            Some(Stall::NoFeeder)
        } else if gone(&self.nodes) {
            Some(Stall::NoNode)
        } else {
            self.ready.is_none().then_some(Stall::Busy)
        }
    }

    /// Enables or disables the sending of events (thesis, register 1).
    pub fn enable(&mut self, enabled: bool, now: Time, out: &mut impl Outbox) {
        self.enabled = enabled;
        self.serve(now, out);
    }

    /// Sends what can be sent.
    fn serve(&mut self, now: Time, out: &mut impl Outbox) {
        while self.enabled && !self.members.is_empty() {
            self.choose();
            if self.serve_second(now, out) {
                continue;
            }
            let Some(choice) = self.ready else { return };
            let Some(mep) = self.next_waiting() else {
                return;
            };
            self.ready = None;
            self.dispatch(mep, choice, now, out);
        }
        self.choose();
    }

    /// Takes the receive buffer of the next event, if one is free.
    fn choose(&mut self) {
        // The columns may have changed since.
        if let Some(choice) = self.ready
            && !self.columns.may_follow(choice.column)
        {
            self.columns.push_front(choice);
            self.ready = None;
        }
        if self.ready.is_none() {
            self.ready = self.columns.take();
        }
    }

    /// Takes the next MEP that waits for a receive buffer.
    fn next_waiting(&mut self) -> Option<u64> {
        while let Some(mep) = self.again.pop_front() {
            let flight = self.flights.get(mep);
            if flight.is_some_and(|flight| flight.phase == Phase::Waiting) {
                return Some(mep);
            }
        }
        let mep = self.unsent;
        (mep < self.flights.next()).then(|| {
            self.unsent += 1;
            mep
        })
    }

    fn feedback(&mut self, message: &Feedback, now: Time, out: &mut impl Outbox) {
        let counts = &mut self.counters.feedback;
        let Some((node, _)) = self.config.topology.buffer_of(message.descriptor) else {
            counts.out_of_range += 1;
            return;
        };
        if self.config.topology.column_of(node) != Some(message.column) {
            counts.wrong_column += 1;
            return;
        }
        let peer = &mut self.nodes[usize::from(node)];
        if peer.excluded.is_some() {
            counts.excluded += 1;
            return;
        }
        peer.hear(now);
        let release = self
            .buffers
            .release(message.descriptor, message.generation, message.mep);
        match release {
            Release::Registered => counts.registered += 1,
            Release::Finished(_) => counts.released += 1,
            Release::Repeated => counts.repeated += 1,
            Release::Stale => counts.stale += 1,
            Release::Foreign => counts.foreign += 1,
        }
        if let Release::Finished(mep) = release {
            self.finished(mep, now);
        }
        if matches!(release, Release::Registered | Release::Finished(_)) {
            let (column, descriptor) = (message.column, message.descriptor);
            self.columns.push(Choice { column, descriptor });
            self.serve(now, out);
        }
    }

    /// The node of a MEP has finished it, and its decision is awaited.
    fn finished(&mut self, mep: u64, now: Time) {
        let deadline = now + self.config.event_timeout;
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        if matches!(flight.phase, Phase::Ring | Phase::Building) {
            flight.phase = Phase::Processed;
            flight.wants_more = false;
            flight.overdue = 0;
            if !flight.expected {
                self.flights.start(mep, Timer::Event, deadline);
            }
        }
    }

    fn more(&mut self, message: &More, now: Time, out: &mut impl Outbox) {
        if let Some((node, _)) = self.config.topology.buffer_of(message.descriptor)
            && let Some(peer) = self.nodes.get_mut(usize::from(node))
        {
            peer.hear(now);
        }
        let counts = &mut self.counters.more;
        let sent = message.mep < self.unsent;
        let Some(flight) = self.flights.get(message.mep).filter(|_| sent) else {
            if message.mep < self.flights.oldest() {
                counts.repeated += 1;
            } else {
                counts.foreign += 1;
            }
            return;
        };
        if flight.descriptor != message.descriptor || flight.generation != message.generation {
            counts.foreign += 1;
            return;
        }
        let first = flight.part == 0 && !flight.wants_more;
        if !first || !matches!(flight.phase, Phase::Ring | Phase::Building) {
            counts.repeated += 1;
            return;
        }
        flight.wants_more = true;
        counts.taken += 1;
        self.second.push_back(message.mep);
        self.serve(now, out);
    }

    fn decide(&mut self, message: &Decided, now: Time, out: &mut impl Outbox) {
        self.results.hear(now);
        let last = u64::from(message.bits.checked_ilog2().unwrap_or(0));
        let is_sent = message
            .mep
            .checked_add(last)
            .is_some_and(|mep| mep < self.unsent);
        if !is_sent || message.before > self.unsent {
            self.counters.decided_foreign += 1;
            return;
        }
        for mep in self.decided..message.before {
            self.mark_decided(mep);
        }
        for n in (0..=last).filter(|n| message.bits >> n & 1 == 1) {
            self.mark_decided(message.mep + n);
        }
        self.decided = self.decided.max(message.before);
        let next_event = self.flights.next_event();
        let event = (self.flights.get(self.decided)).map_or(next_event, |flight| flight.event);
        self.release.decided(event, now + self.config.ring_timeout);
        self.flights.retire(self.release.told());
        self.serve(now, out);
    }

    fn mark_decided(&mut self, mep: u64) {
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        flight.phase = Phase::Decided;
        flight.wants_more = false;
        if !flight.expected {
            self.flights.stop(mep);
        }
    }

    fn expire(&mut self, timer: Timer, slot: usize, now: Time, out: &mut impl Outbox) {
        let again = now + self.config.event_timeout;
        let heard = self.results.has_spoken(now - self.config.silence);
        let Some(flight) = self.flights.at(slot) else {
            return;
        };
        let (mep, node, phase) = (flight.mep, flight.node, flight.phase);
        match (timer, phase) {
            (Timer::Ring, Phase::Ring) => {
                self.counters.flow.timeouts += 1;
                self.resend(mep, now, out);
            }
            (Timer::Ring, _) => {
                flight.expected = false;
                self.counters.flow.unreturned += 1;
                if phase == Phase::Processed {
                    self.flights.start(mep, Timer::Event, again);
                }
                self.flights.retire(self.release.told());
            }
            (Timer::Event, phase) => {
                // Without acknowledgements, nodes cannot go on either.
                if heard {
                    flight.overdue += 1;
                } else {
                    self.counters.results_silent += 1;
                }
                match (flight.overdue < self.config.tries, phase) {
                    (true, Phase::Processed) => self.flights.start(mep, Timer::Event, again),
                    (true, _) => self.resend(mep, now, out),
                    (false, Phase::Processed) => self.drop_node(node, Exclusion::Undecided),
                    (false, _) => self.drop_node(node, Exclusion::Overdue),
                }
            }
        }
    }
}

impl<P> Role<P> for Scheduler {
    fn receive(&mut self, now: Time, message: &Message, _payload: P, out: &mut impl Outbox) {
        if message.run() != self.config.run {
            self.counters.other_run += 1;
            return;
        }
        match message {
            Message::Flow(flow) => self.returned(flow, now, out),
            Message::Feedback(feedback) => self.feedback(feedback, now, out),
            Message::More(more) => self.more(more, now, out),
            Message::Decided(decided) => self.decide(decided, now, out),
            Message::Alive(alive) => self.heard(alive.from, now, out),
            Message::Trigger(trigger) => self.triggered_by_port(trigger, now, out),
            Message::Fragment(_)
            | Message::Decision(_)
            | Message::Ack(_)
            | Message::Withdraw(_) => {
                self.counters.unexpected += 1;
            }
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        self.close_due(now, out);
        while let Some((timer, slot)) = self.flights.timers.expired(now) {
            self.expire(timer, slot, now, out);
        }
        self.tell_released(now, out);
        self.look_after(now);
        self.serve(now, out);
    }

    fn next_deadline(&self) -> Time {
        self.flights
            .timers
            .next_deadline()
            .min(self.triggers.deadline())
            .min(self.release.deadline())
            .min(self.watch)
    }
}
