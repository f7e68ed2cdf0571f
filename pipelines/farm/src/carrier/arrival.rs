//! The seam between a loop and its carrier.

use crate::fragments::{Fragments, Outgoing};
use crate::message::Message;
use crate::role::{Address, Outbox};

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

    /// The member that sends from now on.
    fn set_sender(&mut self, from: Address);

    /// Takes the next message that has arrived for a member of the loop. What is no message is
    /// counted and dropped.
    fn next(&mut self) -> Option<Arrival<Self::Payload>>;

    /// Whether messages of members of the loop to each other need no frames: who delivers them may
    /// hand them over.
    fn hands_over(&self) -> bool;

    /// A message was handed over.
    fn count_handed_over(&mut self);

    /// The payload of a fragment that is handed over. What cannot be written is counted.
    fn write(&mut self, outgoing: &Outgoing<'_, impl Fragments>) -> Option<Self::Payload>;

    /// Sends what was gathered since the last call.
    fn flush(&mut self);
}
