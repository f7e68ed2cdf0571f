//! Policies without a ring: the same faults, and what must hold at the end.

use pollux_farm::message::{Assign, Message, Request};
use pollux_farm::role::Address;
use pollux_farm::scheduler::{Config, Policy};
use pollux_farm::time::Time;
use pollux_farm::topology::{Descriptor, Feeders};

use super::farm::Farm;
use super::faults::{blames_none, quick};
use super::network::Faults;
use super::plain::config;

const EVENTS: u64 = 1200;
const RATE: f64 = 5e5;
const POLICIES: [Policy; 3] = [
    Policy::Credits,
    Policy::Slots { barrier: true },
    Policy::Slots { barrier: false },
];

fn small(policy: Policy) -> Config {
    Config {
        policy,
        ..quick(config(5, 3, 9, 4))
    }
}

fn farm(config: Config, seed: u64, faults: Faults) -> Farm {
    let asks = config.policy == Policy::Credits;
    let mut farm = Farm::new(config, seed, faults);
    if asks {
        farm.set_credits(1 + seed as usize % 7);
    }
    farm
}

fn finish(farm: &mut Farm, seed: u64) {
    farm.triggers(EVENTS, RATE, seed);
    farm.finish();
    farm.check();
    blames_none(farm);
}

/// Each MEP was built once and whole.
fn is_whole(farm: &Farm) {
    assert!(farm.builds().iter().all(|&builds| builds == 1));
    assert!(farm.missing().all(Feeders::is_empty));
    assert_eq!(farm.scheduler.counters().exclusions.reassigned, 0);
}

#[test]
fn without_faults_each_feeder_transfers_each_event_once() {
    for policy in POLICIES {
        for (pack, slow) in [(1, false), (1, true), (16, false)] {
            let config = Config {
                pack,
                ..small(policy)
            };
            let mut farm = farm(config, 3, Faults::default());
            farm.network.slow = slow;
            finish(&mut farm, 3);
            is_whole(&farm);
            for feeder in &farm.feeders {
                assert_eq!(feeder.counters().events, EVENTS, "{policy:?} {pack} {slow}");
            }
            let counters = farm.scheduler.counters();
            assert_eq!(counters.flow.sent, farm.scheduler.triggered());
            assert_eq!(counters.flow.resent, 0);
        }
    }
}

#[test]
fn messages_that_are_lost_damaged_or_repeated_leave_the_same_events() {
    for policy in POLICIES {
        for seed in 0..8 {
            let faults = Faults {
                lost: 0.008,
                damaged: 0.004,
                repeated: 0.03,
            };
            let config = Config {
                pack: 1 + seed as u16 % 4,
                ..small(policy)
            };
            let mut farm = farm(config, seed, faults);
            farm.network.slow = seed % 2 == 0;
            for node in &mut farm.nodes {
                node.work_mut().second = 9;
            }
            finish(&mut farm, seed);
            is_whole(&farm);
            assert!(farm.damaged > 10 && farm.network.spoiled > 50);
        }
    }
}

#[test]
fn events_of_a_dead_node_go_to_others() {
    for policy in POLICIES {
        for seed in 0..6 {
            let mut farm = farm(small(policy), seed, Faults::default());
            farm.triggers(EVENTS / 3, RATE, seed);
            farm.dead.insert(Address::Node(4));
            finish(&mut farm, seed);
            assert!(farm.missing().all(Feeders::is_empty));
            let exclusions = farm.scheduler.counters().exclusions;
            assert_eq!(exclusions.silent_nodes + exclusions.overdue_nodes, 1);
            assert!(exclusions.reassigned > 0);
        }
    }
}

/// Also where events would be overdue long before the silence of the feeder is noticed, and with
/// one credit.
#[test]
fn fragments_of_a_dead_feeder_alone_are_missing() {
    for policy in POLICIES {
        for (seed, dead) in [(0, 0), (7, 2), (14, 4), (3, 1)] {
            let config = Config {
                tries: 3,
                ..small(policy)
            };
            let mut farm = farm(config, seed, Faults::default());
            farm.triggers(EVENTS / 3, RATE, seed);
            let before = farm.triggered as usize;
            farm.dead.insert(Address::Feeder(dead));
            finish(&mut farm, seed);
            let lacks = Feeders::only(dead);
            assert!(farm.missing().all(|m| m.is_empty() || m == lacks));
            assert!(farm.missing().skip(before).all(|m| m == lacks));
            let with = farm.missing().filter(|m| m.is_empty()).count() as u64;
            let transfers = farm.feeders[usize::from(dead)].counters().transfers;
            assert!(with <= transfers && transfers - with <= 48);
            let counters = farm.scheduler.counters();
            assert_eq!(counters.exclusions.silent_feeders, 1);
            assert_eq!(counters.exclusions.reassigned, 0, "no node is to blame");
            assert!(policy != Policy::Credits || counters.feeders_silent > 0);
        }
    }
}

