//! What feeders send: fragments for nodes of their loop are placed there.

use super::Numbers;
use crate::carrier::Carrier;
use crate::fragments::{Fragments, Outgoing};
use crate::message::{Fragment, Message};
use crate::role::{Address, Builder, Outbox, Transfer};
use crate::time::Time;
use crate::topology::Feeders;

/// The outbox of feeders, in front of the carrier of the loop.
pub(super) struct Near<'a, C, N> {
    pub(super) out: &'a mut C,
    /// The feeder.
    pub(super) from: Address,
    pub(super) now: Time,
    pub(super) numbers: Numbers,
    pub(super) nodes: &'a mut [N],
    /// When a node is to be polled next.
    pub(super) due: &'a mut Time,
    /// Fragments that are written, and not yet at the node.
    pub(super) written: Option<Written>,
}

/// Fragments of one MEP, which differ in their feeders alone.
pub(super) struct Written {
    /// That of the last feeder.
    fragment: Fragment,
    feeders: Feeders,
    /// Their node.
    node: u16,
    place: usize,
}

impl Written {
    /// Whether a fragment is one of them, and follows the last one.
    #[inline]
    fn precedes(&self, fragment: &Fragment) -> bool {
        let last = Fragment {
            feeder: fragment.feeder,
            ..self.fragment
        };
        fragment.feeder > self.fragment.feeder && *fragment == last
    }
}

impl<C, N> Near<'_, C, N>
where
    C: Carrier,
    N: Builder<Payload = Option<C::Payload>>,
{
    /// Takes the fragments that are written to their node, all at a time: what is looked up and compared for
    /// one holds for the others.
    #[inline]
    pub(super) fn deliver(&mut self) {
        let Some(written) = self.written.take() else {
            return;
        };
        let (fragment, feeders) = (&written.fragment, written.feeders);
        let mut payloads = self.out.written(fragment.bytes as usize).map(Some);
        if let Some(node) = self.nodes.get_mut(written.place) {
            self.out.set_sender(Address::Node(written.node));
            // A long payload has a buffer to itself.
            if feeders == Feeders::only(fragment.feeder)
                && let Some(payload) = payloads.next()
            {
                let message = Message::Fragment(*fragment);
                node.receive(self.now, &message, payload, self.out);
            } else {
                node.receive_all(self.now, fragment, feeders, payloads, self.out);
            }
            *self.due = (*self.due).min(node.next_deadline());
            self.out.set_sender(self.from);
        }
    }

    /// Begins with a fragment for a node of the loop; false where that is not there.
    #[inline]
    fn begin(&mut self, node: u16, fragment: &Fragment) -> bool {
        let place = self.numbers.place(node).filter(|_| self.out.hands_over());
        let Some(place) = place.filter(|&place| place < self.nodes.len()) else {
            return false;
        };
        self.deliver();
        self.written = Some(Written {
            fragment: *fragment,
            feeders: Feeders::NONE,
            node,
            place,
        });
        true
    }
}

impl<C, N> Outbox for Near<'_, C, N>
where
    C: Carrier,
    N: Builder<Payload = Option<C::Payload>>,
{
    #[inline]
    fn send(&mut self, to: Address, message: &Message) {
        self.out.send(to, message);
    }

    #[inline]
    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        let fragment = &outgoing.fragment();
        let has_room = self.out.has_room(outgoing.payload_len());
        let written = self.written.as_ref().filter(|_| has_room);
        let follows = written.is_some_and(|written| written.precedes(fragment));
        if !follows && !self.begin(node, fragment) {
            return self.out.transfer(node, outgoing);
        }
        self.out.count_handed_over();
        if self.out.write(outgoing)
            && let Some(written) = &mut self.written
        {
            written.fragment.feeder = fragment.feeder;
            written.feeders = written.feeders.with(Feeders::only(fragment.feeder));
        }
        Transfer::Done
    }
}
