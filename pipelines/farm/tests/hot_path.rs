//! The roles neither allocate nor enter the kernel after their start, with lost messages and an
//! excluded node too.

#![allow(clippy::expect_used)]

use std::collections::VecDeque;

use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::feeder::{self, Feeder};
use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::Message;
use pollux_farm::node::{self, Built, Node, Step};
use pollux_farm::results::{self, Results};
use pollux_farm::role::{Address, Outbox, Role, Transfer};
use pollux_farm::scheduler::{Config, Policy, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::Topology;
use pollux_farm::wire;
use pollux_pmd_testkit::guard::listen;

const RUN: u32 = 1;
const MOST: usize = 1 << 14;
const BEAT: Time = Time::from_ns(100_000);
const EVENTS: u64 = 3000;

/// Messages under way; some are lost.
struct Carrier {
    messages: VecDeque<(Address, Message)>,
    frame: Box<[u8]>,
    sent: u64,
}

impl Outbox for Carrier {
    fn send(&mut self, to: Address, message: &Message) {
        self.sent += 1;
        let read = wire::decode(&wire::encode(message));
        if self.sent % 1000 != 500 && self.messages.len() < MOST {
            self.messages.push_back((to, read.expect("a message")));
        }
    }

    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        outgoing.write(true, &mut self.frame).expect("room");
        self.send(Address::Node(node), &Message::Fragment(outgoing.fragment()));
        Transfer::Done
    }
}

/// Accepts every third event, and asks for the second part of some.
fn work(_now: Time, built: &Built<'_, ()>) -> Step {
    if built.mep % 50 == 7 && !built.has_second {
        return Step::More;
    }
    Step::Decide(u64::from(built.mep.is_multiple_of(3)))
}

type Work = fn(Time, &Built<'_, ()>) -> Step;

struct Farm {
    scheduler: Scheduler,
    feeders: Vec<Feeder<Mockup>>,
    nodes: Vec<Node<(), Work>>,
    results: Results,
    carrier: Carrier,
    decided: u64,
    now: Time,
}

impl Farm {
    fn new(policy: Policy) -> Self {
        let topology = Topology::regular(6, 3, 6, 4).expect("a farm");
        let in_flight = 128;
        let now = Time::ZERO;
        let config = Config {
            policy,
            in_flight,
            pending: 64,
            loops: 2,
            ring_timeout: BEAT,
            event_timeout: BEAT,
            ..Config::new(RUN, topology.clone())
        };
        let feeder = |id| {
            let config = feeder::Config {
                run: RUN,
                id,
                slot: 2048,
                in_flight,
                bypass_above: 256,
                beat: BEAT,
            };
            Feeder::new(config, &topology, Mockup::new(128, 64), now).expect("a feeder")
        };
        let node = |id| {
            let config = node::Config {
                run: RUN,
                id,
                slot: 2048,
                workers: 1,
                beat: BEAT,
            };
            Node::new(config, &topology, work as Work, now).expect("a node")
        };
        let results = results::Config {
            run: RUN,
            in_flight,
            beat: BEAT,
        };
        Self {
            feeders: (0..6).map(feeder).collect(),
            nodes: (0..6).map(node).collect(),
            results: Results::new(results, &topology, now).expect("a result node"),
            scheduler: Scheduler::new(config, now).expect("a scheduler"),
            carrier: Carrier {
                messages: VecDeque::with_capacity(MOST),
                frame: vec![0; 4096].into(),
                sent: 0,
            },
            decided: 0,
            now,
        }
    }

    fn step(&mut self) {
        let (now, out) = (self.now, &mut self.carrier);
        self.scheduler.poll(now, out);
        self.results.poll(now, out);
        for feeder in &mut self.feeders {
            feeder.poll(now, out);
        }
        for node in &mut self.nodes {
            node.poll(now, out);
        }
        while let Some((to, message)) = out.messages.pop_front() {
            match to {
                Address::Scheduler => self.scheduler.receive(now, &message, (), out),
                Address::Results => self.results.receive(now, &message, (), out),
                Address::Feeder(n) => {
                    self.feeders[usize::from(n)].receive(now, &message, (), out);
                }
                Address::Node(n) => self.nodes[usize::from(n)].receive(now, &message, (), out),
            }
            while self.results.fetch().is_some() {
                self.decided += 1;
            }
        }
        self.now = now + Time::from_ns(1000);
    }

    fn run(&mut self) {
        for event in 0..EVENTS {
            self.step();
            let (now, out) = (self.now, &mut self.carrier);
            match event {
                1000 => assert!(self.scheduler.exclude_node(3, now, out)),
                2000 => assert!(self.scheduler.readmit_node(3, now)),
                _ => {}
            }
            self.scheduler.trigger(Source::Internal, 1, now, out);
        }
        let steps = (0..100_000).take_while(|_| {
            self.step();
            !self.scheduler.is_idle()
        });
        assert!(steps.count() < 100_000);
    }
}

#[test]
fn nothing_but_work_after_the_start() {
    for policy in [
        Policy::Ring,
        Policy::Credits,
        Policy::Slots { barrier: true },
        Policy::Slots { barrier: false },
        Policy::None,
    ] {
        let (farm, noise) = listen(|ear| {
            let mut farm = Farm::new(policy);
            ear.during(|| farm.run());
            farm
        });
        noise.assert_none();
        let counters = farm.scheduler.counters();
        assert_eq!(farm.decided, counters.triggers.taken, "{policy:?}");
        assert!(farm.decided > EVENTS / 2, "{policy:?}: {}", farm.decided);
        assert!(counters.flow.resent > 0 && counters.more.taken > 0);
    }
}
