//! The rules of the scheduler, one by one.

use pollux_farm::message::{Alive, Decided, Feedback, Flow, Member, Message, More, Trigger};
use pollux_farm::role::Role;
use pollux_farm::scheduler::{
    Config, ConfigError as E, Discipline, Mode, Register, RegisterError, Scheduler, Source,
};
use pollux_farm::time::Time;
use pollux_farm::topology::{Descriptor, Feeders, Topology, TopologyError};

use super::{RUN, Sink};

const NOW: Time = Time::ZERO;

fn config(columns: usize, nodes: usize, buffers: usize) -> Config {
    let topology = Topology::regular(4, columns, nodes, buffers).expect("a farm");
    Config::new(RUN, topology)
}

fn feedback(column: u8, descriptor: u16, generation: u32, mep: u64) -> Message {
    Message::Feedback(Feedback {
        run: RUN,
        column,
        descriptor: Descriptor(descriptor),
        generation,
        mep,
    })
}

/// A scheduler, all of whose buffers are registered.
fn registered(config: Config) -> (Scheduler, Sink) {
    let topology = config.topology.clone();
    let mut out = Sink::default();
    let mut scheduler = Scheduler::new(config, NOW).expect("a configuration");
    for descriptor in 0..topology.descriptors() as u16 {
        let (node, _) = topology.buffer_of(Descriptor(descriptor)).expect("a node");
        let column = topology.column_of(node).expect("a column");
        let message = feedback(column, descriptor, 0, u64::MAX);
        scheduler.receive(NOW, &message, (), &mut out);
    }
    (scheduler, out)
}

/// Triggers events one by one; each is finished at once. Returns their columns.
fn columns(config: Config, events: usize) -> Vec<u8> {
    let topology = config.topology.clone();
    let (mut scheduler, mut out) = registered(config);
    let mut columns = Vec::new();
    for _ in 0..events {
        scheduler.trigger(Source::Internal, 1, NOW, &mut out);
        for flow in std::mem::take(&mut out.0) {
            let (node, _) = topology.buffer_of(flow.descriptor).expect("a node");
            let column = topology.column_of(node).expect("a column");
            let message = feedback(column, flow.descriptor.0, flow.generation, flow.mep);
            scheduler.receive(NOW, &message, (), &mut out);
            let pending = Feeders::NONE;
            let returned = Message::Flow(Flow { pending, ..flow });
            scheduler.receive(NOW, &returned, (), &mut out);
            let decided = Decided {
                run: RUN,
                mep: flow.mep,
                bits: 1,
                before: flow.mep + 1,
            };
            scheduler.receive(NOW, &Message::Decided(decided), (), &mut out);
            columns.push(column);
        }
    }
    assert_eq!(columns.len(), events);
    columns
}

#[test]
fn columns_come_in_turn() {
    let found = columns(config(6, 12, 2), 13);
    assert_eq!(found, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0]);
}

#[test]
fn partitions_come_in_turn() {
    let config = Config {
        partition_of: vec![0, 0, 0, 1, 1],
        ..config(5, 10, 2)
    };
    assert_eq!(columns(config, 8), [0, 3, 1, 4, 2, 3, 0, 4]);
}

#[test]
fn columns_get_their_shares() {
    let weights = [6, 3, 2, 1];
    let config = Config {
        discipline: Discipline::Weights(weights.into()),
        ..config(4, 8, 2)
    };
    let found = columns(config, 1200);
    assert!(found.windows(2).all(|pair| pair[0] != pair[1]));
    for (column, weight) in (0_u8..).zip(weights) {
        let share: usize = found.iter().map(|&c| usize::from(c == column)).sum();
        assert!(
            share.abs_diff(100 * usize::from(weight)) <= 2,
            "column {column}: {share}"
        );
    }
}

#[test]
fn a_busy_column_is_passed_or_waited_for() {
    for (mode, expected) in [(Mode::Skip, vec![0, 1, 3]), (Mode::Wait, vec![0, 1])] {
        let (mut scheduler, mut out) = {
            let mut config = config(4, 4, 1);
            config.mode = mode;
            let mut out = Sink::default();
            let mut scheduler = Scheduler::new(config, NOW).expect("a configuration");
            for column in [0, 1, 3] {
                let message = feedback(column, column.into(), 0, u64::MAX);
                scheduler.receive(NOW, &message, (), &mut out);
            }
            (scheduler, out)
        };
        scheduler.trigger(Source::Internal, 3, NOW, &mut out);
        let found: Vec<u16> = out.0.iter().map(|flow| flow.descriptor.0).collect();
        assert_eq!(found, expected, "{mode:?}");
        let passed = scheduler.read(Register::Passed).expect("a register");
        assert_eq!(passed, u32::from(mode == Mode::Skip));
    }
}

