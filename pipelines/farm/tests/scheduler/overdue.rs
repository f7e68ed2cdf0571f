//! Time-outs of events that a node does not finish.

use pollux_farm::message::{Alive, Decided, Feedback, Flow, Member, Message};
use pollux_farm::role::Role;
use pollux_farm::scheduler::{Config, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::{Descriptor, Feeders, Topology};

use super::{RUN, Sink};

const FEEDERS: u8 = 4;
pub(super) const TIMEOUT: Time = Time::from_ns(10_000_000);
const TRIES: u16 = 12;

/// A scheduler with one node, which has one receive buffer. All members are heard.
pub(super) struct Farm {
    pub(super) scheduler: Scheduler,
    pub(super) out: Sink,
    pub(super) now: Time,
}

impl Farm {
    pub(super) fn new() -> Self {
        let topology = Topology::regular(FEEDERS.into(), 1, 1, 1).expect("a farm");
        let config = Config {
            ring_timeout: TIMEOUT,
            event_timeout: TIMEOUT,
            tries: TRIES,
            ..Config::new(RUN, topology)
        };
        let mut farm = Self {
            scheduler: Scheduler::new(config, Time::ZERO).expect("a configuration"),
            out: Sink::default(),
            now: Time::ZERO,
        };
        farm.feedback(0, u64::MAX);
        farm
    }

    fn receive(&mut self, message: &Message) {
        let now = self.now;
        self.scheduler.receive(now, message, (), &mut self.out);
    }

    fn feedback(&mut self, generation: u32, mep: u64) {
        self.receive(&Message::Feedback(Feedback {
            run: RUN,
            column: 0,
            descriptor: Descriptor(0),
            generation,
            mep,
        }));
    }

    pub(super) fn returned(&mut self, flow: &Flow) {
        let pending = Feeders::NONE;
        self.receive(&Message::Flow(Flow { pending, ..*flow }));
    }

    /// The message of an event, if it was sent. What tells the feeders what is decided returns.
    fn sent(&mut self) -> Option<Flow> {
        let mut found = None;
        for flow in std::mem::take(&mut self.out.0) {
            if flow.count == 0 {
                self.returned(&flow);
            } else {
                assert_eq!(found.replace(flow), None);
            }
        }
        found
    }

    pub(super) fn trigger(&mut self) -> Flow {
        let now = self.now;
        (self.scheduler).trigger(Source::Internal, 1, now, &mut self.out);
        self.sent().expect("a free receive buffer")
    }

    /// The fragments of an event are lost: its message is sent again, unless the node is excluded.
    fn lose(&mut self, flow: &Flow) -> Option<Flow> {
        self.returned(flow);
        while !self.scheduler.is_excluded(0) {
            self.now = self.now + Time::from_ns(1_000_000);
            let feeders = (0..FEEDERS).map(Member::Feeder);
            for from in feeders.chain([Member::Node(0), Member::Results]) {
                self.receive(&Message::Alive(Alive { run: RUN, from }));
            }
            self.scheduler.poll(self.now, &mut self.out);
            if let Some(flow) = self.sent() {
                return Some(flow);
            }
        }
        None
    }

    /// The node decides an event before its message returns.
    pub(super) fn finish(&mut self, flow: &Flow) {
        self.feedback(flow.generation, flow.mep);
        self.receive(&Message::Decided(Decided {
            run: RUN,
            mep: flow.mep,
            bits: 1,
            before: flow.mep + 1,
        }));
        self.returned(flow);
        assert_eq!(self.scheduler.decided(), flow.mep + 1);
    }

    fn times_out(&mut self, times: usize) {
        let mut flow = self.trigger();
        for _ in 0..times {
            flow = self.lose(&flow).expect("a node that is not excluded");
        }
        self.finish(&flow);
    }
}

/// Events that are built before their messages return end the doubling of time-outs, as those do
/// that are built later.
#[test]
fn what_is_built_early_ends_doubling() {
    let mut farm = Farm::new();
    farm.times_out(2);
    assert_eq!(farm.scheduler.timeout(), Time::from_ps(4 * TIMEOUT.ps()));
    farm.times_out(0);
    assert_eq!(farm.scheduler.timeout(), TIMEOUT);
}

/// A time-out that is longer than all tries does not exclude a node for one loss.
#[test]
fn one_loss_excludes_no_node() {
    let mut farm = Farm::new();
    farm.times_out(3);
    farm.times_out(1);
    assert!(farm.scheduler.timeout().ps() > u64::from(TRIES) * TIMEOUT.ps());
    farm.times_out(1);
    farm.times_out(1);
    assert!(!farm.scheduler.is_excluded(0));
    assert_eq!(farm.scheduler.counters().exclusions.reassigned, 0);
}

/// A node that never finishes is excluded after four time-outs, however long they are.
#[test]
fn a_node_that_never_finishes_is_excluded() {
    let mut farm = Farm::new();
    farm.times_out(3);
    farm.times_out(3);
    let mut flow = farm.trigger();
    let mut times = 1;
    while let Some(again) = farm.lose(&flow) {
        flow = again;
        times += 1;
    }
    assert_eq!(times, 4);
    assert_eq!(farm.scheduler.counters().exclusions.overdue_nodes, 1);
}
