//! The seam between a loop and its carrier.

use crate::fragments::{Fragments, Outgoing};
use crate::message::{Fragment, Message};
use crate::role::{Address, Outbox};
use crate::topology::Feeders;

/// A message that arrived for a member.
#[derive(Debug)]
pub struct Arrival<P> {
    /// The member.
    pub to: Address,
    /// The message.
    pub message: Message,
    /// The payload of a fragment, checked.
    pub payload: Option<P>,
}

/// Moves messages between the members of a farm.
pub trait Carrier: Outbox {
    /// Handle of the payload of a fragment, which keeps it where it arrived.
    type Payload;

    /// Payloads of fragments that differ in their feeders alone, in the order of the feeders.
    type Payloads: Iterator<Item = Self::Payload>;

    /// The member that sends from now on.
    fn set_sender(&mut self, from: Address);

    /// Takes the next message that has arrived for a member of the loop. What is no message is
    /// counted and dropped.
    fn next(&mut self) -> Option<Arrival<Self::Payload>>;

    /// Takes the fragments behind one that [`Self::next`] has just returned which differ from it in
    /// the feeder alone, if their feeders are in order: the feeders, and the payloads.
    fn following(&mut self, fragment: &Fragment) -> Option<(Feeders, Self::Payloads)>;

    /// Whether messages of members of the loop to each other need no frames: who delivers them may
    /// hand them over.
    fn hands_over(&self) -> bool;

    /// A message was handed over.
    fn count_handed_over(&mut self);

    /// Whether one more payload of so many bytes has room behind those that were written.
    fn has_room(&self, bytes: usize) -> bool;

    /// Writes the payload of a fragment that is handed over, behind those that were written before. Where
    /// it cannot be written, that is counted, and false.
    fn write(&mut self, outgoing: &Outgoing<'_, impl Fragments>) -> bool;

    /// The payloads that were written since the last call, of so many bytes each.
    fn written(&mut self, bytes: usize) -> Self::Payloads;

    /// Has the network learn where the members of the loop are, where that is not known without: a switch
    /// learns it from frames alone.
    fn announce(&mut self) {}

    /// Sends what was gathered since the last call.
    fn flush(&mut self);
}
