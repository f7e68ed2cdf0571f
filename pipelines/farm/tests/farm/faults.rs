//! Runs with faults: lost, damaged and repeated messages, dead nodes and feeders.

use pollux_farm::role::Address;
use pollux_farm::scheduler::Config;
use pollux_farm::time::Time;
use pollux_farm::topology::Feeders;

use super::farm::Farm;
use super::network::Faults;
use super::plain::config;

/// Time-outs that fit a network of microseconds.
pub(crate) fn quick(config: Config) -> Config {
    Config {
        ring_timeout: Time::from_ns(150_000),
        event_timeout: Time::from_ns(150_000),
        silence: Time::from_ns(1_000_000),
        tries: 12,
        ..config
    }
}

const EVENTS: u64 = 1500;
const RATE: f64 = 5e5;

fn run(config: Config, seed: u64, faults: Faults) -> Farm {
    let mut farm = Farm::new(config, seed, faults);
    farm.triggers(EVENTS, RATE, seed);
    farm.finish();
    farm.check();
    blames_none(&farm);
    farm
}

/// No member said what it should not.
pub(crate) fn blames_none(farm: &Farm) {
    let counters = farm.scheduler.counters();
    assert_eq!(counters.flow.errors, 0);
    let feedback = counters.feedback;
    assert_eq!((feedback.foreign, feedback.wrong_column), (0, 0));
    assert_eq!((feedback.out_of_range, counters.more.foreign), (0, 0));
    assert_eq!((counters.decided_foreign, counters.unexpected), (0, 0));
    for node in &farm.nodes {
        let counts = node.counters();
        assert_eq!((counts.misrouted, counts.disagree), (0, 0));
        assert_eq!((counts.oversize, counts.unexpected), (0, 0));
    }
    for feeder in &farm.feeders {
        let counts = feeder.counters();
        assert_eq!((counts.out_of_range, counts.unexpected), (0, 0));
        assert_eq!((counts.not_pending, counts.queue_full), (0, 0));
    }
}

/// Nothing was excluded, each MEP was built once and whole.
fn is_whole(farm: &Farm) {
    assert!(farm.builds().iter().all(|&builds| builds == 1));
    assert!(farm.missing().all(Feeders::is_empty));
    assert_eq!(farm.scheduler.counters().exclusions.reassigned, 0);
}

#[test]
fn lost_messages_are_sent_again() {
    for seed in 0..4 {
        let lost = 0.01;
        let farm = run(
            quick(config(5, 6, 12, 4)),
            seed,
            Faults {
                lost,
                ..Faults::default()
            },
        );
        assert!(farm.network.spoiled > 100 && farm.scheduler.counters().flow.resent > 0);
        is_whole(&farm);
    }
}

#[test]
fn damaged_messages_are_found_and_sent_again() {
    for seed in 0..4 {
        let damaged = 0.01;
        let farm = run(
            quick(config(5, 6, 12, 4)),
            seed,
            Faults {
                damaged,
                ..Faults::default()
            },
        );
        assert!(farm.network.spoiled > 100);
        assert_eq!(farm.network.spoiled, farm.damaged);
        is_whole(&farm);
    }
}

#[test]
fn repeated_messages_count_once() {
    for seed in 0..4 {
        let repeated = 0.2;
        let farm = run(
            quick(config(5, 6, 12, 4)),
            seed,
            Faults {
                repeated,
                ..Faults::default()
            },
        );
        is_whole(&farm);
    }
}

#[test]
fn all_faults_at_once_leave_the_same_events() {
    for seed in 0..6 {
        let faults = Faults {
            lost: 0.005,
            damaged: 0.005,
            repeated: 0.02,
        };
        let config = Config {
            pack: 4,
            loops: 3,
            ..quick(config(7, 6, 12, 4))
        };
        let mut farm = Farm::new(config, seed, faults);
        farm.network.slow = true;
        for node in &mut farm.nodes {
            node.work_mut().second = 9;
        }
        farm.triggers(EVENTS, RATE, seed);
        farm.finish();
        farm.check();
        is_whole(&farm);
    }
}

