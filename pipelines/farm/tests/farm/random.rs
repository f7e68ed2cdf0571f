//! Random farms with all faults at once.

use pollux_farm::role::Address;
use pollux_farm::scheduler::{Config, Discipline, Mode, Policy};
use pollux_farm::topology::Feeders;
use proptest::prelude::*;

use super::farm::Farm;
use super::faults::{blames_none, quick};
use super::network::Faults;
use super::plain::config;

#[derive(Clone, Debug)]
struct Case {
    farm: (usize, usize, usize, usize),
    discipline: Discipline,
    mode: Mode,
    policy: Policy,
    pack: u16,
    loops: u8,
    faults: Faults,
    slow: bool,
    second: u64,
    killed: (Option<u16>, Option<u8>),
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let farm = (1_usize..12, 1_usize..5, 1_usize..4, 1_usize..5);
    let policy = prop_oneof![
        3 => Just(Policy::Ring),
        3 => Just(Policy::Credits),
        2 => Just(Policy::Slots { barrier: true }),
        1 => Just(Policy::Slots { barrier: false }),
        1 => Just(Policy::None)
    ];
    let how = (any::<bool>(), any::<bool>(), 1_u16..20, 0_u8..4, policy);
    let faults = (0.0..0.01, 0.0..0.01, 0.0..0.03);
    let rest = (any::<bool>(), 0_u64..20, any::<u64>());
    let killed = (prop::option::of(0_u16..20), prop::option::of(0_u8..12));
    (farm, how, faults, rest, killed).prop_map(|(farm, how, faults, rest, killed)| {
        let (feeders, columns, rows, buffers) = farm;
        let nodes = columns * rows;
        // Another node and another feeder remain.
        let node = killed
            .0
            .filter(|&node| usize::from(node) < nodes && nodes > 1);
        let feeder = killed
            .1
            .filter(|&feeder| usize::from(feeder) < feeders && feeders > 1);
        Case {
            farm: (feeders, columns, nodes, buffers),
            discipline: if how.0 {
                Discipline::Turns
            } else {
                Discipline::QueueLength
            },
            mode: if how.1 { Mode::Skip } else { Mode::Wait },
            policy: how.4,
            pack: how.2,
            loops: how.3,
            faults: Faults {
                lost: faults.0,
                damaged: faults.1,
                repeated: faults.2,
            },
            slow: rest.0,
            second: rest.1,
            killed: (node, feeder),
            seed: rest.2,
        }
    })
}

fn run(case: &Case) {
    let (feeders, columns, nodes, buffers) = case.farm;
    let config = Config {
        discipline: case.discipline.clone(),
        mode: case.mode,
        policy: case.policy,
        pack: case.pack,
        loops: case.loops,
        ..quick(config(feeders, columns, nodes, buffers))
    };
    let mut farm = Farm::new(config, case.seed, case.faults);
    farm.network.slow = case.slow;
    let lacks = case.killed.1.map_or(Feeders::NONE, Feeders::only);
    for node in &mut farm.nodes {
        node.work_mut().second = case.second;
        node.work_mut().may_lack = lacks;
    }
    farm.triggers(300, 3e5, case.seed);
    farm.dead.extend(case.killed.0.map(Address::Node));
    farm.dead.extend(case.killed.1.map(Address::Feeder));
    farm.triggers(700, 3e5, case.seed);
    farm.finish();
    farm.check();
    blames_none(&farm);
    assert!(
        farm.missing()
            .all(|missing| missing.without(lacks).is_empty())
    );
    let exclusions = farm.scheduler.counters().exclusions;
    let dead_nodes = u64::from(case.killed.0.is_some());
    assert!(
        exclusions.silent_nodes + exclusions.overdue_nodes <= dead_nodes,
        "{exclusions:?} {:?}",
        farm.scheduler.timeout()
    );
    assert_eq!(exclusions.undecided_nodes, 0);
    if case.killed.0.is_none() {
        assert!(farm.builds().iter().all(|&builds| builds == 1));
        assert_eq!(exclusions.reassigned, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        max_shrink_iters: 40,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_farm_decides_every_event_once(case in case()) {
        run(&case);
    }
}
