//! Members that stand still at random for far longer than a time-out, all of them, all the time.

use pollux_farm::role::Address;
use pollux_farm::scheduler::{Config, ExclusionCounts, Policy};
use pollux_farm::time::Time;
use pollux_farm::topology::Feeders;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::farm::Farm;
use super::faults::{blames_none, quick};
use super::network::Faults;
use super::plain::config;

const POLICIES: [Policy; 5] = [
    Policy::Ring,
    Policy::Credits,
    Policy::Slots { barrier: true },
    Policy::Slots { barrier: false },
    Policy::None,
];
const FEEDERS: u8 = 5;
const NODES: u16 = 9;
const EVENTS: u64 = 2200;

/// Members stand still for up to `longest`, one after the other each 20 events.
fn run(config: Config, longest: Time, seed: u64) -> Farm {
    let asks = config.policy == Policy::Credits;
    let mut farm = Farm::new(config, seed, Faults::default());
    if asks {
        farm.set_credits(8);
    }
    for node in &mut farm.nodes {
        node.work_mut().may_lack = Feeders::first(FEEDERS.into());
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for n in 0..100 {
        let member = match random.random_range(0..12) {
            0 => Address::Scheduler,
            1 => Address::Results,
            2..6 => Address::Feeder(random.random_range(0..FEEDERS)),
            _ => Address::Node(random.random_range(0..NODES)),
        };
        farm.sleep(member, Time::from_ps(random.random_range(0..longest.ps())));
        farm.triggers(20 * (n + 1), 5e5, seed + n);
    }
    // All of them are heard again, before the last events.
    farm.run_until(farm.now + longest + longest + Time::from_ns(200_000));
    farm.triggers(EVENTS, 5e5, seed);
    farm.finish();
    farm.check();
    blames_none(&farm);
    farm
}

/// Time-outs are 150 us, members stand still for up to 5 ms. No member is excluded; each event is
/// built once, with all fragments, and few are sent again.
#[test]
fn members_that_stand_still_delay_events_alone() {
    for policy in POLICIES {
        for seed in 0..4 {
            let config = Config {
                policy,
                silence: Time::from_ns(50_000_000),
                tries: 300,
                ..quick(config(FEEDERS.into(), 3, NODES.into(), 4))
            };
            let farm = run(config, Time::from_ns(5_000_000), seed);
            let counters = farm.scheduler.counters();
            assert_eq!(counters.exclusions, ExclusionCounts::default());
            assert!(farm.builds().iter().all(|&builds| builds == 1));
            assert!(farm.missing().all(Feeders::is_empty));
            assert!(farm.decisions.iter().all(|decision| decision.absent == 0));
            for feeder in &farm.feeders {
                assert!(
                    feeder.counters().transfers < 2 * EVENTS,
                    "{policy:?} {seed}"
                );
            }
        }
    }
}

/// Members are silent for longer than they may be: they are excluded, and return by themselves.
#[test]
fn members_that_were_silent_return() {
    for policy in POLICIES {
        let mut returned = 0;
        for seed in 0..4 {
            let config = Config {
                policy,
                ..quick(config(FEEDERS.into(), 3, NODES.into(), 4))
            };
            let farm = run(config, Time::from_ns(5_000_000), seed);
            let exclusions = farm.scheduler.counters().exclusions;
            assert_eq!(
                (exclusions.overdue_nodes, exclusions.undecided_nodes),
                (0, 0)
            );
            let silent = exclusions.silent_nodes + exclusions.silent_feeders;
            assert_eq!(exclusions.returned, silent, "{policy:?}");
            returned += silent;
        }
        assert!(returned > 0, "{policy:?}");
    }
}