#[test]
fn the_last_column_is_not_used_again_before_another() {
    // Two columns, of which one has buffers.
    let mut out = Sink::default();
    let mut scheduler = Scheduler::new(config(2, 2, 3), NOW).expect("a configuration");
    for descriptor in [0, 2, 4] {
        let message = feedback(0, descriptor, 0, u64::MAX);
        scheduler.receive(NOW, &message, (), &mut out);
    }
    scheduler.trigger(Source::Internal, 3, NOW, &mut out);
    assert_eq!(out.0.len(), 1);
    // Without its node, column 1 is none.
    scheduler.exclude_node(1, NOW, &mut out);
    assert_eq!(out.0.len(), 3);
}

#[test]
fn a_second_transfer_goes_to_the_same_buffer() {
    let (mut scheduler, mut out) = registered(Config {
        second: Feeders(0b0110),
        ..config(2, 2, 2)
    });
    scheduler.trigger(Source::Internal, 1, NOW, &mut out);
    let flow = out.0.pop().expect("a message");
    let more = Message::More(More {
        run: RUN,
        descriptor: flow.descriptor,
        generation: flow.generation,
        mep: flow.mep,
    });
    scheduler.receive(NOW, &more, (), &mut out);
    assert!(out.0.is_empty(), "the first part is in the ring");
    let pending = Feeders::NONE;
    let returned = Message::Flow(Flow { pending, ..flow });
    scheduler.receive(NOW, &returned, (), &mut out);
    let second = out.0.pop().expect("a message");
    assert_eq!(second.descriptor, flow.descriptor);
    assert_eq!((second.part, second.members), (1, Feeders(0b0110)));
    scheduler.receive(NOW, &more, (), &mut out);
    assert_eq!(scheduler.counters().more.repeated, 1);
}

#[test]
fn what_returns_is_compared_with_what_was_sent() {
    let (mut scheduler, mut out) = registered(config(2, 2, 2));
    scheduler.trigger(Source::Internal, 2, NOW, &mut out);
    let flow = out.0[0];
    let pending = Feeders::NONE;
    let right = Flow { pending, ..flow };
    let wrong = [
        Flow { event: 9, ..right },
        Flow { count: 2, ..right },
        Flow {
            descriptor: Descriptor(3),
            ..right
        },
        Flow {
            generation: 9,
            ..right
        },
        Flow {
            members: Feeders(1),
            ..right
        },
        Flow { part: 1, ..right },
        Flow { mep: 77, ..right },
    ];
    for flow in wrong {
        scheduler.receive(NOW, &Message::Flow(flow), (), &mut out);
    }
    assert_eq!(scheduler.read(Register::RingErrors), Ok(7));
    assert_eq!(scheduler.read(Register::CopiesUsed), Ok(2));
    for returned in [1, 1] {
        scheduler.receive(NOW, &Message::Flow(right), (), &mut out);
        assert_eq!(scheduler.counters().flow.returned, returned);
    }
    assert_eq!(scheduler.counters().flow.stale, 1);
    assert_eq!(scheduler.read(Register::CopiesUsed), Ok(1));
}

#[test]
fn busy_feeders_get_a_message_again_for_a_number_of_loops() {
    let (mut scheduler, mut out) = registered(Config {
        loops: 2,
        ..config(2, 2, 2)
    });
    scheduler.trigger(Source::Internal, 1, NOW, &mut out);
    for (loops, hold) in [(0, false), (1, false), (2, true)] {
        let flow = out.0.pop().expect("a message");
        assert_eq!((flow.loops, flow.hold), (loops, hold));
        // Feeder 0 passes it on.
        let pending = Feeders(1);
        scheduler.receive(NOW, &Message::Flow(Flow { pending, ..flow }), (), &mut out);
    }
    assert_eq!(scheduler.counters().flow.loops, 3);
    assert_eq!(scheduler.counters().flow.sent, 1);
}

#[test]
fn who_is_missed_takes_part_when_heard() {
    let (mut scheduler, mut out) = registered(config(2, 2, 1));
    let feeders = scheduler.members();
    for _ in 0..2 {
        scheduler.miss(Member::Node(1), NOW);
        scheduler.miss(Member::Feeder(2), NOW);
        scheduler.miss(Member::Results, NOW);
    }
    assert!(scheduler.is_excluded(1) && !scheduler.is_excluded(0));
    assert_eq!(scheduler.members(), feeders.without(Feeders::only(2)));
    assert_eq!(scheduler.counters().exclusions.silent_nodes, 1);
    assert_eq!(scheduler.counters().exclusions.silent_feeders, 1);
    // What is excluded on command does not return by a sign of life, as who is missed does.
    scheduler.exclude_node(0, NOW, &mut out);
    scheduler.miss(Member::Node(0), NOW);
    for from in [Member::Node(0), Member::Node(1), Member::Feeder(2)] {
        let alive = Message::Alive(Alive { run: RUN, from });
        scheduler.receive(NOW, &alive, (), &mut out);
    }
    assert!(!scheduler.is_excluded(1) && scheduler.is_excluded(0));
    assert_eq!(scheduler.members(), feeders);
}

