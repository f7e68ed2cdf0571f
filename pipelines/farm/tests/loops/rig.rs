//! A farm in two loops, with a queue from each to each.

use pollux_farm::carrier::{Carrier, Damage, Ethernet, EthernetConfig, Payload, Routes};
use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::feeder::{self, Feeder};
use pollux_farm::members::{Members, Numbers};
use pollux_farm::node::{self, Built, Node, Step, Work};
use pollux_farm::results::{self, Results};
use pollux_farm::role::Address;
use pollux_farm::scheduler::{Config, Policy, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::Topology;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::{Port, PortConfig, Registry, RxQueue, Started, StartedPort, Tally, TxQueue};

const RUN: u32 = 1;
const FEEDERS: usize = 6;
const NODES: u16 = 6;
const LOOPS: usize = 2;
const IN_FLIGHT: usize = 64;
const BEAT: Time = Time::from_ns(200_000);
const SLOT: u32 = 256;

/// Data of a feeder for each event.
const DATA: u32 = 64;

/// How the messages go.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub policy: Policy,
    /// Members of one loop hand their messages over.
    pub hand_over: bool,
    /// Messages are damaged with this probability.
    pub damage: f64,
}

/// Compares the fragments of an event.
#[derive(Debug)]
pub struct Comparing {
    store: Mockup,
    /// Fragments that are as they should be.
    pub right: u64,
    /// Others, and fragments that count as here without a payload.
    pub wrong: u64,
}

impl Work<Option<Payload>> for Comparing {
    fn work(&mut self, _: Time, built: &Built<'_, Option<Payload>>) -> Step {
        for (feeder, fragment) in (0..).zip(built.fragments) {
            let payload = fragment.iter().flatten().next();
            let compared = payload.map(|data| self.store.compare(built.event, built.count, data));
            match compared {
                Some(compared) if compared.wrong == 0 && compared.checked > 0 => self.right += 1,
                None if built.missing.has(feeder) => {}
                _ => self.wrong += 1,
            }
        }
        Step::Decide(1)
    }
}

type All = Members<Scheduler, Results, Feeder<Mockup>, Node<Option<Payload>, Comparing>>;

/// A loop.
pub struct Loop<C> {
    pub members: All,
    pub carrier: C,
}

/// A farm.
pub struct Farm<C> {
    pub loops: Vec<Loop<C>>,
    pub decided: u64,
    /// Messages that no member took.
    pub refused: u64,
    triggered: u64,
    now: Time,
    /// It outlives its queues.
    _port: Port<Started>,
}

fn topology() -> Topology {
    Topology::regular(FEEDERS, 3, NODES.into(), 4).expect("a farm")
}

/// The members of a loop.
fn members(number: usize, policy: Policy) -> All {
    let (topology, now) = (topology(), Time::ZERO);
    let scheduler = Config {
        policy,
        in_flight: IN_FLIGHT,
        pending: 32,
        ring_timeout: BEAT,
        event_timeout: BEAT,
        ..Config::new(RUN, topology.clone())
    };
    let results = results::Config {
        run: RUN,
        in_flight: IN_FLIGHT,
        beat: BEAT,
    };
    let store = Mockup::new(DATA, 0);
    let feeder = |id: usize| {
        let config = feeder::Config {
            run: RUN,
            id: id as u8,
            slot: SLOT,
            in_flight: IN_FLIGHT,
            bypass_above: SLOT,
            beat: BEAT,
        };
        Feeder::new(config, &topology, store, now).expect("a feeder")
    };
    let node = |id| {
        let config = node::Config {
            run: RUN,
            id,
            slot: SLOT,
            workers: 1,
            beat: BEAT,
        };
        let work = Comparing {
            store,
            right: 0,
            wrong: 0,
        };
        Node::new(config, &topology, work, now).expect("a node")
    };
    let first_feeder = number * FEEDERS / LOOPS;
    let node_numbers = Numbers::every(number as u16..NODES, LOOPS as u16);
    Members {
        scheduler: (number == 0).then(|| Scheduler::new(scheduler, now).expect("a scheduler")),
        results: (number + 1 == LOOPS)
            .then(|| Results::new(results, &topology, now).expect("a result node")),
        first_feeder,
        feeders: (first_feeder..first_feeder + FEEDERS / LOOPS)
            .map(feeder)
            .collect(),
        node_numbers,
        nodes: node_numbers.iter().map(node).collect(),
        due: now,
    }
}

