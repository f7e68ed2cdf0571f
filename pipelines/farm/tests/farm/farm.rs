//! A whole farm in memory: the roles, the network, and what must hold at the end of a run.

use std::collections::{BTreeMap, BTreeSet};

use pollux_farm::feeder::store::Store;
use pollux_farm::feeder::{self, Feeder};
use pollux_farm::fragments::Fragments;
use pollux_farm::message::{Decision, Message};
use pollux_farm::node::{self, Built, Node, Step, Work};
use pollux_farm::results::{self, Results};
use pollux_farm::role::{Address, Role};
use pollux_farm::scheduler::{Config, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::Feeders;
use pollux_farm::wire::payload;
use pollux_farm::{trigger, wire};

use super::network::{Faults, Network, Port};

pub(crate) const BEAT: Time = Time::from_ns(50_000);
const SLOT: u32 = 16_384;

/// Spreads the bits of a number.
fn hash(n: u64) -> u64 {
    let n = (n ^ n >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    n ^ n >> 29
}

/// The data of a feeder of an event.
pub(crate) fn data(event: u64, feeder: u8, part: u8) -> Vec<u8> {
    let seed = hash(event << 8 ^ u64::from(feeder) << 1 ^ u64::from(part));
    let length = if event % 100 == 7 { 640 } else { 128 } - seed % 17;
    (0..length).map(|n| hash(seed + n) as u8).collect()
}

/// The decision on an event.
fn is_accepted(event: u64) -> bool {
    hash(event).is_multiple_of(10)
}

/// Checks each event against its data, and takes its time.
pub(crate) struct Check {
    feeders: u8,
    /// Time of an event.
    pub(crate) time: Time,
    /// Events of which the second part is asked for: one in so many.
    pub(crate) second: u64,
    /// Feeders that may lack data of an event.
    pub(crate) may_lack: Feeders,
    pub(crate) built: Vec<u64>,
    pub(crate) seconds: u64,
}

impl Check {
    fn check(&self, part: u8, built: &Built<'_, Vec<u8>>) {
        let slots = if part == 0 {
            built.fragments
        } else {
            built.second
        };
        for feeder in 0..self.feeders {
            let Some(payload) = &slots[usize::from(feeder)] else {
                let lacks = part == 1 || self.may_lack.has(feeder);
                assert!(lacks || built.missing.has(feeder), "fragment {feeder}");
                continue;
            };
            for (event, found) in (built.event..).zip(payload::events(built.count, payload)) {
                let lacks = found.is_none() && self.may_lack.has(feeder);
                let right = data(event, feeder, part);
                assert!(
                    lacks || found == Some(&right[..]),
                    "event {event}, {feeder}"
                );
            }
        }
    }
}

impl Work<Vec<u8>> for Check {
    fn work(&mut self, now: Time, built: &Built<'_, Vec<u8>>) -> Step {
        let wants = self.second > 0 && built.mep.is_multiple_of(self.second);
        if built.calls == 0 {
            self.check(0, built);
            self.built.push(built.mep);
            if self.time > Time::ZERO {
                return Step::Wait(now + self.time);
            }
        }
        if wants && !built.has_second {
            return Step::More;
        }
        if built.has_second {
            self.check(1, built);
            self.seconds += 1;
        }
        let bit = |n: u16| u64::from(is_accepted(built.event + u64::from(n))) << n;
        Step::Decide((0..built.count).map(bit).sum())
    }
}

/// Changes messages on the way.
pub(crate) type Change = Box<dyn FnMut(&mut Message)>;

pub(crate) struct Farm {
    pub(crate) scheduler: Scheduler,
    pub(crate) feeders: Vec<Feeder<Store>>,
    pub(crate) nodes: Vec<Node<Vec<u8>, Check>>,
    pub(crate) results: Results,
    pub(crate) network: Network,
    pub(crate) dead: BTreeSet<Address>,
    /// Members that stand still, until when, and what has arrived for them.
    pub(crate) asleep: BTreeMap<Address, (Time, Vec<Vec<u8>>)>,
    pub(crate) decisions: Vec<Decision>,
    pub(crate) now: Time,
    pub(crate) triggered: u64,
    pub(crate) damaged: u64,
    /// From trigger to decision, in picoseconds.
    pub(crate) latency: Vec<u64>,
    /// Members that lie.
    pub(crate) change: Option<Change>,
    /// Feeder whose data come later than the trigger.
    pub(crate) late: Option<u8>,
}

impl Farm {
    pub(crate) fn new(config: Config, seed: u64, faults: Faults) -> Self {
        let now = Time::ZERO;
        let (run, in_flight) = (config.run, config.in_flight);
        let topology = config.topology.clone();
        let events = in_flight * usize::from(config.pack);
        let feeder = |id| {
            let config = feeder::Config {
                run,
                id,
                slot: SLOT,
                in_flight,
                bypass_above: 512,
                beat: BEAT,
            };
            Feeder::new(config, &topology, Store::new(events, 640), now).expect("a feeder")
        };
        let node = |id| {
            let config = node::Config {
                run,
                id,
                slot: SLOT,
                workers: 1,
                beat: BEAT,
            };
            let check = Check {
                feeders: topology.feeders() as u8,
                time: Time::from_ns(3000),
                second: 0,
                may_lack: Feeders::NONE,
                built: Vec::new(),
                seconds: 0,
            };
            Node::new(config, &topology, check, now).expect("a node")
        };
        let results = results::Config {
            run,
            in_flight,
            beat: BEAT,
        };
        Self {
            feeders: (0..topology.feeders() as u8).map(feeder).collect(),
            nodes: (0..topology.nodes() as u16).map(node).collect(),
            results: Results::new(results, &topology, now).expect("a result node"),
            scheduler: Scheduler::new(config, now).expect("a scheduler"),
            network: Network::new(seed, faults),
            dead: BTreeSet::new(),
            asleep: BTreeMap::new(),
            decisions: Vec::new(),
            now,
            triggered: 0,
            damaged: 0,
            latency: Vec::new(),
            change: None,
            late: None,
        }
    }

    /// Sets how many fragments each node may have asked for.
    pub(crate) fn set_credits(&mut self, credits: usize) {
        let nodes = self.nodes.drain(..);
        let nodes = nodes.map(|node| node.with_credits(credits).expect("credits"));
        self.nodes = nodes.collect();
    }

    /// The addresses of all members that live.
    fn members(&self) -> Vec<Address> {
        let feeders = (0..self.feeders.len()).map(|n| Address::Feeder(n as u8));
        let nodes = (0..self.nodes.len()).map(|n| Address::Node(n as u16));
        let ends = [Address::Scheduler, Address::Results];
        let all = ends.into_iter().chain(feeders).chain(nodes);
        all.filter(|member| !self.dead.contains(member)).collect()
    }

    fn deadline(&self, member: Address) -> Time {
        match member {
            Address::Scheduler => self.scheduler.next_deadline(),
            Address::Results => self.results.next_deadline(),
            Address::Feeder(n) => self.feeders[usize::from(n)].next_deadline(),
            Address::Node(n) => self.nodes[usize::from(n)].next_deadline(),
        }
    }

    fn poll(&mut self, from: Address) {
        let (now, network) = (self.now, &mut self.network);
        let mut port = Port { network, now, from };
        let out = &mut port;
        match from {
            Address::Scheduler => self.scheduler.poll(now, out),
            Address::Results => self.results.poll(now, out),
            Address::Feeder(n) => self.feeders[usize::from(n)].poll(now, out),
            Address::Node(n) => self.nodes[usize::from(n)].poll(now, out),
        }
    }

    /// Delivers a frame as a carrier does: damaged ones are counted and dropped.
    fn deliver(&mut self, from: Address, frame: &[u8]) {
        if self.dead.contains(&from) {
            return;
        }
        let Ok(mut message) = wire::decode(frame) else {
            self.damaged += 1;
            return;
        };
        let payload = &frame[wire::HEADER..];
        if let Message::Fragment(fragment) = &message
            && payload::check(fragment, payload).is_err()
        {
            self.damaged += 1;
            return;
        }
        if let Some(change) = &mut self.change {
            change(&mut message);
        }
        if let (Address::Results, Message::Decision(decision)) = (from, &message)
            && let Some(triggered) = self.scheduler.triggered_at(decision.mep)
        {
            self.latency.push((self.now - triggered).ps());
        }
        self.receive(from, &message, payload);
    }

    pub(crate) fn receive(&mut self, from: Address, message: &Message, payload: &[u8]) {
        let (now, network) = (self.now, &mut self.network);
        let mut port = Port { network, now, from };
        let out = &mut port;
        match from {
            Address::Scheduler => self.scheduler.receive(now, message, (), out),
            Address::Results => self.results.receive(now, message, (), out),
            Address::Feeder(n) => self.feeders[usize::from(n)].receive(now, message, (), out),
            Address::Node(n) => {
                self.nodes[usize::from(n)].receive(now, message, payload.to_vec(), out);
            }
        }
        self.decisions
            .extend(std::iter::from_fn(|| self.results.fetch()));
    }

    /// A member stands still for a time: what arrives for it waits.
    pub(crate) fn sleep(&mut self, member: Address, time: Time) {
        let asleep = self.asleep.entry(member).or_default();
        asleep.0 = asleep.0.max(self.now + time);
    }

    /// Members whose time is over read what has arrived.
    fn wake(&mut self) {
        let now = self.now;
        let over = |(&member, asleep): (&Address, &(Time, _))| (asleep.0 <= now).then_some(member);
        let woken: Vec<Address> = self.asleep.iter().filter_map(over).collect();
        for member in woken {
            for frame in self.asleep.remove(&member).unwrap_or_default().1 {
                self.deliver(member, &frame);
            }
        }
    }

    /// Runs until a time.
    pub(crate) fn run_until(&mut self, end: Time) {
        loop {
            let members = self.members();
            let runs = |member: &&Address| !self.asleep.contains_key(*member);
            let due = members.iter().filter(runs).map(|&m| self.deadline(m)).min();
            let woken = self.asleep.values().map(|asleep| asleep.0).min();
            let next = due.unwrap_or(Time::MAX).min(self.network.next_time());
            let next = next.min(woken.unwrap_or(Time::MAX));
            if next > end {
                self.now = self.now.max(end);
                return;
            }
            self.now = self.now.max(next);
            while let Some(feeder) = self.network.transferred(self.now) {
                let from = Address::Feeder(feeder);
                if !self.dead.contains(&from) {
                    let (now, network) = (self.now, &mut self.network);
                    let mut port = Port { network, now, from };
                    self.feeders[usize::from(feeder)].transferred(&mut port);
                }
            }
            self.wake();
            while let Some(arrival) = self.network.arrived(self.now) {
                match self.asleep.get_mut(&arrival.to) {
                    Some((_, arrived)) => arrived.push(arrival.frame),
                    None => self.deliver(arrival.to, &arrival.frame),
                }
            }
            for member in members {
                if !self.asleep.contains_key(&member) && self.deadline(member) <= self.now {
                    self.poll(member);
                    assert!(
                        self.deadline(member) > self.now,
                        "{member:?} asks again at once"
                    );
                }
            }
        }
    }

    /// Triggers an event, whose fragments the feeders get first.
    pub(crate) fn trigger(&mut self) -> bool {
        let event = self.triggered;
        let (now, from) = (self.now, Address::Scheduler);
        let network = &mut self.network;
        let mut port = Port { network, now, from };
        for (feeder, id) in self.feeders.iter_mut().zip(0..) {
            let event = match self.late {
                Some(late) if late == id => event.saturating_sub(1),
                _ => event,
            };
            for part in 0..2 {
                // An event whose trigger was refused is stored already.
                let _ = feeder.store_mut().push(event, part, &data(event, id, part));
            }
        }
        let out = &mut port;
        let taken = self.scheduler.trigger(Source::Internal, 1, now, out) == 1;
        self.triggered += u64::from(taken);
        taken
    }

    /// Triggers events at a mean rate, and returns after the last one.
    pub(crate) fn triggers(&mut self, events: u64, rate: f64, seed: u64) {
        let start = self.now;
        let source = trigger::Poisson::new(rate, seed).expect("a rate");
        for time in source.take(200_000) {
            self.run_until(start + time);
            self.trigger();
            if self.triggered == events {
                return;
            }
        }
        panic!("no event goes on: {:?}", self.scheduler.counters());
    }

    /// Runs until all is done.
    pub(crate) fn finish(&mut self) {
        self.command(|scheduler, now, out| scheduler.close(now, out));
        for _ in 0..20_000 {
            if self.scheduler.is_idle() && self.in_use() == 0 {
                return;
            }
            self.run_until(self.now + Time::from_ns(10_000));
        }
        panic!(
            "no end: {} of {} decided, {:?}, {:?}",
            self.decisions.len(),
            self.scheduler.triggered(),
            self.scheduler.stall(),
            self.scheduler.counters()
        );
    }

    /// Commands the scheduler.
    pub(crate) fn command(&mut self, command: impl FnOnce(&mut Scheduler, Time, &mut Port<'_>)) {
        let (now, from) = (self.now, Address::Scheduler);
        let network = &mut self.network;
        let mut port = Port { network, now, from };
        command(&mut self.scheduler, now, &mut port);
    }

    fn in_use(&self) -> usize {
        let lives =
            |n: &u16| !self.dead.contains(&Address::Node(*n)) && !self.scheduler.is_excluded(*n);
        let nodes = (0..self.nodes.len() as u16).filter(lives);
        nodes.map(|n| self.nodes[usize::from(n)].in_use()).sum()
    }

    /// What holds at the end of every run: each event decided once, in order and rightly, and no
    /// message left.
    pub(crate) fn check(&mut self) {
        let mut next = 0;
        for decision in &self.decisions {
            assert_eq!(decision.event, next, "in order and each once");
            for n in 0..u64::from(decision.count) {
                let accepted = decision.accepted >> n & 1 == 1;
                assert_eq!(accepted, is_accepted(next + n), "event {next} + {n}");
            }
            next += u64::from(decision.count);
        }
        assert_eq!(next, self.triggered, "nothing is lost");
        assert_eq!(self.scheduler.in_flight(), 0);
        assert_eq!(self.scheduler.copies(), 0);
        assert_eq!(self.scheduler.pending(), 0);
        assert_eq!(self.scheduler.counters().columns_repeated, 0);
        assert_eq!(self.results.counters().gaps, 0);
        for (node, id) in self.nodes.iter().zip(0..) {
            let lives = !self.dead.contains(&Address::Node(id)) && !self.scheduler.is_excluded(id);
            assert!(!lives || node.requested() == 0, "requests of node {id}");
        }
        for (feeder, id) in self.feeders.iter().zip(0..) {
            if !self.dead.contains(&Address::Feeder(id)) {
                assert_eq!(feeder.queued(), 0, "feeder {id}");
                let last = self.triggered.saturating_sub(1);
                assert_eq!(feeder.store().length(last, 0), None, "feeder {id} keeps it");
            }
        }
    }

    /// How often each MEP was built.
    pub(crate) fn builds(&self) -> Vec<u32> {
        let mut builds = vec![0; self.scheduler.triggered() as usize];
        for node in &self.nodes {
            for &mep in &node.work().built {
                builds[mep as usize] += 1;
            }
        }
        builds
    }

    /// Feeders that a decision lacks, by MEP.
    pub(crate) fn missing(&self) -> impl Iterator<Item = Feeders> {
        self.decisions.iter().map(|decision| decision.missing)
    }
}
