//! Members that say what they should not: it is counted where it belongs, and the run goes on.

use pollux_farm::message::{Decided, Decision, Feedback, Fragment, Message, Trigger};
use pollux_farm::role::Address;
use pollux_farm::scheduler::{Config, ExclusionCounts};
use pollux_farm::time::Time;
use pollux_farm::topology::{Descriptor, Feeders};

use super::farm::Farm;
use super::faults::{blames_none, quick};
use super::network::Faults;
use super::plain::config;

const EVENTS: u64 = 400;
const RATE: f64 = 5e5;

fn farm() -> Farm {
    Farm::new(quick(config(4, 3, 6, 3)), 5, Faults::default())
}

fn finish(mut farm: Farm) -> Farm {
    farm.triggers(EVENTS, RATE, 5);
    farm.finish();
    farm.check();
    farm
}

/// Excluded members.
fn exclusions(farm: &Farm) -> ExclusionCounts {
    farm.scheduler.counters().exclusions
}

#[test]
fn feedback_that_is_wrong_is_counted_and_not_taken() {
    let mut farm = farm();
    farm.triggers(EVENTS / 2, RATE, 5);
    let right = Feedback {
        run: 7,
        column: 1,
        descriptor: Descriptor(1),
        generation: 1,
        mep: 0,
    };
    let wrong = [
        Feedback { run: 8, ..right },
        Feedback { column: 2, ..right },
        Feedback {
            descriptor: Descriptor(18),
            ..right
        },
        Feedback {
            generation: 1000,
            ..right
        },
        Feedback {
            generation: 1000,
            mep: u64::MAX,
            ..right
        },
        // A buffer twice, or one that has been assigned again since.
        right,
        right,
    ];
    let before = farm.scheduler.counters().feedback.stale;
    for message in wrong {
        farm.receive(Address::Scheduler, &Message::Feedback(message), &[]);
    }
    let stale = farm.scheduler.counters().feedback.stale - before;
    let farm = finish(farm);
    let counts = farm.scheduler.counters();
    assert_eq!(counts.other_run, 1);
    assert_eq!(counts.feedback.wrong_column, 1);
    assert_eq!(counts.feedback.out_of_range, 1);
    assert_eq!((counts.feedback.foreign, stale), (2, 2));
    assert!(farm.builds().iter().all(|&builds| builds == 1));
    assert_eq!(exclusions(&farm), ExclusionCounts::default());
}

#[test]
fn messages_for_another_role_are_counted() {
    let mut farm = farm();
    farm.triggers(EVENTS / 2, RATE, 5);
    let trigger = Message::Trigger(Trigger {
        run: 7,
        first: 0,
        count: 1,
    });
    for to in [Address::Feeder(0), Address::Node(0), Address::Results] {
        farm.receive(to, &trigger, &[]);
    }
    let farm = finish(farm);
    assert_eq!(farm.feeders[0].counters().unexpected, 1);
    assert_eq!(farm.nodes[0].counters().unexpected, 1);
    assert_eq!(farm.results.counters().unexpected, 1);
}

#[test]
fn decisions_on_what_was_never_sent_are_counted() {
    let mut farm = farm();
    farm.triggers(EVENTS / 2, RATE, 5);
    for (mep, bits, before) in [(9999, 1, 0), (0, 1 << 63, 9999), (u64::MAX, 3, 0)] {
        let decided = Decided {
            run: 7,
            mep,
            bits,
            before,
        };
        farm.receive(Address::Scheduler, &Message::Decided(decided), &[]);
    }
    let decision = Decision {
        run: 7,
        mep: 1 << 40,
        event: 0,
        count: 1,
        descriptor: Descriptor(0),
        generation: 0,
        absent: 0,
        missing: Feeders::NONE,
        accepted: 0,
    };
    farm.receive(Address::Results, &Message::Decision(decision), &[]);
    let farm = finish(farm);
    assert_eq!(farm.scheduler.counters().decided_foreign, 3);
    assert_eq!(farm.results.counters().ahead, 1);
}

#[test]
fn a_node_that_never_decides_is_excluded() {
    let mut farm = farm();
    farm.nodes[2].work_mut().time = Time::from_ns(1_000_000_000);
    let farm = finish(farm);
    let exclusions = exclusions(&farm);
    assert_eq!((exclusions.overdue_nodes, exclusions.silent_nodes), (1, 0));
    assert!(farm.scheduler.is_excluded(2));
    blames_none(&farm);
}