/// The carrier of a loop.
fn carrier(
    (number, way): (usize, Way),
    (rx, tx): (Vec<RxQueue>, Vec<TxQueue>),
    pool: &Mempool,
) -> Ethernet {
    let mut routes = Routes::new(&topology());
    let mut set = |member, number: usize| routes.set(member, number as u16).expect("a member");
    set(Address::Results, LOOPS - 1);
    (0..FEEDERS).for_each(|id| set(Address::Feeder(id as u8), id / (FEEDERS / LOOPS)));
    (0..NODES).for_each(|id| set(Address::Node(id), usize::from(id) % LOOPS));
    let config = EthernetConfig {
        routes,
        owners: Vec::new(),
        within: way.hand_over.then_some(number as u16),
        max_frame: 1024,
        crc: way.damage > 0.0,
        damage: Some(Damage::new(way.damage, number as u64).expect("a probability")),
        tally: Tally::new(),
    };
    let cache = pool.cache(64).expect("a cache");
    Ethernet::new(config, rx, tx, cache).expect("a carrier")
}

impl<C: Carrier<Payload = Payload>> Farm<C> {
    /// A farm, with something around each carrier.
    pub fn new(way: Way, around: impl Fn(Ethernet) -> C) -> Self {
        let config = PoolConfig {
            buffers: 2048,
            ..PoolConfig::default()
        };
        let pool = Mempool::new(config).expect("a pool");
        let port = Registry::builtin().open("loopback").expect("a port");
        let queues = (LOOPS * LOOPS) as u16;
        let config = PortConfig::new(pool.clone())
            .rx_queues(queues)
            .tx_queues(queues);
        let port = port.configure(config).expect("a configuration");
        let StartedPort { port, rx, tx } = port.start().expect("a start");
        let mut queues: Vec<_> = (0..LOOPS).map(|_| (Vec::new(), Vec::new())).collect();
        // Queue `from * LOOPS + to` leads from one loop to another.
        for (number, (rx, tx)) in rx.into_iter().zip(tx).enumerate() {
            queues[number % LOOPS].0.push(rx);
            queues[number / LOOPS].1.push(tx);
        }
        let loops = queues.into_iter().enumerate();
        let loops = loops.map(|(number, queues)| Loop {
            members: members(number, way.policy),
            carrier: around(carrier((number, way), queues, &pool)),
        });
        Self {
            loops: loops.collect(),
            decided: 0,
            refused: 0,
            triggered: 0,
            now: Time::ZERO,
            _port: port,
        }
    }

    /// An iteration of each loop.
    fn step(&mut self) {
        let now = self.now;
        for Loop { members, carrier } in &mut self.loops {
            while let Some(arrival) = carrier.next() {
                let is_taken = members.deliver(now, arrival, carrier);
                self.refused += u64::from(!is_taken);
            }
            members.poll(now, carrier);
            carrier.flush();
            let mut results = members.results.as_mut();
            while results.as_deref_mut().and_then(Results::fetch).is_some() {
                self.decided += 1;
            }
        }
        self.now = now + Time::from_ns(1000);
    }

    /// Builds so many events.
    pub fn run(&mut self, events: u64) {
        let end = self.triggered + events;
        for _ in 0..2_000_000 {
            self.step();
            let now = self.now;
            let Loop { members, carrier } = &mut self.loops[0];
            let Some(scheduler) = &mut members.scheduler else {
                return;
            };
            if self.triggered < end && scheduler.in_flight() < IN_FLIGHT {
                carrier.set_sender(Address::Scheduler);
                let taken = scheduler.trigger(Source::Internal, 1, now, carrier);
                self.triggered += u64::from(taken);
            } else if self.triggered == end && self.decided == end && scheduler.is_idle() {
                return;
            }
        }
        panic!("{} of {end} events are decided", self.decided);
    }

    /// The nodes of all loops.
    pub fn nodes(&self) -> impl Iterator<Item = &Node<Option<Payload>, Comparing>> + Clone {
        self.loops.iter().flat_map(|of| &of.members.nodes)
    }

    /// What must hold: all events were built of all fragments, and each fragment is right.
    pub fn check(&self) {
        assert_eq!(self.decided, self.triggered);
        let counters = self.nodes().map(Node::counters);
        let built: u64 = counters.clone().map(|counters| counters.built).sum();
        assert_eq!(
            counters.map(|counters| counters.complete).sum::<u64>(),
            built
        );
        assert!(built >= self.decided);
        let right: u64 = self.nodes().map(|node| node.work().right).sum();
        assert_eq!(right, built * FEEDERS as u64);
        assert!(self.nodes().all(|node| node.work().wrong == 0));
    }
}