#[test]
fn triggers_of_a_port_are_numbered() {
    let (mut scheduler, mut out) = registered(config(4, 4, 4));
    scheduler.select(Source::External);
    for (first, count) in [(0, 2), (0, 2), (1, 2), (5, 1)] {
        let run = RUN;
        let trigger = Message::Trigger(Trigger { run, first, count });
        scheduler.receive(NOW, &trigger, (), &mut out);
    }
    let counts = scheduler.counters().triggers;
    assert_eq!((counts.taken, counts.repeated, counts.missing), (4, 3, 2));
    scheduler.trigger(Source::Internal, 3, NOW, &mut out);
    assert_eq!(scheduler.counters().triggers.disabled, 3);
}

#[test]
fn registers_work_as_documented() {
    let (mut scheduler, mut out) = registered(config(2, 2, 2));
    let register = |n| Register::new(n, 0).expect("a register");
    assert_eq!(Register::new(0, 0), Err(RegisterError::Number(0)));
    assert_eq!(Register::new(19, 0), Err(RegisterError::Number(19)));
    let all: Vec<_> = (1..=18).map(|n| scheduler.read(register(n))).collect();
    let only = |n| Err(RegisterError::WriteOnly(n));
    let values = [1, 0, 1, 2, 0, 0].map(Ok);
    assert_eq!(all[..6], values);
    assert_eq!(all[6], only(7));
    assert_eq!(all[7..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0].map(Ok));
    let out = &mut out;
    scheduler.write(register(2), 3, NOW, out).expect("by hand");
    scheduler.write(register(1), 0, NOW, out).expect("disabled");
    scheduler
        .write(register(7), 1234, NOW, out)
        .expect("a trigger");
    assert_eq!(out.0.len(), 0);
    let read: Vec<_> = [4, 9, 16].map(|n| scheduler.read(register(n))).into();
    assert_eq!(read, [0, 1, 1].map(Ok));
    scheduler.write(register(1), 1, NOW, out).expect("enabled");
    assert_eq!(out.0.len(), 1);
    assert_eq!(scheduler.read(register(14)), Ok(1));
    let refused = scheduler.write(register(5), 2, NOW, out);
    assert!(matches!(refused, Err(RegisterError::Value { .. })));
    let refused = scheduler.write(register(9), 0, NOW, out);
    assert_eq!(refused, Err(RegisterError::ReadOnly(9)));
    let outside = Register::ColumnUsed(2);
    assert_eq!(scheduler.read(outside), Err(RegisterError::Column(2)));
}

#[test]
fn farms_that_cannot_be_are_refused() {
    let farm = |columns, nodes, buffers| Topology::regular(4, columns, nodes, buffers).err();
    assert_eq!(farm(0, 4, 1), Some(TopologyError::Columns(0)));
    assert_eq!(farm(65, 65, 1), Some(TopologyError::Columns(65)));
    assert_eq!(farm(64, 64, 1), None);
    assert_eq!(farm(2, 0, 1), Some(TopologyError::NoNode));
    for (nodes, buffers) in [(2, 0), (300, 300), (2, usize::MAX), (1 << 20, 1)] {
        let refused = farm(2, nodes, buffers);
        assert_eq!(refused, Some(TopologyError::Buffers { nodes, buffers }));
    }
    assert!(Topology::new(4, 2, &[0, 2], 1).is_err());
    assert!(Topology::new(65, 2, &[0, 1], 1).is_err());

    let refused = |change: fn(&mut Config)| {
        let mut config = config(2, 2, 2);
        change(&mut config);
        Scheduler::new(config, NOW).expect_err("refused")
    };
    let found = refused(|c| c.discipline = Discipline::Weights([1].into()));
    assert_eq!(
        found,
        E::Weights {
            found: 1,
            columns: 2
        }
    );
    let found = refused(|c| c.discipline = Discipline::Weights([1, 0].into()));
    assert_eq!(found, E::NoWeight(1));
    let found = refused(|c| c.partition_of = vec![0, 2]);
    assert_eq!(
        found,
        E::Partitions {
            found: 2,
            columns: 2
        }
    );
    assert_eq!(refused(|c| c.pack = 0), E::Pack(0));
    assert_eq!(refused(|c| c.pack = 65), E::Pack(65));
    assert_eq!(refused(|c| c.in_flight = 0), E::InFlight(0));
    assert!(matches!(refused(|c| c.pending = 0), E::Pending { .. }));
    assert_eq!(refused(|c| c.silence = NOW), E::NoTime("silence"));
    assert_eq!(refused(|c| c.tries = 0), E::NoTry);
    assert_eq!(refused(|c| c.second = Feeders(1 << 4)), E::NoFeeder(4));
}
