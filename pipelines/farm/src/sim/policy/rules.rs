//! What a policy sees and decides.

use crate::sim::network::{Fragment, Note};
use crate::sim::sizes::Sizes;
use crate::time::Time;

/// Decides when a source sends which fragment.
///
/// Events are numbered from 0 in the order of their triggers. A source gives its fragments to the
/// network when the policy orders it, and each call may add orders.
pub trait Policy {
    /// The events below this number are at the sources.
    fn available(&mut self, events: u32, orders: &mut Orders);

    /// The last byte of a fragment has left its source.
    fn sent(&mut self, _fragment: &Fragment, _orders: &mut Orders) {}

    /// A fragment has reached its node, or was lost.
    fn ended(&mut self, _fragment: &Fragment, _orders: &mut Orders) {}

    /// A message that the policy has sent arrives.
    fn noted(&mut self, _note: Note, _orders: &mut Orders) {}

    /// All fragments of the events below this number have ended.
    fn settled(&mut self, _events: u32, _orders: &mut Orders) {}

    /// Whether a source may send the fragments that it was ordered to send in any order.
    fn is_unordered(&self) -> bool {
        false
    }
}

/// Decisions of a policy.
#[derive(Debug, Default)]
pub struct Orders {
    /// Fragments to send: event, source and node.
    pub sends: Vec<Note>,
    /// Messages to deliver, each after a delay.
    pub notes: Vec<(Time, Note)>,
}

impl Orders {
    /// A source sends its fragment of an event to a node.
    pub fn send(&mut self, event: u32, source: u16, node: u16) {
        self.sends.push(Note {
            event,
            source,
            node,
        });
    }

    /// A message reaches a source after a delay.
    pub fn note(&mut self, after: Time, note: Note) {
        self.notes.push((after, note));
    }
}

/// Destinations of fragments.
#[derive(Clone, Copy, Debug)]
pub enum Traffic {
    /// All fragments of an event go to one node, events to the nodes in turn.
    Building,
    /// Each fragment goes to a node at random, and is an event of its own.
    Uniform(Sizes),
}

impl Traffic {
    /// The node for a source's fragment of an event.
    #[must_use]
    pub fn node(&self, event: u32, source: u16, nodes: u16) -> u16 {
        match self {
            Self::Building => (event % u32::from(nodes.max(1))) as u16,
            Self::Uniform(sizes) => sizes.pick(event, source, nodes.max(1)),
        }
    }
}
