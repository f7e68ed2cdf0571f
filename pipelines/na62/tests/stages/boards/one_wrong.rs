//! One board of four has a wrong clock: the others lose next to nothing.

use proptest::prelude::*;

use super::{Fault, Scenario, US};

/// One fault, at each position in the order of the boards.
fn one_of_four(fault: Fault, rate: u64) -> impl Iterator<Item = Scenario> {
    (0..4).map(move |place| {
        let mut order = [0, 1, 2, 3];
        order.swap(1, place);
        let mut faults = [Fault::None; 4];
        faults[1] = fault;
        Scenario {
            faults,
            order,
            rate,
            // Of 20 ms at least, in which a wrong clock is told; a jump needs 100 ms more.
            events: match rate {
                1000 => 2000,
                100_000 => 12_000,
                _ => 20_000,
            },
            events_per_frame: if rate < 10_000 { 1 } else { 8 },
            ..Scenario::default()
        }
    })
}

const FAULTS: [Fault; 19] = [
    Fault::Offset(250 * US),
    Fault::Offset(310 * US),
    Fault::Offset(1000 * US),
    Fault::Offset(20_000 * US),
    Fault::Offset(90_000 * US),
    Fault::Offset(1_000_000 * US),
    Fault::Offset(-310 * US),
    Fault::Offset(-1000 * US),
    Fault::Offset(-150_000 * US),
    Fault::Offset(-1_000_000 * US),
    Fault::Drift(20_000),
    Fault::Drift(-20_000),
    Fault::Random(100_000 * US),
    Fault::Random(-100_000 * US),
    Fault::Random(10_000_000 * US),
    Fault::Stray {
        one_in: 10,
        by: 50_000 * US,
    },
    Fault::Jump {
        from: 50_000 * US,
        by: 1000 * US,
        back: 100_000 * US,
    },
    Fault::Stuck,
    Fault::Flood(9),
];

#[test]
fn one_wrong_clock_of_four_costs_the_others_nothing_in_build() {
    for fault in FAULTS {
        for rate in [1000, 100_000, 1_000_000] {
            for scenario in one_of_four(fault, rate) {
                let outcome = scenario.build();
                scenario.check(&outcome);
            }
        }
    }
}

#[test]
fn one_wrong_clock_of_four_costs_the_others_nothing_in_merge() {
    for fault in FAULTS {
        for rate in [1000, 100_000, 1_000_000] {
            for scenario in one_of_four(fault, rate) {
                let outcome = scenario.merge();
                scenario.check(&outcome);
            }
        }
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    let slots = prop_oneof![
        (-2_000i64..2_000).prop_map(|us| us * US),
        (-200_000i64..200_000).prop_map(|us| us * US),
        (-100_000_000i64..100_000_000).prop_map(|us| us * US),
    ];
    prop_oneof![
        slots.clone().prop_map(Fault::Offset),
        (-100_000i64..100_000).prop_map(Fault::Drift),
        slots.clone().prop_map(Fault::Random),
        (2u64..50, slots.clone()).prop_map(|(one_in, by)| Fault::Stray { one_in, by }),
        (0i64..3_000_000, slots, 1i64..3_000_000).prop_map(|(from, by, length)| Fault::Jump {
            from,
            by,
            back: from + length,
        }),
        Just(Fault::Stuck),
        (1u64..20).prop_map(Fault::Flood),
    ]
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let order = Just([0u16, 1, 2, 3]).prop_shuffle();
    let rate = prop_oneof![2u64..100, 100u64..10_000, 10_000u64..2_000_000];
    (
        fault(),
        0usize..4,
        order,
        rate,
        1u64..40,
        0u64..200,
        any::<u64>(),
    )
        .prop_map(
            |(fault, board, order, rate, events_per_frame, jitter_us, seed)| {
                let mut faults = [Fault::None; 4];
                faults[board] = fault;
                Scenario {
                    faults,
                    rate,
                    events: if rate < 10_000 { 400 } else { 4000 },
                    // Boards do not wait for longer than this.
                    events_per_frame: events_per_frame.min(rate / 3000 + 1),
                    order,
                    jitter_us,
                    empty: false,
                    spills: None,
                    seed,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_one_clock_of_four_does_the_others_go_on_in_build(scenario in scenario()) {
        let outcome = scenario.build();
        scenario.check(&outcome);
    }

    #[test]
    fn whatever_one_clock_of_four_does_the_others_go_on_in_merge(scenario in scenario()) {
        let outcome = scenario.merge();
        scenario.check(&outcome);
    }
}

/// A clock that drifts away slowly is for a while about a deadline apart: some of the others have
/// reached its time by then, and some have not, as their frames are delayed.
#[test]
fn a_clock_that_drifts_away_divides_no_others() {
    let drifting = Scenario {
        faults: [Fault::None, Fault::Drift(22_559), Fault::None, Fault::None],
        rate: 164_525,
        events: 4000,
        events_per_frame: 2,
        order: [0, 3, 1, 2],
        jitter_us: 178,
        seed: 15_576_590_842_121_488_972,
        ..Scenario::default()
    };
    let outcome = drifting.build();
    drifting.check(&outcome);
    for drift in (-40_000..60_000).step_by(5000) {
        for seed in 0..8 {
            let mut scenario = drifting.clone();
            (scenario.faults[1], scenario.seed) = (Fault::Drift(drift), seed);
            let outcome = scenario.build();
            // Two frames at most, until the majority is known.
            assert!(
                outcome.whole + 4 >= outcome.events,
                "{} {scenario:?}",
                outcome.whole
            );
        }
    }
}
