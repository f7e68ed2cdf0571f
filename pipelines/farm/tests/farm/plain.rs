//! Runs without faults.

use pollux_farm::scheduler::{Config, Discipline, Mode, Policy};
use pollux_farm::topology::{Feeders, Topology};

use super::farm::Farm;
use super::network::Faults;

pub(crate) fn config(feeders: usize, columns: usize, nodes: usize, buffers: usize) -> Config {
    let topology = Topology::regular(feeders, columns, nodes, buffers).expect("a farm");
    Config {
        in_flight: 256,
        pending: 128,
        ..Config::new(7, topology)
    }
}

/// Runs without faults: each MEP is built once, and the counts of the feeders are equal.
fn run(config: Config, events: u64, rate: f64) -> Farm {
    let mut farm = Farm::new(config, 1, Faults::default());
    farm.triggers(events, rate, 2);
    farm.finish();
    farm.check();
    assert!(farm.builds().iter().all(|&builds| builds == 1));
    assert!(farm.missing().all(Feeders::is_empty));
    let counters = *farm.scheduler.counters();
    assert_eq!(counters.flow.sent, counters.flow.returned);
    assert_eq!(counters.flow.resent, 0);
    for feeder in &farm.feeders {
        let counts = feeder.counters();
        assert_eq!(counts.transfers, farm.scheduler.triggered());
        assert_eq!(counts.events, events);
        assert_eq!((counts.absent, counts.oversize), (0, 0));
    }
    farm
}

#[test]
fn each_event_is_built_once() {
    for mode in [Mode::Skip, Mode::Wait] {
        let farm = run(
            Config {
                mode,
                ..config(5, 6, 12, 4)
            },
            2000,
            1e6,
        );
        assert_eq!(farm.scheduler.counters().dispatched, 2000);
    }
}

#[test]
fn one_node_is_a_farm() {
    run(config(1, 1, 1, 1), 200, 1e5);
}

#[test]
fn the_largest_ring_works() {
    run(config(64, 64, 64, 2), 200, 1e5);
}

#[test]
fn packed_events_are_built_once() {
    let farm = run(
        Config {
            pack: 32,
            ..config(4, 6, 12, 4)
        },
        5000,
        1e7,
    );
    assert_eq!(farm.scheduler.triggered(), 5000_u64.div_ceil(32));
    assert_eq!(farm.results.counters().events, 5000);
}

#[test]
fn every_discipline_serves_every_event() {
    for discipline in [
        Discipline::Weights([1, 2, 3, 1, 1, 1].into()),
        Discipline::QueueLength,
    ] {
        let config = Config {
            discipline,
            partition_of: vec![0, 0, 0, 1, 1, 1],
            ..config(3, 6, 12, 4)
        };
        run(config, 1000, 1e6);
    }
}

#[test]
fn without_flow_control_all_feeders_transfer_at_once() {
    let config = Config {
        policy: Policy::None,
        ..config(5, 6, 12, 4)
    };
    let mut farm = Farm::new(config, 1, Faults::default());
    farm.triggers(2000, 1e6, 2);
    farm.finish();
    farm.check();
    assert!(farm.builds().iter().all(|&builds| builds == 1));
    let flow = farm.scheduler.counters().flow;
    assert_eq!((flow.sent, flow.returned), (2000, 5 * 2000));
    // A ring of five feeders takes five hops; at once, it takes one.
    let latency = |farm: &Farm| farm.latency.iter().sum::<u64>() / farm.latency.len() as u64;
    let ring = run(self::config(5, 6, 12, 4), 2000, 1e6);
    assert!(latency(&ring) > latency(&farm) + 3_000_000);
}

#[test]
fn overload_is_refused_and_counted() {
    let farm = run(
        Config {
            in_flight: 64,
            pending: 16,
            ..config(3, 2, 2, 1)
        },
        500,
        1e7,
    );
    let triggers = farm.scheduler.counters().triggers;
    assert_eq!(triggers.taken, 500);
    assert!(triggers.pending_full > 0);
}
