//! A farm of roles, and what happens in it.

use super::bus::{Bus, Next};
use super::busy::Busy;
use super::plan::{FarmError, Plan, Triggers};
use super::post::{Post, Table};
use super::roles::{IN_FLIGHT, Place, Roles};
use crate::message::{Fragment, Message};
use crate::role::Address;
use crate::scheduler::Source;
use crate::sim::engine::Engine;
use crate::sim::statistics::{Progress, Results, Times};
use crate::sim::torus::{Delivered, Step, Torus};
use crate::time::Time;
use crate::topology::Feeders;

/// Time between the registrations of two buffers of a node, so that those of other nodes come
/// between them.
const REGISTER: u64 = 1_000_000;
/// A message from node to scheduler: 1.46 us for one node between (thesis, IV.D).
const MESSAGE: Time = Time::from_ns(1460);
#[derive(Clone, Copy, Debug, Hash)]
enum Event {
    Trigger,
    Poll(Place),
    Message(u32),
    Attempt(u8),
    Burst(u8),
    Torus(Step),
}

/// An event that is built.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    born: Time,
    sent: Time,
    fragments: u16,
    /// Feeders that have returned the message, where each gets its own.
    returned: u16,
}

/// A running farm.
pub struct Farm {
    plan: Plan,
    engine: Engine<Event>,
    torus: Torus,
    roles: Roles,
    buses: Vec<Bus>,
    /// Fragment of each feeder that is on its bus.
    sending: Vec<Option<(u16, u32)>>,
    messages: Table<(Address, Message)>,
    /// Fragments in the torus, with the packets that have not landed.
    fragments: Table<(Fragment, u32)>,
    post: Post,
    open: Vec<Open>,
    triggered: u64,
    built: u64,
    lost: u64,
    busy: Busy,
    /// When the measurement of rates began, events built by then, and times of the buses.
    start: Option<(Time, u64, Vec<Time>)>,
    latency: Times,
    system: Times,
}

impl Farm {
    /// A farm at time zero.
    ///
    /// # Errors
    /// Numbers that no farm has.
    pub fn new(plan: Plan, seed: u64) -> Result<Self, FarmError> {
        let feeders = plan.geometry.feeders();
        Ok(Self {
            engine: Engine::new(seed),
            torus: Torus::new(plan.geometry),
            roles: Roles::new(&plan, seed)?,
            buses: (0..feeders).map(|_| Bus::new(plan.gaps)).collect(),
            sending: vec![None; feeders.into()],
            messages: Table::new(),
            fragments: Table::new(),
            post: Post::default(),
            open: vec![Open::default(); IN_FLIGHT],
            triggered: 0,
            built: 0,
            lost: 0,
            busy: Busy::new(plan.geometry.nodes),
            start: None,
            latency: Times::default(),
            system: Times::default(),
            plan,
        })
    }

    /// Runs until all events are built, or until `watch`, which is called now and then, returns
    /// false.
    pub fn run(mut self, mut watch: impl FnMut(Progress) -> bool) -> Results {
        for place in self.roles.places() {
            self.engine.after(Time::ZERO, Event::Poll(place));
        }
        let registered = Time::from_ps(REGISTER * (u64::from(self.plan.buffers) + 20));
        self.engine.after(registered, Event::Trigger);
        let mut stopped = false;
        let mut end = None;
        while self.built + self.lost < self.plan.events {
            let Some(event) = self.engine.next_event() else {
                break;
            };
            self.handle(event);
            if end.is_none() && self.triggered == self.plan.events {
                end = Some(self.measured());
            }
            if self.engine.handled().is_multiple_of(Progress::EVERY) {
                stopped = !watch(Progress {
                    events: self.built + self.lost,
                    of: self.plan.events,
                    simulated: self.engine.now(),
                });
                if stopped {
                    break;
                }
            }
        }
        let measured = end.unwrap_or_else(|| self.measured());
        Results {
            built: self.built,
            unfinished: self.plan.events - self.built - self.lost,
            lost: self.lost,
            retries: Some(self.retries()),
            latency_us: self.latency.latency(),
            system_us: Some(self.system.mean_ns() / 1e3),
            hash: self.engine.digest(),
            stopped,
            over_time: self.engine.is_over_time(),
            ..measured
        }
    }

