//! The scheduler against a brute-force one, and its rules one by one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod model;
mod overdue;
mod rules;
mod told;

use model::{Buffer, Mep, Model, Sent};
use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Decided, Feedback, Flow, Message};
use pollux_farm::role::{Address, Outbox, Role, Transfer};
use pollux_farm::scheduler::{Config, Discipline, Mode, Register, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::{Descriptor, Feeders, Topology};
use proptest::prelude::*;
use proptest::sample::Index;

const RUN: u32 = 3;

/// Keeps what is sent.
#[derive(Default)]
pub(crate) struct Sink(pub(crate) Vec<Flow>);

impl Outbox for Sink {
    fn send(&mut self, to: Address, message: &Message) {
        let Message::Flow(flow) = message else {
            panic!("{message:?} from a scheduler");
        };
        let first = flow.pending.next_from(0).map(Address::Feeder);
        assert_eq!(Some(to), first);
        self.0.push(*flow);
    }

    fn transfer(&mut self, _: u16, _: &Outgoing<'_, impl Fragments>) -> Transfer {
        panic!("a scheduler has no data");
    }
}

/// What the scheduler sees.
#[derive(Clone, Debug)]
enum Op {
    Trigger(u16),
    /// Feedback of a buffer, as its node sends it.
    Feedback(Index),
    /// Feedback that is wrong in one way.
    Lie(Index, u8),
    Exclude(Index),
    Readmit(Index),
    Mode(Mode),
    /// A message that is in the ring returns.
    Return(Index),
    /// A MEP that was sent is decided.
    Decide(Index),
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<Index>;
    prop_oneof![
        8 => (1_u16..4).prop_map(Op::Trigger),
        12 => index().prop_map(Op::Feedback),
        2 => (index(), 0_u8..5).prop_map(|(n, how)| Op::Lie(n, how)),
        1 => index().prop_map(Op::Exclude),
        1 => index().prop_map(Op::Readmit),
        1 => prop_oneof![Just(Mode::Skip), Just(Mode::Wait)].prop_map(Op::Mode),
        4 => index().prop_map(Op::Return),
        4 => index().prop_map(Op::Decide),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    (1_usize..=32)
        .prop_flat_map(|columns| {
            let node = 0..columns as u8;
            let nodes = prop::collection::vec(node, 1..3 * columns);
            let partitions = prop::collection::vec(0_u8..2, columns);
            let wait = any::<bool>();
            (
                Just(columns),
                nodes,
                partitions,
                wait,
                any::<bool>(),
                1_usize..4,
            )
        })
        .prop_map(
            |(columns, nodes, mut partition_of, wait, longest, buffers)| {
                let topology = Topology::new(5, columns, &nodes, buffers).expect("a farm");
                if !partition_of.contains(&0) {
                    partition_of.clear();
                }
                Config {
                    mode: if wait { Mode::Wait } else { Mode::Skip },
                    discipline: if longest {
                        Discipline::QueueLength
                    } else {
                        Discipline::Turns
                    },
                    partition_of,
                    pending: 12,
                    ..Config::new(RUN, topology)
                }
            },
        )
}

fn feedback(model: &Model, topology: &Topology, d: usize) -> Feedback {
    let column = topology.column_of(model.node(d) as u16).expect("a node");
    let mep = match model.buffers[d] {
        Buffer::Assigned(mep) => mep,
        Buffer::Unknown | Buffer::Free => u64::MAX,
    };
    Feedback {
        run: RUN,
        column,
        descriptor: Descriptor(d as u16),
        generation: model.generations[d],
        mep,
    }
}

/// Feedback that the scheduler must count and not take.
fn lie(model: &Model, topology: &Topology, d: usize, how: u8) -> Feedback {
    let mut message = feedback(model, topology, d);
    let assigned = matches!(model.buffers[d], Buffer::Assigned(_));
    match how {
        1 => message.descriptor = Descriptor(topology.descriptors() as u16),
        2 => message.column += 1,
        3 if assigned => message.mep += 1,
        4 if assigned => message.generation += 1,
        _ => message.run += 1,
    }
    message
}

fn run(config: Config, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let now = Time::ZERO;
    let topology = config.topology.clone();
    let mut model = Model::new(&config);
    let mut scheduler = Scheduler::new(config, now).expect("a configuration");
    let mut out = Sink::default();
    let mut ring: Vec<Flow> = Vec::new();
    let mut before = 0;
    for op in ops {
        let out = &mut out;
        match op {
            Op::Trigger(count) => {
                scheduler.trigger(Source::Internal, count, now, out);
                (0..count).for_each(|_| model.trigger());
            }
            Op::Feedback(n) => {
                let d = n.index(topology.descriptors());
                let message = Message::Feedback(feedback(&model, &topology, d));
                scheduler.receive(now, &message, (), out);
                model.feedback(d);
            }
            Op::Lie(n, how) => {
                let d = n.index(topology.descriptors());
                let message = Message::Feedback(lie(&model, &topology, d, how));
                scheduler.receive(now, &message, (), out);
            }
            Op::Exclude(n) => {
                let node = n.index(topology.nodes());
                scheduler.exclude_node(node as u16, now, out);
                model.exclude(node);
            }
            Op::Readmit(n) => {
                let node = n.index(topology.nodes());
                scheduler.readmit_node(node as u16, now);
                model.readmit(node);
            }
            Op::Mode(mode) => {
                model.mode = mode;
                model.serve();
                let value = u32::from(mode == Mode::Wait);
                scheduler
                    .write(Register::Mode, value, now, out)
                    .expect("a mode");
            }
            Op::Return(n) if !ring.is_empty() => {
                let flow = ring.swap_remove(n.index(ring.len()));
                let pending = Feeders::NONE;
                scheduler.receive(now, &Message::Flow(Flow { pending, ..flow }), (), out);
                // Every message asks for the next receive buffer.
                model.serve();
            }
            Op::Decide(n) => {
                let sent = |mep: &Mep| matches!(mep, Mep::At { .. });
                let meps: Vec<usize> = (0..model.meps.len())
                    .filter(|&m| sent(&model.meps[m]))
                    .collect();
                let Some(&mep) = meps.get(n.index(meps.len().max(1))) else {
                    continue;
                };
                model.decide(mep);
                while model.meps.get(before) == Some(&Mep::Decided) {
                    before += 1;
                }
                let (mep, before) = (mep as u64, before as u64);
                let run = RUN;
                let decided = Message::Decided(Decided {
                    run,
                    mep,
                    bits: 1,
                    before,
                });
                scheduler.receive(now, &decided, (), out);
                model.serve();
            }
            Op::Return(_) => {}
        }
        ring.extend(&out.0);
        let sent = out.0.drain(..).map(|flow| Sent {
            mep: flow.mep,
            descriptor: flow.descriptor.0,
            generation: flow.generation,
        });
        prop_assert_eq!(sent.collect::<Vec<_>>(), std::mem::take(&mut model.sent));
        prop_assert_eq!(scheduler.pending(), model.waiting());
        prop_assert_eq!(scheduler.counters().triggers.pending_full, model.refused);
        for column in 0..topology.columns() {
            let register = Register::new(17, column as u8).expect("a register");
            let free = scheduler.read(register).expect("a column");
            prop_assert_eq!(free as usize, model.free_in(column));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn equals_the_brute_force_scheduler(
        config in config(),
        ops in prop::collection::vec(op(), 1..300),
    ) {
        run(config, ops)?;
    }
}
