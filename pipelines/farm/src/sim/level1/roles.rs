//! The roles of a farm.

use super::cpu::Cpus;
use super::plan::{FarmError, Plan};
use super::post::Post;
use super::store::Store;
use crate::message::Message;
use crate::role::{Address, Role};
use crate::scheduler::{self, Scheduler};
use crate::time::Time;
use crate::topology::Topology;
use crate::wire::payload::{padded, table_len};
use crate::{feeder, node, results};

/// Time between two signs of life.
const BEAT: Time = Time::from_ns(20_000_000);
/// Events that may be undecided.
pub(super) const IN_FLIGHT: usize = 1 << 15;
/// Longer than any event waits for a processor: nothing fails in this farm.
const PATIENCE: Time = Time::from_ns(100_000_000_000);

/// Where a role is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Scheduler,
    Results,
    Feeder(u8),
    Node(u16),
}

/// All roles, and when each is polled next.
#[derive(Debug)]
pub(super) struct Roles {
    pub(super) scheduler: Scheduler,
    pub(super) feeders: Vec<feeder::Feeder<Store>>,
    pub(super) nodes: Vec<node::Node<(), Cpus>>,
    results: results::Results,
    polls: Polls,
}

/// Time of the next poll of each role.
#[derive(Debug)]
struct Polls {
    scheduler: Time,
    results: Time,
    feeders: Vec<Time>,
    nodes: Vec<Time>,
}

impl Roles {
    /// The roles at time zero.
    pub(super) fn new(plan: &Plan, seed: u64) -> Result<Self, FarmError> {
        let (feeders, nodes) = (plan.geometry.feeders(), plan.geometry.nodes);
        // In one column any node may follow any other.
        let columns = if plan.ring { plan.geometry.columns } else { 1 };
        let column_of: Vec<_> = (0..nodes).map(|n| (n % columns) as u8).collect();
        let buffers = plan.buffers.into();
        let topology = Topology::new(feeders.into(), columns.into(), &column_of, buffers)?;
        let store = Store::new(plan.bytes, plan.big, plan.factor, seed);
        let payload = |bytes| table_len(1) + padded(bytes).unwrap_or(bytes);
        let slot = payload(plan.bytes * plan.factor.max(1));
        let mut config = scheduler::Config::new(1, topology.clone());
        config.in_flight = IN_FLIGHT;
        config.loops = plan.bypass;
        config.event_timeout = PATIENCE;
        config.ring_timeout = PATIENCE;
        if plan.ring && plan.geometry.feeders_per_row == 2 {
            // The feeders of a row in turn, before each half of the columns (figure III-8).
            config.partition_of = (0..columns).map(|x| u8::from(2 * x >= columns)).collect();
        }
        let feeder = |id| {
            let config = feeder::Config {
                run: 1,
                id,
                slot,
                in_flight: IN_FLIGHT,
                bypass_above: payload(plan.bytes),
                beat: BEAT,
            };
            feeder::Feeder::new(config, &topology, store, Time::ZERO)
        };
        let node = |id| {
            let config = node::Config {
                run: 1,
                id,
                slot,
                workers: plan.cpus.into(),
                beat: BEAT,
            };
            node::Node::new(config, &topology, Cpus::new(plan.work), Time::ZERO)
        };
        let result = results::Config {
            run: 1,
            in_flight: IN_FLIGHT,
            beat: BEAT,
        };
        Ok(Self {
            scheduler: Scheduler::new(config, Time::ZERO)?,
            feeders: (0..feeders as u8).map(feeder).collect::<Result<_, _>>()?,
            nodes: (0..nodes).map(node).collect::<Result<_, _>>()?,
            results: results::Results::new(result, &topology, Time::ZERO)?,
            polls: Polls {
                scheduler: Time::MAX,
                results: Time::MAX,
                feeders: vec![Time::MAX; feeders.into()],
                nodes: vec![Time::MAX; nodes.into()],
            },
        })
    }

    /// Where all of them are.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + use<> {
        let feeders = (0..self.feeders.len() as u8).map(Place::Feeder);
        let nodes = (0..self.nodes.len() as u16).map(Place::Node);
        let first = [Place::Scheduler, Place::Results];
        first.into_iter().chain(feeders).chain(nodes)
    }

    /// Has a role do what is due.
    pub(super) fn poll(&mut self, place: Place, now: Time, post: &mut Post) {
        match place {
            Place::Scheduler => self.scheduler.poll(now, post),
            Place::Results => self.results.poll(now, post),
            Place::Feeder(id) => self.feeders[usize::from(id)].poll(now, post),
            Place::Node(id) => self.nodes[usize::from(id)].poll(now, post),
        }
        *self.polls.of(place) = Time::MAX;
    }

    /// Gives a message to a role.
    pub(super) fn receive(
        &mut self,
        to: Address,
        message: &Message,
        now: Time,
        post: &mut Post,
    ) -> Place {
        match to {
            Address::Scheduler => {
                self.scheduler.receive(now, message, (), post);
                Place::Scheduler
            }
            Address::Results => {
                self.results.receive(now, message, (), post);
                while self.results.fetch().is_some() {}
                Place::Results
            }
            Address::Feeder(id) => {
                self.feeders[usize::from(id)].receive(now, message, (), post);
                Place::Feeder(id)
            }
            Address::Node(id) => {
                self.nodes[usize::from(id)].receive(now, message, (), post);
                Place::Node(id)
            }
        }
    }

    /// When a role is to be polled, if that is earlier than it would be.
    pub(super) fn wants_poll(&mut self, place: Place) -> Option<Time> {
        let deadline = match place {
            Place::Scheduler => self.scheduler.next_deadline(),
            Place::Results => self.results.next_deadline(),
            Place::Feeder(id) => self.feeders[usize::from(id)].next_deadline(),
            Place::Node(id) => self.nodes[usize::from(id)].next_deadline(),
        };
        let next = self.polls.of(place);
        (deadline < *next).then(|| {
            *next = deadline;
            deadline
        })
    }
}

impl Polls {
    fn of(&mut self, place: Place) -> &mut Time {
        match place {
            Place::Scheduler => &mut self.scheduler,
            Place::Results => &mut self.results,
            Place::Feeder(id) => &mut self.feeders[usize::from(id)],
            Place::Node(id) => &mut self.nodes[usize::from(id)],
        }
    }
}