    fn retries(&self) -> u64 {
        self.torus.retries() + self.buses.iter().map(Bus::retries).sum::<u64>()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Trigger => self.trigger(),
            Event::Poll(place) => self.poll(place),
            Event::Message(number) => {
                if let Some((to, message)) = self.messages.take(number) {
                    self.receive(to, &message);
                }
            }
            Event::Attempt(feeder) => self.attempt(feeder),
            Event::Burst(feeder) => self.burst(feeder),
            Event::Torus(step) => {
                if let Some(Delivered(packet)) = self.torus.handle(step) {
                    self.landed(packet.tag);
                }
                self.torus_steps();
            }
        }
    }

    fn torus_steps(&mut self) {
        for (delay, step) in self.torus.scheduled() {
            self.engine.after(delay, Event::Torus(step));
        }
    }

    fn trigger(&mut self) {
        match self.plan.triggers {
            Triggers::Regular(interval) => {
                self.trigger_one();
                if self.triggered < self.plan.events {
                    self.engine.after(interval, Event::Trigger);
                }
            }
            Triggers::Max => {
                for _ in 0..64 + self.roles.feeders.len() {
                    self.trigger_one();
                }
            }
        }
    }

    fn trigger_one(&mut self) {
        if self.triggered == self.plan.events {
            return;
        }
        self.triggered += 1;
        let now = self.engine.now();
        let mep = self.roles.scheduler.triggered() as usize % IN_FLIGHT;
        let open = Open {
            born: now,
            ..Open::default()
        };
        let before = std::mem::replace(&mut self.open[mep], open);
        let taken = self
            .roles
            .scheduler
            .trigger(Source::Internal, 1, now, &mut self.post);
        if taken == 0 {
            self.lost += 1;
            self.open[mep] = before;
        }
        self.called(Place::Scheduler);
    }

    fn poll(&mut self, place: Place) {
        let now = self.engine.now();
        self.roles.poll(place, now, &mut self.post);
        self.called(place);
    }

    fn receive(&mut self, to: Address, message: &Message) {
        let now = self.engine.now();
        if to == Address::Scheduler && !self.reaches_scheduler(message) {
            return;
        }
        let place = self.roles.receive(to, message, now, &mut self.post);
        self.called(place);
        if let (Address::Scheduler, Message::Flow(flow)) = (to, message)
            && flow.count > 0
            && matches!(self.plan.triggers, Triggers::Max)
        {
            self.trigger_one();
        }
    }

    /// Measures messages to the scheduler. False: it waits for the other feeders to return theirs.
    fn reaches_scheduler(&mut self, message: &Message) -> bool {
        let now = self.engine.now();
        match message {
            Message::Feedback(feedback) if feedback.generation > 0 => {
                let open = &mut self.open[feedback.mep as usize % IN_FLIGHT];
                let node = feedback.descriptor.0 % self.plan.geometry.nodes;
                let sent = std::mem::take(&mut open.sent);
                if sent > Time::ZERO && self.plan.probe.is_none_or(|probe| probe == node) {
                    self.system.record(now - sent);
                }
                true
            }
            Message::Flow(flow) if !self.plan.ring && flow.count > 0 => {
                let open = &mut self.open[flow.mep as usize % IN_FLIGHT];
                open.returned += 1;
                let all = usize::from(open.returned) == flow.members.len();
                if all {
                    open.returned = 0;
                }
                all
            }
            _ => true,
        }
    }

    /// Sends what a role has sent, and notes when it wants to be called.
    fn called(&mut self, place: Place) {
        let mut messages = std::mem::take(&mut self.post.messages);
        for (to, message) in messages.drain(..) {
            self.carry(place, to, message);
        }
        self.post.messages = messages;
        if let (Some((node, fragment)), Place::Feeder(id)) = (self.post.transfer.take(), place) {
            let feeder = usize::from(id);
            let bytes = self.roles.feeders[feeder].store().size(fragment.event);
            self.buses[feeder].begin(bytes);
            let number = self.fragments.add((fragment, Bus::bursts(bytes)));
            self.sending[feeder] = Some((node, number));
            self.attempt(id);
        }
        let now = self.engine.now();
        if let Place::Node(id) = place {
            let busy = self.roles.nodes[usize::from(id)].work().busy();
            self.busy.set(now, id, busy);
        }
        if let Some(deadline) = self.roles.wants_poll(place) {
            self.engine.after(deadline - now, Event::Poll(place));
        }
    }

    /// Brings a message on its way.
    fn carry(&mut self, from: Place, to: Address, message: Message) {
        let now = self.engine.now();
        let feeders = self.roles.feeders.len() as u64;
        let hops = |n: u64| Time::from_ps(self.plan.hop.ps() * n);
        let delay = match (from, to) {
            (Place::Scheduler, Address::Feeder(id)) => hops(u64::from(id) + 1),
            (Place::Feeder(id), Address::Feeder(next)) => hops(u64::from(next - id)),
            (Place::Feeder(id), Address::Scheduler) if matches!(message, Message::Flow(_)) => {
                hops(feeders - u64::from(id))
            }
            (_, Address::Scheduler) => MESSAGE + self.registration(&message),
            _ => MESSAGE,
        };
        if let (Place::Scheduler, Message::Flow(flow)) = (from, &message)
            && flow.count > 0
        {
            let open = &mut self.open[flow.mep as usize % IN_FLIGHT];
            if open.sent == Time::ZERO {
                open.sent = now;
            }
            if !self.plan.ring {
                for id in (0..feeders as u8).filter(|&id| flow.pending.has(id)) {
                    let mut flow = *flow;
                    flow.pending = Feeders::only(id);
                    let number = self
                        .messages
                        .add((Address::Feeder(id), Message::Flow(flow)));
                    self.engine.after(self.plan.hop, Event::Message(number));
                }
                return;
            }
        }
        let number = self.messages.add((to, message));
        self.engine.after(delay, Event::Message(number));
    }

    /// Delay of a feedback that registers a buffer.
    fn registration(&self, message: &Message) -> Time {
        match message {
            Message::Feedback(feedback) if self.plan.ring && feedback.generation == 0 => {
                let buffer = feedback.descriptor.0 / self.plan.geometry.nodes;
                Time::from_ps(REGISTER * u64::from(buffer))
            }
            _ => Time::ZERO,
        }
    }

    /// The DMA engine of a feeder tries to write a burst.
    fn attempt(&mut self, id: u8) {
        let now = self.engine.now();
        let bus = &mut self.buses[usize::from(id)];
        let accepted = !bus.is_taken(now) && self.torus.reserve(id.into());
        match bus.attempt(accepted, now) {
            Next::Burst(time) => self.engine.after(time, Event::Burst(id)),
            Next::Retry(time) => self.engine.after(time, Event::Attempt(id)),
        }
    }

    fn burst(&mut self, id: u8) {
        let feeder = usize::from(id);
        let Some((node, number)) = self.sending[feeder] else {
            return;
        };
        self.torus.send(id.into(), node, number);
        self.torus_steps();
        if self.buses[feeder].end_burst() {
            self.sending[feeder] = None;
            self.roles.feeders[feeder].transferred(&mut self.post);
            self.called(Place::Feeder(id));
        } else {
            self.attempt(id);
        }
    }

    /// A packet is in the memory of its node.
    fn landed(&mut self, number: u32) {
        let Some((fragment, left)) = self.fragments.get(number) else {
            return;
        };
        *left -= 1;
        if *left > 0 {
            return;
        }
        let fragment = *fragment;
        self.fragments.take(number);
        let now = self.engine.now();
        let open = &mut self.open[fragment.mep as usize % IN_FLIGHT];
        open.fragments += 1;
        if usize::from(open.fragments) == self.roles.feeders.len() {
            self.latency.record(now - open.born);
            self.built += 1;
            if self.built == self.plan.events / 10 {
                let used = self.buses.iter().map(Bus::busy).collect();
                self.busy.start(now);
                self.start = Some((now, self.built, used));
            }
        }
        let node = fragment.descriptor.0 % self.plan.geometry.nodes;
        self.receive(Address::Node(node), &Message::Fragment(fragment));
    }

    /// Rates since the measurement began.
    fn measured(&mut self) -> Results {
        let now = self.engine.now();
        let Some((start, built, used)) = self.start.take() else {
            return Results::default();
        };
        let ps = ((now - start).ps() as f64).max(1.0);
        let rate = (self.built - built) as f64 * 1e12 / ps;
        let used = self
            .buses
            .iter()
            .zip(used)
            .map(|(bus, before)| bus.busy() - before);
        let used: f64 = used.map(|time| time.ps() as f64 / ps).sum();
        let used = used / self.buses.len().max(1) as f64;
        Results {
            rate_hz: rate,
            utilisation: used,
            gbps: rate * f64::from(self.plan.bytes) * 8e-9 * self.roles.feeders.len() as f64,
            bus_idle: Some(1.0 - used),
            busy_mean: Some(self.busy.sum(now) / ps),
            ..Results::default()
        }
    }
}
