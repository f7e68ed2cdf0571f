//! The seam between a role and what carries its messages.

use crate::fragments::{Fragments, Outgoing};
use crate::message::{Flow, Fragment, Message};
use crate::time::Time;
use crate::topology::Feeders;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// The scheduler.
    Scheduler,
    /// A feeder.
    Feeder(u8),
    /// A computing node.
    Node(u16),
    /// The result node.
    Results,
}

/// State of a transfer that was handed to a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// The sender's side of it is complete: its data are on their way.
    Done,
    /// It runs; [`Feeder::transferred`](crate::feeder::Feeder::transferred) is called at its end.
    Running,
}

/// Takes the messages of a role: frames of a port, or the links of a simulation.
///
/// A carrier may lose, damage, repeat and reorder messages; it does not wait.
pub trait Outbox {
    /// Sends a message without payload.
    fn send(&mut self, to: Address, message: &Message);

    /// Starts the transfer of a fragment to a node. The carrier has [`Outgoing::write`] write the
    /// data straight from the feeder's store into a frame.
    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer;
}

/// A role of the farm. Time never goes backwards from call to call.
pub trait Role {
    /// The carrier's handle of the payload of a fragment: a packet buffer in a run, nothing in a
    /// simulation. A node keeps it until the event is decided; no payload is copied. Roles that
    /// get no payload have `()`.
    type Payload;

    /// Takes a message. A payload that comes with another message than a fragment is dropped.
    fn receive(
        &mut self,
        now: Time,
        message: &Message,
        payload: Self::Payload,
        out: &mut impl Outbox,
    );

    /// Does what is due.
    fn poll(&mut self, now: Time, out: &mut impl Outbox);

    /// When something is due next: the latest moment of the next call of [`Self::poll`].
    fn next_deadline(&self) -> Time;
}

/// A member of the flow control ring.
pub trait Hop: Role {
    /// Takes a flow control message, as [`Role::receive`] does, and changes it to the one that goes on
    /// to the member that is returned. The caller sends it, or takes it there.
    fn pass(&mut self, flow: &mut Flow, out: &mut impl Outbox) -> Option<Address>;
}

/// A role that takes fragments: a node.
pub trait Builder: Role {
    /// Takes fragments that differ in their feeders alone: those of `feeders`, in the order of their
    /// numbers, with as many payloads. Each is taken as [`Role::receive`] takes it. Where there are fewer
    /// payloads, the fragments of the last feeders have not arrived; payloads beyond are dropped.
    #[inline]
    fn receive_all(
        &mut self,
        now: Time,
        fragment: &Fragment,
        feeders: Feeders,
        payloads: impl Iterator<Item = Self::Payload>,
        out: &mut impl Outbox,
    ) {
        for (feeder, payload) in feeders.iter().zip(payloads) {
            let fragment = Fragment {
                feeder,
                ..*fragment
            };
            self.receive(now, &Message::Fragment(fragment), payload, out);
        }
    }
}
