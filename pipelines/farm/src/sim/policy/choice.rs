//! Policies by name.

use std::fmt;

use super::credits::Credits;
use super::free::Free;
use super::ring::Ring;
use super::rules::{Policy, Traffic};
use super::slots::Slots;
use crate::time::Time;

/// A policy, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyName {
    /// The flow-control ring of the thesis.
    Ring,
    /// Receivers ask.
    Credits,
    /// A barrel shifter.
    Slots,
    /// Sources send as fast as they can.
    None,
}

/// What policies need to know.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Destinations.
    pub traffic: Traffic,
    /// Sources.
    pub sources: u16,
    /// Nodes.
    pub nodes: u16,
    /// Latency of a message of the ring from source to source, and of a request.
    pub hop: Time,
    /// Ring: messages on it.
    pub messages: u32,
    /// Credits: fragments that a node has asked for.
    pub outstanding: u32,
    /// Slots: time of the barrier between them, if there is one.
    pub barrier: Option<Time>,
    /// None: events that a source may be ahead of the oldest that is not built; 0 without limit.
    pub window: u32,
}

impl PolicyName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ring, Self::Credits, Self::Slots, Self::None];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Credits => "credits",
            Self::Slots => "slots",
            Self::None => "none",
        }
    }

    /// The policy.
    #[must_use]
    pub fn build(self, plan: &Plan) -> Box<dyn Policy> {
        let Plan {
            traffic,
            sources,
            nodes,
            hop,
            ..
        } = *plan;
        match self {
            Self::Ring => Box::new(Ring::new(sources, nodes, hop, plan.messages)),
            Self::Credits => {
                let outstanding = plan.outstanding;
                Box::new(Credits::new(traffic, sources, nodes, hop, outstanding))
            }
            Self::Slots => Box::new(Slots::new(sources, nodes, plan.barrier)),
            Self::None => Box::new(Free::new(traffic, sources, nodes, plan.window)),
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
