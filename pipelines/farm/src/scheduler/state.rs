//! State of a scheduler.

use std::collections::VecDeque;

use super::buffers::Buffers;
use super::columns::{Choice, Columns};
use super::config::{Config, ConfigError};
use super::counters::Counters;
use super::flights::Flights;
use super::gather::Gather;
use super::peer::{Peer, interval};
use super::release::ReleaseMessage;
use super::repeats::Again;
use super::rounds::Shifter;
use crate::time::Time;
use crate::topology::{Feeders, Topology};

/// Why no event leaves the scheduler, though some wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// It is disabled.
    Disabled,
    /// All feeders are excluded.
    NoFeeder,
    /// All nodes are excluded.
    NoNode,
    /// No receive buffer that the discipline grants is free.
    Busy,
}

/// The scheduler.
#[derive(Debug)]
pub struct Scheduler {
    pub(super) config: Config,
    pub(super) columns: Columns,
    pub(super) buffers: Buffers,
    pub(super) flights: Flights,
    pub(super) nodes: Box<[Peer]>,
    pub(super) feeders: Box<[Peer]>,
    pub(super) results: Peer,
    /// Feeders that take part.
    pub(super) members: Feeders,
    /// The receive buffer of the next event.
    pub(super) ready: Option<Choice>,
    /// The first MEP that has never been sent.
    pub(super) unsent: u64,
    /// MEPs of excluded nodes.
    pub(super) reassigned: VecDeque<u64>,
    pub(super) again: Again,
    /// MEPs whose second part was asked for.
    pub(super) second: VecDeque<u64>,
    pub(super) shifter: Shifter,
    pub(super) triggers: Gather,
    /// All MEPs before this one are decided.
    pub(super) decided: u64,
    pub(super) release: ReleaseMessage,
    pub(super) watch: Time,
    pub(super) enabled: bool,
    pub(super) counters: Counters,
}

impl Scheduler {
    /// A scheduler that is enabled and knows no free buffer. All memory is allocated here.
    ///
    /// # Errors
    /// A configuration that cannot be.
    pub fn new(config: Config, now: Time) -> Result<Self, ConfigError> {
        config.check()?;
        let topology = &config.topology;
        let peers = |n: usize| vec![Peer::new(now); n].into_boxed_slice();
        Ok(Self {
            columns: Columns::new(&config),
            buffers: Buffers::new(topology.descriptors()),
            flights: Flights::new(config.in_flight),
            nodes: peers(topology.nodes()),
            feeders: peers(topology.feeders()),
            results: Peer::new(now),
            members: Feeders::first(topology.feeders()),
            ready: None,
            unsent: 0,
            reassigned: VecDeque::with_capacity(config.in_flight),
            again: Again::new(&config, now),
            second: VecDeque::with_capacity(config.in_flight),
            shifter: Shifter::new(config.in_flight),
            triggers: Gather::default(),
            decided: 0,
            release: ReleaseMessage::default(),
            watch: now + interval(&config),
            enabled: true,
            counters: Counters::default(),
            config,
        })
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The farm.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.config.topology
    }

    /// Feeders that take part.
    #[must_use]
    pub fn members(&self) -> Feeders {
        self.members
    }

    /// MEPs that wait for a receive buffer, those of excluded nodes with them.
    #[must_use]
    pub fn pending(&self) -> usize {
        (self.flights.next() - self.unsent) as usize + self.reassigned.len()
    }

    /// MEPs that are triggered, and not decided, still in the ring, or kept by feeders that do not
    /// know of the decision yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// All MEPs before this one are decided.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// MEPs that were triggered.
    #[must_use]
    pub fn triggered(&self) -> u64 {
        self.flights.next()
    }

    /// When the first event of a MEP in flight was triggered.
    #[must_use]
    pub fn triggered_at(&self, mep: u64) -> Option<Time> {
        self.flights.look(mep).map(|flight| flight.triggered)
    }

    /// Free receive buffers of a column, the one of the next event included.
    #[must_use]
    pub fn free(&self, column: u8) -> usize {
        let ready = self.ready.is_some_and(|choice| choice.column == column);
        self.columns.queued(column) + usize::from(ready)
    }

    /// Whether nothing is left to do: all events are decided, all messages have returned, and the
    /// feeders know.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flights.len() == 0 && self.triggers.gathered() == 0
    }

    /// Why nothing leaves the scheduler, if that is so and events wait.
    #[must_use]
    pub fn stall(&self) -> Option<Stall> {
        if self.pending() == 0 {
            return None;
        }
        let gone = |peers: &[Peer]| peers.iter().all(|peer| peer.excluded.is_some());
        if !self.enabled {
            Some(Stall::Disabled)
        } else if self.members.is_empty() {
            Some(Stall::NoFeeder)
        } else if gone(&self.nodes) {
            Some(Stall::NoNode)
        } else {
            self.ready.is_none().then_some(Stall::Busy)
        }
    }
}
