//! What a network model is given, and what it reports.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::hash::Hash;

use super::link::Link;
use crate::sim::engine::Engine;
use crate::time::Time;

/// A fragment on its way: what one source sends to one node for one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// When it was given to the network.
    pub ordered: Time,
    /// Number of its event.
    pub event: u32,
    /// Its size.
    pub bytes: u32,
    /// The sender.
    pub source: u16,
    /// The receiver.
    pub node: u16,
}

/// What became of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its last byte has left the source.
    Sent(Fragment),
    /// Its last byte has reached the node.
    Arrived(Fragment),
    /// The network has dropped it.
    Lost(Fragment),
}

/// A message between the parts of a policy, delivered after a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Event that it is about.
    pub event: u32,
    /// Source that gets it.
    pub source: u16,
    /// Node that it is about.
    pub node: u16,
}

/// An event of the simulation of an event builder.
#[derive(Clone, Copy, Debug, Hash)]
pub enum Event<E> {
    /// The detector has another event.
    Trigger,
    /// A message of the policy arrives.
    Note(Note),
    /// An event of the network.
    Network(E),
}

/// Access of a network model to the engine.
#[derive(Debug)]
pub struct Agenda<'a, E> {
    engine: &'a mut Engine<Event<E>>,
    outcomes: &'a mut VecDeque<Outcome>,
}

impl<'a, E: Copy + Hash> Agenda<'a, E> {
    /// Access to this engine; outcomes are appended to the queue.
    #[must_use]
    pub fn new(engine: &'a mut Engine<Event<E>>, outcomes: &'a mut VecDeque<Outcome>) -> Self {
        Self { engine, outcomes }
    }

    /// Schedules an event of the network.
    pub fn after(&mut self, delay: Time, event: E) {
        self.engine.after(delay, Event::Network(event));
    }

    /// Reports what became of a fragment.
    pub fn report(&mut self, outcome: Outcome) {
        self.outcomes.push_back(outcome);
    }
}

/// A model of a network.
///
/// A fragment is sent as soon as the network permits. Outcomes are reported through the agenda:
/// [`Outcome::Sent`] once, and then [`Outcome::Arrived`] or [`Outcome::Lost`] once.
pub trait Network {
    /// What happens in it.
    type Event: Copy + Hash + Debug;

    /// Gives a fragment to the adapter of its source.
    fn send(&mut self, fragment: Fragment, agenda: &mut Agenda<'_, Self::Event>);

    /// Handles an event that the network has scheduled.
    fn handle(&mut self, event: Self::Event, agenda: &mut Agenda<'_, Self::Event>);

    /// The links of sources and nodes.
    fn link(&self) -> Link;

    /// Time that a fragment of this size needs from source to node in an empty network.
    fn unloaded(&self, bytes: u32) -> Time;

    /// Highest fill level of any buffer inside the network, where there are buffers.
    fn peak_bytes(&self) -> Option<u64> {
        None
    }
}