#[test]
fn events_of_a_dead_node_go_to_others() {
    for seed in 0..6 {
        let mut farm = Farm::new(quick(config(5, 3, 9, 4)), seed, Faults::default());
        farm.triggers(EVENTS / 3, RATE, seed);
        farm.dead.insert(Address::Node(4));
        farm.triggers(EVENTS, RATE, seed);
        farm.finish();
        farm.check();
        assert!(farm.missing().all(Feeders::is_empty));
        let exclusions = farm.scheduler.counters().exclusions;
        assert_eq!(exclusions.silent_nodes + exclusions.overdue_nodes, 1);
        assert!(farm.scheduler.is_excluded(4));
        assert!(exclusions.reassigned > 0);
    }
}

#[test]
fn a_whole_column_may_die() {
    let mut farm = Farm::new(quick(config(5, 3, 6, 4)), 1, Faults::default());
    farm.triggers(EVENTS / 3, RATE, 1);
    farm.dead.extend([1, 4].map(Address::Node));
    farm.triggers(EVENTS, RATE, 1);
    farm.finish();
    farm.check();
}

#[test]
fn a_dead_feeder_leaves_the_ring() {
    for (seed, dead) in [(1, 0), (2, 3), (3, 4)] {
        let mut farm = Farm::new(quick(config(5, 6, 12, 4)), seed, Faults::default());
        farm.triggers(EVENTS / 3, RATE, seed);
        let before = farm.triggered;
        farm.dead.insert(Address::Feeder(dead));
        farm.triggers(EVENTS, RATE, seed);
        farm.finish();
        farm.check();
        let lacks = Feeders::only(dead);
        assert!(farm.missing().all(|m| m.is_empty() || m == lacks));
        // What it transferred before it died is there, in the order of the events.
        let missing: Vec<bool> = farm.missing().map(|m| !m.is_empty()).collect();
        let first = missing.iter().position(|&m| m).expect("it is missing");
        assert!(first as u64 <= before);
        assert!(missing[before as usize..].iter().all(|&m| m));
        // It served the events in order: each that lacks it follows all that do not.
        let transfers = farm.feeders[usize::from(dead)].counters().transfers;
        let with = missing.iter().filter(|&&m| !m).count() as u64;
        assert!(with <= transfers, "{with} of {transfers}");
        assert!(transfers - with <= 48, "what was under way alone");
        assert_eq!(farm.scheduler.counters().exclusions.silent_feeders, 1);
        assert_eq!(farm.scheduler.counters().exclusions.reassigned, 0);
    }
}

#[test]
fn a_node_is_excluded_and_readmitted_in_the_run() {
    let mut farm = Farm::new(quick(config(5, 3, 9, 4)), 1, Faults::default());
    farm.triggers(300, RATE, 1);
    farm.command(|scheduler, now, out| {
        assert!(scheduler.exclude_node(2, now, out));
        assert!(!scheduler.exclude_node(2, now, out));
    });
    let excluded_at = farm.scheduler.events_of(2);
    farm.triggers(600, RATE, 2);
    assert_eq!(farm.scheduler.events_of(2), excluded_at);
    farm.command(|scheduler, now, _| assert!(scheduler.readmit_node(2, now)));
    farm.triggers(EVENTS, RATE, 3);
    farm.finish();
    farm.check();
    assert!(farm.scheduler.events_of(2) > excluded_at + 50);
}

