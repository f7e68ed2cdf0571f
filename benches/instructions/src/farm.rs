//! A farm in one loop: scheduler, flow control ring, feeders, nodes and result node, over a loopback
//! port.

use anyhow::{Context, Result};
use pollux_farm::carrier::{Carrier, ETHERNET, Ethernet, EthernetConfig, Payload, Routes};
use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::feeder::{self, Feeder};
use pollux_farm::members::Members;
use pollux_farm::node::{self, Built, Node, Step};
use pollux_farm::results::{self, Results};
use pollux_farm::scheduler::{self, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::Topology;
use pollux_farm::wire::payload::{self, padded, table_len};
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::{PortConfig, Registry, StartedPort, Tally};

use crate::loops::{Loop, Round};

/// Packs of events that are under way at a time.
const PACKS: u16 = 32;
/// Bytes of a fragment.
const FRAGMENT: u32 = 128;
const FEEDERS: usize = 24;
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
            (|| farm(1)) as fn() -> Result<Round>,
        ),
        row(
            "farm_event_32",
            "the same, 32 events a transfer",
            32,
            || farm(32),
        ),
    ]
}

/// Compares all fragments with the mock-up words.
fn work(_now: Time, built: &Built<'_, Option<Payload>>) -> Step {
    let store = Mockup::new(FRAGMENT, 0);
    let mut right = 0;
    for payload in built.fragments.iter().flatten().flatten() {
        let events = payload::events(built.count, payload);
        for (event, data) in (built.event..).zip(events) {
            right += usize::from(data.is_some_and(|data| store.check(event, data)));
        }
    }
    let all = usize::from(built.count) * FEEDERS;
    Step::Decide(if right == all { u64::MAX } else { 0 })
}

/// A round triggers packs of events, and has them built and accepted.
fn farm(pack: u16) -> Result<Round> {
    let slot = table_len(pack) + padded(FRAGMENT).unwrap_or(0) * u32::from(pack);
    let topology = Topology::regular(FEEDERS, 6, 12, 10)?;
    let mut farm = members(&topology, pack, slot)?;
    let room = (ETHERNET + 64 + slot as usize).max(1536);
    let pool = Mempool::new(PoolConfig {
        buffers: 8192,
        data_room: room.next_multiple_of(64),
        ..PoolConfig::default()
    })?;
    let port = Registry::builtin().open("loopback")?;
    let config = PortConfig::new(pool.clone()).ring(4096);
    let StartedPort { port, rx, tx } = port.configure(config)?.start()?;
    let config = EthernetConfig {
        routes: Routes::new(&topology),
        owners: Vec::new(),
        within: Some(0),
        max_frame: room,
        crc: false,
        damage: None,
        tally: Tally::new(),
    };
    let mut carrier = Ethernet::new(config, rx, tx, pool.cache(256)?)?;
    // All nodes register their buffers.
    let now = Time::ZERO;
    for _ in 0..8 {
        step(&mut farm, now, &mut carrier);
    }
    let mut accepted = 0;
    Ok(Box::new(move || {
        // The port lives as long as the loop.
        let _port = &port;
        for _ in 0..PACKS {
            if let Some(scheduler) = &mut farm.scheduler {
                scheduler.trigger(Source::Internal, pack, now, &mut carrier);
            }
        }
        for _ in 0..2 * FEEDERS {
            step(&mut farm, now, &mut carrier);
            let decided = farm.scheduler.as_ref().map(Scheduler::decided);
            let is_over = decided == farm.scheduler.as_ref().map(Scheduler::triggered);
            if is_over {
                break;
            }
        }
        let before = accepted;
        accepted = farm.results.as_ref().map_or(0, |r| r.counters().accepted);
        accepted - before == u64::from(PACKS * pack)
    }))
}

/// A round of the loop.
fn step(farm: &mut Farm, now: Time, carrier: &mut Ethernet) {
    while let Some(arrival) = carrier.next() {
        farm.deliver(now, arrival, carrier);
        if let Some(results) = &mut farm.results {
            while results.fetch().is_some() {}
        }
    }
    farm.poll(now, carrier);
    carrier.flush();
}

fn members(topology: &Topology, pack: u16, slot: u32) -> Result<Farm> {
    let (now, beat) = (Time::ZERO, Time::from_ns(500_000_000));
    let feeder = |id| {
        let config = feeder::Config {
            run: RUN,
            id,
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
    let scheduler = scheduler::Config {
        pack,
        in_flight: IN_FLIGHT,
        pending: IN_FLIGHT,
        ..scheduler::Config::new(RUN, topology.clone())
    };
    let results = results::Config {
        run: RUN,
        in_flight: IN_FLIGHT,
        beat,
    };
    Ok(Members {
        scheduler: Some(Scheduler::new(scheduler, now)?),
        results: Some(Results::new(results, topology, now)?),
        first_feeder: 0,
        feeders: (0..FEEDERS as u8).map(feeder).collect::<Result<_>>()?,
        first_node: 0,
        nodes: (0..12).map(node).collect::<Result<_>>()?,
        due: Time::ZERO,
    })
}