#[test]
fn a_node_that_releases_without_a_decision_is_excluded() {
    let mut farm = farm();
    farm.change = Some(Box::new(|message| {
        if let Message::Decision(decision) = message
            && decision.descriptor.0 % 6 == 2
        {
            decision.run += 1;
        }
    }));
    farm.triggers(EVENTS, RATE, 5);
    // Its decisions are not acknowledged: it waits for that without end.
    farm.run_until(farm.now + Time::from_ns(20_000_000));
    farm.check();
    let exclusions = exclusions(&farm);
    assert!(farm.scheduler.is_excluded(2));
    assert_eq!(exclusions.undecided_nodes, 1);
    assert!(farm.results.counters().other_run > 0);
}

#[test]
fn no_node_is_blamed_while_the_result_node_is_silent() {
    let mut farm = farm();
    farm.dead.insert(Address::Results);
    farm.triggers(100, RATE, 5);
    farm.run_until(farm.now + Time::from_ns(20_000_000));
    assert_eq!(exclusions(&farm), ExclusionCounts::default());
    assert!(farm.scheduler.counters().results_silent > 0);
    farm.dead.clear();
    finish(farm);
}

/// A run in which feeder 3 changes a tenth of its fragments.
fn change_fragments(change: fn(&mut Fragment)) -> Farm {
    let mut farm = farm();
    farm.change = Some(Box::new(move |message| {
        if let Message::Fragment(fragment) = message
            && fragment.feeder == 3
            && fragment.event % 10 == 1
        {
            change(fragment);
        }
    }));
    for node in &mut farm.nodes {
        node.work_mut().may_lack = Feeders::only(3);
    }
    finish(farm)
}

#[test]
fn feeders_that_disagree_are_counted() {
    let changes: [fn(&mut Fragment); 3] = [
        |fragment| fragment.count += 1,
        |fragment| fragment.event += 1,
        |fragment| fragment.members = Feeders(0b1001),
    ];
    for change in changes {
        let farm = change_fragments(change);
        let disagree: u64 = farm.nodes.iter().map(|node| node.counters().disagree).sum();
        assert_eq!(disagree, EVENTS / 10);
        let absent = farm.decisions.iter().filter(|d| d.absent > 0).count() as u64;
        assert_eq!(absent, EVENTS / 10);
        assert_eq!(exclusions(&farm), ExclusionCounts::default());
    }
}

#[test]
fn fragments_larger_than_a_slot_are_counted() {
    let farm = change_fragments(|fragment| fragment.bytes = 1 << 20);
    let oversize: u64 = farm.nodes.iter().map(|node| node.counters().oversize).sum();
    assert_eq!(oversize, EVENTS / 10);
    assert_eq!(exclusions(&farm), ExclusionCounts::default());
}

#[test]
fn fragments_for_other_nodes_and_from_other_feeders_are_counted() {
    let farm = change_fragments(|fragment| {
        if fragment.attempt == 1 {
            fragment.descriptor.0 += 1;
        }
    });
    let misrouted: u64 = farm
        .nodes
        .iter()
        .map(|node| node.counters().misrouted)
        .sum();
    assert_eq!(misrouted, EVENTS / 10);
    assert!(farm.scheduler.counters().flow.resent >= EVENTS / 10);
    let farm = change_fragments(|fragment| {
        if fragment.attempt == 1 {
            fragment.feeder = 9;
        }
    });
    let strange: u64 = farm
        .nodes
        .iter()
        .map(|node| node.counters().no_feeder)
        .sum();
    assert_eq!(strange, EVENTS / 10);
    assert_eq!(exclusions(&farm), ExclusionCounts::default());
}

#[test]
fn messages_with_buffers_that_are_not_there_are_counted() {
    let mut farm = farm();
    farm.change = Some(Box::new(|message| {
        if let Message::Flow(flow) = message
            && flow.mep % 10 == 3
            && flow.attempt == 1
            && !flow.pending.is_empty()
        {
            flow.descriptor = Descriptor(18);
        }
    }));
    let farm = finish(farm);
    assert_eq!(farm.feeders[0].counters().out_of_range, EVENTS / 10);
    assert!(farm.builds().iter().all(|&builds| builds == 1));
}

#[test]
fn data_that_come_late_are_waited_for_a_number_of_loops() {
    for loops in [0, 200] {
        let config = Config {
            loops,
            ..quick(config(4, 3, 6, 3))
        };
        let mut farm = Farm::new(config, 5, Faults::default());
        farm.late = Some(2);
        for node in &mut farm.nodes {
            node.work_mut().may_lack = Feeders::only(2);
        }
        let farm = finish(farm);
        let counts = farm.feeders[2].counters();
        assert_eq!(counts.early > 0, loops > 0);
        // With loops, that of the last event alone, which is never stored.
        assert_eq!(counts.absent == 1, loops > 0, "{}", counts.absent);
        let absent: u64 = farm.decisions.iter().map(|d| u64::from(d.absent)).sum();
        assert_eq!(absent, counts.absent);
    }
}