#[test]
fn a_feeder_is_excluded_and_readmitted_in_the_run() {
    let mut farm = Farm::new(quick(config(5, 3, 9, 4)), 1, Faults::default());
    farm.triggers(300, RATE, 1);
    farm.command(|scheduler, _, _| assert!(scheduler.exclude_feeder(1)));
    // Its store was full before it was readmitted.
    for node in &mut farm.nodes {
        node.work_mut().may_lack = Feeders::only(1);
    }
    farm.triggers(600, RATE, 2);
    farm.command(|scheduler, now, out| assert!(scheduler.readmit_feeder(1, now, out)));
    farm.triggers(EVENTS, RATE, 3);
    farm.finish();
    farm.check();
    let missing = farm.missing().filter(|m| !m.is_empty()).count();
    assert!((250..=350).contains(&missing), "{missing}");
}

#[test]
fn busy_feeders_are_bypassed() {
    for loops in [0, 2] {
        let config = Config {
            loops,
            ..quick(config(5, 6, 12, 4))
        };
        let mut farm = Farm::new(config, 3, Faults::default());
        farm.network.slow = true;
        farm.triggers(EVENTS, 1e6, 3);
        farm.finish();
        farm.check();
        is_whole(&farm);
        let bypassed: u64 = farm.feeders.iter().map(|f| f.counters().bypassed).sum();
        assert_eq!(bypassed > 0, loops > 0, "{bypassed}");
        assert_eq!(farm.scheduler.counters().flow.loops > 0, loops > 0);
    }
}

#[test]
fn nodes_ask_for_second_parts() {
    let config = Config {
        second: Feeders(0b01101),
        ..quick(config(5, 6, 12, 4))
    };
    let mut farm = Farm::new(config, 3, Faults::default());
    for node in &mut farm.nodes {
        node.work_mut().second = 10;
    }
    farm.triggers(EVENTS, RATE, 3);
    farm.finish();
    farm.check();
    blames_none(&farm);
    is_whole(&farm);
    let seconds: u64 = farm.nodes.iter().map(|node| node.work().seconds).sum();
    assert_eq!(seconds, EVENTS / 10);
    assert_eq!(farm.scheduler.counters().more.taken, EVENTS / 10);
}

#[test]
fn a_suspended_node_delays_its_events_alone() {
    let mut farm = Farm::new(quick(config(5, 6, 12, 10)), 3, Faults::default());
    farm.nodes[3].work_mut().time = Time::from_ns(100_000);
    farm.triggers(EVENTS, RATE, 3);
    farm.finish();
    farm.check();
    blames_none(&farm);
    is_whole(&farm);
    let slow = farm.scheduler.events_of(3);
    let other = farm.scheduler.events_of(4);
    assert!(slow < other, "{slow} and {other}");
}

#[test]
fn members_that_stood_still_return() {
    let mut abandoned = 0;
    let nodes = (3..12).map(|seed| (seed, Address::Node(4)));
    for (seed, member) in nodes.chain([(2, Address::Feeder(2))]) {
        let mut farm = Farm::new(quick(config(5, 3, 9, 4)), seed, Faults::default());
        if let Address::Feeder(feeder) = member {
            for node in &mut farm.nodes {
                node.work_mut().may_lack = Feeders::only(feeder);
            }
        }
        farm.triggers(300, RATE, seed);
        farm.dead.insert(member);
        farm.triggers(900, RATE, seed);
        farm.run_until(farm.now + Time::from_ns(2_000_000));
        farm.dead.clear();
        farm.run_until(farm.now + Time::from_ns(200_000));
        let before = farm.scheduler.events_of(4);
        farm.triggers(EVENTS, RATE, seed);
        farm.finish();
        farm.check();
        blames_none(&farm);
        let exclusions = farm.scheduler.counters().exclusions;
        assert_eq!(exclusions.returned, 1);
        assert!(farm.scheduler.events_of(4) > before + 30);
        // Every buffer came back, those that waited for fragments when their node stood still too.
        abandoned += farm.nodes[4].counters().abandoned;
        farm.run_until(farm.now + Time::from_ns(200_000));
        for column in 0..3 {
            assert_eq!(farm.scheduler.free(column), 12);
        }
    }
    assert!(abandoned > 0);
}