#[test]
fn a_node_and_a_feeder_may_die_at_once_with_faults() {
    for policy in POLICIES {
        for seed in 0..6 {
            let faults = Faults {
                lost: 0.01,
                damaged: 0.0,
                repeated: 0.02,
            };
            let mut farm = farm(small(policy), seed, faults);
            for node in &mut farm.nodes {
                node.work_mut().second = 7;
            }
            farm.triggers(EVENTS / 3, RATE, seed);
            farm.dead.insert(Address::Feeder(3));
            farm.dead.insert(Address::Node(seed as u16));
            finish(&mut farm, seed);
            let lacks = Feeders::only(3);
            assert!(farm.missing().all(|m| m.is_empty() || m == lacks));
        }
    }
}

#[test]
fn nodes_that_stood_still_return() {
    for policy in POLICIES {
        for seed in 3..9 {
            let mut farm = farm(small(policy), seed, Faults::default());
            farm.triggers(300, RATE, seed);
            farm.dead.insert(Address::Node(4));
            farm.triggers(800, RATE, seed);
            farm.run_until(farm.now + Time::from_ns(2_000_000));
            farm.dead.clear();
            farm.run_until(farm.now + Time::from_ns(200_000));
            let before = farm.scheduler.events_of(4);
            finish(&mut farm, seed);
            assert_eq!(farm.scheduler.counters().exclusions.returned, 1);
            assert!(farm.scheduler.events_of(4) > before + 20);
            farm.run_until(farm.now + Time::from_ns(200_000));
            for column in 0..3 {
                assert_eq!(farm.scheduler.free(column), 12);
            }
        }
    }
}

#[test]
fn members_are_excluded_and_readmitted_in_the_run() {
    for policy in POLICIES {
        let mut farm = farm(small(policy), 1, Faults::default());
        for node in &mut farm.nodes {
            node.work_mut().may_lack = Feeders::only(1);
        }
        farm.triggers(300, RATE, 1);
        farm.command(|scheduler, now, out| {
            assert!(scheduler.exclude_feeder(1));
            assert!(scheduler.exclude_node(2, now, out));
        });
        farm.triggers(600, RATE, 2);
        farm.command(|scheduler, now, out| {
            assert!(scheduler.readmit_feeder(1, now, out));
            assert!(scheduler.readmit_node(2, now));
        });
        finish(&mut farm, 3);
        let missing = farm.missing().filter(|m| !m.is_empty()).count();
        assert!((250..=350).contains(&missing), "{missing}");
    }
}

/// In a slot, each feeder transfers to another node; one credit is one transfer to a node.
#[test]
fn no_two_feeders_transfer_to_a_node_at_once() {
    let overlaps = |policy| {
        let config = Config {
            in_flight: 64,
            pending: 32,
            ..quick(config(6, 4, 12, 2))
        };
        let mut farm = Farm::new(Config { policy, ..config }, 2, Faults::default());
        if policy == Policy::Credits {
            farm.set_credits(1);
        }
        farm.network.slow = true;
        farm.triggers(EVENTS, 2e6, 2);
        farm.finish();
        farm.check();
        is_whole(&farm);
        farm.network.overlaps
    };
    assert_eq!(overlaps(Policy::Slots { barrier: true }), 0);
    // A large frame may arrive here before its transfer has ended.
    assert!(overlaps(Policy::Credits) < EVENTS / 20);
    assert!(overlaps(Policy::None) > EVENTS);
}

/// Most credits are in use: not more than a node has.
#[test]
fn a_node_asks_for_as_much_as_it_has_credit_for() {
    for credits in [1, 3, 20] {
        let mut farm = Farm::new(small(Policy::Credits), 1, Faults::default());
        farm.set_credits(credits);
        farm.network.slow = true;
        let mut most = 0;
        for event in 1..400 {
            farm.triggers(event, 2e6, event);
            most = farm
                .nodes
                .iter()
                .map(pollux_farm::node::Node::requested)
                .fold(most, usize::max);
        }
        farm.finish();
        farm.check();
        is_whole(&farm);
        assert_eq!(most, credits.min(4 * 5), "4 buffers, 5 feeders");
    }
}

