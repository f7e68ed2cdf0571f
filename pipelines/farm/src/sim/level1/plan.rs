//! What a farm is made of.

use super::bus::Gaps;
use crate::sim::torus::Geometry;
use crate::time::Time;
use crate::topology::TopologyError;
use crate::{feeder, node, results, scheduler};

/// When events come.
#[derive(Clone, Copy, Debug)]
pub enum Triggers {
    /// At equal intervals.
    Regular(Time),
    /// As many as the ring takes.
    Max,
}

/// A farm.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The torus.
    pub geometry: Geometry,
    /// Triggers.
    pub triggers: Triggers,
    /// Events.
    pub events: u64,
    /// Bytes of a fragment.
    pub bytes: u32,
    /// Share of events that are larger.
    pub big: f64,
    /// By this factor.
    pub factor: u32,
    /// From one feeder to the next, beside the transfer.
    pub hop: Time,
    /// Rounds in which a busy feeder passes a message on.
    pub bypass: u8,
    /// Receive buffers of a node.
    pub buffers: u16,
    /// Processors of a node.
    pub cpus: u16,
    /// Time that one works on an event.
    pub work: Time,
    /// Whether the rules of the thesis are kept. Otherwise all feeders get a message at once, and events
    /// that follow each other go to one node (thesis, IV.E.2).
    pub ring: bool,
    /// The driver on the buses of the feeders.
    pub gaps: Option<Gaps>,
    /// The node whose latency is measured from message to feedback; all if there is none.
    pub probe: Option<u16>,
}

/// A farm that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FarmError {
    /// Its nodes, columns or feeders.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Its scheduler.
    #[error(transparent)]
    Scheduler(#[from] scheduler::ConfigError),
    /// A feeder.
    #[error(transparent)]
    Feeder(#[from] feeder::ConfigError),
    /// A node.
    #[error(transparent)]
    Node(#[from] node::ConfigError),
    /// The result node.
    #[error(transparent)]
    Results(#[from] results::ConfigError),
}
