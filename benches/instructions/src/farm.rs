//! A farm in one loop, and in two: scheduler, flow control ring, feeders, nodes and result node, over a
//! loopback port.

use std::ops::Range;

use anyhow::{Context, Result};
use pollux_farm::carrier::{Carrier, ETHERNET, Ethernet, EthernetConfig, Payload, Routes};
use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::feeder::{self, Feeder};
use pollux_farm::members::{Members, Numbers};
use pollux_farm::node::{self, Built, Node, Step};
use pollux_farm::results::{self, Results};
use pollux_farm::role::Address;
use pollux_farm::scheduler::{self, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::Topology;
use pollux_farm::wire::payload::{padded, table_len};
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::{PortConfig, Registry, StartedPort, Tally};

use crate::loops::{Loop, Round};

/// Packs of events that are under way at a time.
const PACKS: u16 = 32;
/// Bytes of a fragment.
const FRAGMENT: u32 = 128;
const FEEDERS: usize = 24;
const NODES: usize = 12;
const RUN: u32 = 1;
const IN_FLIGHT: usize = 512;

type Work = fn(Time, &Built<'_, Option<Payload>>) -> Step;
type Farm = Members<Scheduler, Results, Feeder<Mockup>, Node<Option<Payload>, Work>>;

pub(crate) fn all() -> Vec<Loop> {
    let row = |name, element, pack, make| Loop {
        name,
        element,
        elements: u64::from(PACKS * pack),
        rounds: 64,
        make,
    };
    vec![
        row(
            "farm_event",
            "event of 24 fragments of 128 B built in one loop",
            1,
            (|| farm(1, 1)) as fn() -> Result<Round>,
        ),
        row(
            "farm_event_32",
            "the same, 32 events a transfer",
            32,
            || farm(32, 1),
        ),
        row(
            "farm_event_loops",
            "event of 24 fragments of 128 B built in two loops",
            1,
            || farm(1, 2),
        ),
        row(
            "farm_event_32_loops",
            "the same, 32 events a transfer",
            32,
            || farm(32, 2),
        ),
    ]
}

/// Compares all fragments with the mock-up words.
fn work(_now: Time, built: &Built<'_, Option<Payload>>) -> Step {
    let store = Mockup::new(FRAGMENT, 0);
    let mut right = 0;
    for payload in built.fragments.iter().flatten().flatten() {
        let compared = store.compare(built.event, built.count, payload);
        right += compared.checked - compared.wrong;
    }
    let all = u64::from(built.count) * FEEDERS as u64;
    Step::Decide(if right == all { u64::MAX } else { 0 })
}

/// A loop: its members, and the carrier of their messages.
struct Station {
    farm: Farm,
    carrier: Ethernet,
}

impl Station {
    /// A round of the loop.
    fn step(&mut self, now: Time) {
        let Self { farm, carrier } = self;
        while let Some(arrival) = carrier.next() {
            farm.deliver(now, arrival, carrier);
            if let Some(results) = &mut farm.results {
                while results.fetch().is_some() {}
            }
        }
        farm.poll(now, carrier);
        carrier.flush();
    }
}

/// A round triggers packs of events, and has them built and accepted, in loops that are polled in turn.
fn farm(pack: u16, loops: usize) -> Result<Round> {
    let slot = table_len(pack) + padded(FRAGMENT).unwrap_or(0) * u32::from(pack);
    let topology = Topology::regular(FEEDERS, 6, NODES, 10)?;
    let room = (ETHERNET + 64 + slot as usize).max(2496);
    let pool = Mempool::new(PoolConfig {
        buffers: 8192,
        data_room: room.next_multiple_of(64),
        ..PoolConfig::default()
    })?;
    let queues = (loops * loops) as u16;
    let config = PortConfig::new(pool.clone())
        .rx_queues(queues)
        .tx_queues(queues)
        .ring(4096);
    let port = Registry::builtin().open("loopback")?;
    let StartedPort { port, rx, tx } = port.configure(config)?.start()?;
    // Queue `from * loops + to` leads from one loop to another.
    let mut lines: Vec<_> = (0..loops).map(|_| (Vec::new(), Vec::new())).collect();
    for (number, (rx, tx)) in rx.into_iter().zip(tx).enumerate() {
        lines[number % loops].0.push(rx);
        lines[number / loops].1.push(tx);
    }
    let mut stations = Vec::new();
    for (number, (rx, tx)) in lines.into_iter().enumerate() {
        let config = EthernetConfig {
            routes: routes(&topology, loops)?,
            owners: Vec::new(),
            within: Some(number as u16),
            max_frame: room,
            crc: false,
            damage: None,
            tally: Tally::new(),
        };
        stations.push(Station {
            farm: members(&topology, pack, slot, number, loops)?,
            carrier: Ethernet::new(config, rx, tx, pool.cache(256)?)?,
        });
    }
    // All nodes register their buffers.
    let now = Time::ZERO;
    for _ in 0..8 {
        for station in &mut stations {
            station.step(now);
        }
    }
    let mut accepted = 0;
    Ok(Box::new(move || {
        // The port lives as long as the loops.
        let _port = &port;
        let Station { farm, carrier } = &mut stations[0];
        for _ in 0..PACKS {
            if let Some(scheduler) = &mut farm.scheduler {
                scheduler.trigger(Source::Internal, pack, now, carrier);
            }
        }
        for _ in 0..2 * FEEDERS {
            for station in &mut stations {
                station.step(now);
            }
            let scheduler = stations[0].farm.scheduler.as_ref();
            let is_over = scheduler.is_none_or(|all| all.decided() == all.triggered());
            if is_over {
                break;
            }
        }
        let before = accepted;
        let results = stations
            .iter()
            .find_map(|station| station.farm.results.as_ref());
        accepted = results.map_or(0, |results| results.counters().accepted);
        accepted - before == u64::from(PACKS * pack)
    }))
}

/// The nodes of a loop: in turn.
fn nodes(number: usize, loops: usize) -> Numbers {
    Numbers::every(number as u16..NODES as u16, loops as u16)
}

/// The feeders of a loop.
fn part(of: usize, number: usize, loops: usize) -> Range<usize> {
    of * number / loops..of * (number + 1) / loops
}

/// Each loop is a way.
fn routes(topology: &Topology, loops: usize) -> Result<Routes> {
    let mut routes = Routes::new(topology);
    routes.set(Address::Results, loops as u16 - 1)?;
    for number in 0..loops {
        for feeder in part(FEEDERS, number, loops) {
            routes.set(Address::Feeder(feeder as u8), number as u16)?;
        }
        for node in nodes(number, loops).iter() {
            routes.set(Address::Node(node), number as u16)?;
        }
    }
    Ok(routes)
}

fn members(topology: &Topology, pack: u16, slot: u32, number: usize, loops: usize) -> Result<Farm> {
    let (now, beat) = (Time::ZERO, Time::from_ns(500_000_000));
    let feeder = |id: usize| {
        let config = feeder::Config {
            run: RUN,
            id: id as u8,
            slot,
            in_flight: IN_FLIGHT,
            bypass_above: slot,
            beat,
        };
        Feeder::new(config, topology, Mockup::new(FRAGMENT, 0), now).context("a feeder")
    };
    let node = |id| {
        let config = node::Config {
            run: RUN,
            id,
            slot,
            workers: 1,
            beat,
        };
        Node::new(config, topology, work as Work, now).context("a node")
    };
    let scheduler = || {
        let config = scheduler::Config {
            pack,
            in_flight: IN_FLIGHT,
            pending: IN_FLIGHT,
            ..scheduler::Config::new(RUN, topology.clone())
        };
        Scheduler::new(config, now)
    };
    let results = || {
        let config = results::Config {
            run: RUN,
            in_flight: IN_FLIGHT,
            beat,
        };
        Results::new(config, topology, now)
    };
    let (feeders, numbers) = (part(FEEDERS, number, loops), nodes(number, loops));
    Ok(Members {
        scheduler: (number == 0).then(scheduler).transpose()?,
        results: (number + 1 == loops).then(results).transpose()?,
        first_feeder: feeders.start,
        feeders: feeders.map(feeder).collect::<Result<_>>()?,
        node_numbers: numbers,
        nodes: numbers.iter().map(node).collect::<Result<_>>()?,
        due: Time::ZERO,
    })
}