#[test]
fn requests_for_data_that_come_late_wait_a_number_of_times() {
    for loops in [0, 200] {
        let config = Config {
            loops,
            event_timeout: Time::from_ns(15_000_000),
            ..small(Policy::Credits)
        };
        let mut farm = Farm::new(config, 5, Faults::default());
        farm.late = Some(2);
        for node in &mut farm.nodes {
            node.work_mut().may_lack = Feeders::only(2);
        }
        farm.triggers(300, RATE, 5);
        farm.finish();
        farm.check();
        let counts = farm.feeders[2].counters();
        assert_eq!(counts.early > 0, loops > 0);
        // With loops, that of the last event alone, which is never stored.
        assert_eq!(counts.absent == 1, loops > 0, "{}", counts.absent);
    }
}

/// A node that asks for what it was not given gets nothing that counts, and keeps nothing from
/// others.
#[test]
fn requests_that_are_lies_change_no_event() {
    let mut farm = Farm::new(small(Policy::Credits), 5, Faults::default());
    for round in 0..40_u64 {
        farm.triggers(10 * (round + 1), RATE, round);
        let event = farm.triggered.saturating_sub(round % 7);
        let request = Request {
            run: 7,
            feeder: (round % 5) as u8,
            mep: event,
            event,
            count: 1,
            descriptor: Descriptor((round % 36) as u16),
            generation: round as u32,
            attempt: 40_000,
            part: (round % 2) as u8,
            hold: true,
            members: Feeders(0b11111),
        };
        let other = Request {
            descriptor: Descriptor(36),
            ..request
        };
        let strange = Request {
            feeder: 4 - request.feeder,
            ..request
        };
        let run = Request { run: 8, ..request };
        for request in [request, other, strange, run] {
            let to = Address::Feeder((round % 5) as u8);
            farm.receive(to, &Message::Request(request), &[]);
        }
    }
    // What the forged generations make of a buffer, its node reports: an event more or less.
    farm.finish();
    farm.check();
    is_whole(&farm);
    let sum = |count: fn(&pollux_farm::feeder::Counters) -> u64| -> u64 {
        farm.feeders
            .iter()
            .map(|feeder| count(feeder.counters()))
            .sum()
    };
    assert_eq!(sum(|counts| counts.out_of_range), 40);
    assert_eq!(sum(|counts| counts.not_pending), 32, "2 is its own mirror");
    assert_eq!(sum(|counts| counts.other_run), 40);
}

#[test]
fn assignments_that_are_wrong_are_counted() {
    let mut farm = Farm::new(small(Policy::Credits), 5, Faults::default());
    farm.triggers(200, RATE, 5);
    let right = Assign {
        run: 7,
        mep: 0,
        event: 0,
        count: 1,
        descriptor: Descriptor(1),
        generation: 1,
        attempt: 1,
        part: 0,
        loops: 0,
        members: Feeders(0b11111),
    };
    let wrong = [
        Assign { run: 8, ..right },
        Assign {
            descriptor: Descriptor(2),
            ..right
        },
        Assign {
            descriptor: Descriptor(36),
            ..right
        },
        Assign {
            members: Feeders(0b100_000),
            ..right
        },
        // Again, and of an assignment before.
        right,
        Assign {
            generation: 0,
            ..right
        },
        Assign {
            part: 1,
            attempt: 2,
            ..right
        },
    ];
    for assign in wrong {
        farm.receive(Address::Node(1), &Message::Assign(assign), &[]);
    }
    let assign = Message::Assign(right);
    for to in [Address::Scheduler, Address::Feeder(0), Address::Results] {
        farm.receive(to, &assign, &[]);
    }
    let counts = *farm.nodes[1].counters();
    assert_eq!((counts.other_run, counts.misrouted), (1, 2));
    assert_eq!((counts.no_feeder, counts.assigned_again), (1, 3));
    assert_eq!(farm.scheduler.counters().unexpected, 1);
    assert_eq!(farm.feeders[0].counters().unexpected, 1);
    assert_eq!(farm.results.counters().unexpected, 1);
    farm.triggers(EVENTS, RATE, 6);
    farm.finish();
    farm.check();
    is_whole(&farm);
}
