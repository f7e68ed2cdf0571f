//! What a feeder sends: fragments for nodes of its loop are placed at once.

use super::Numbers;
use crate::carrier::Carrier;
use crate::fragments::{Fragments, Outgoing};
use crate::message::Message;
use crate::role::{Address, Outbox, Role, Transfer};
use crate::time::Time;

/// The outbox of a feeder, in front of the carrier of the loop.
pub(super) struct Near<'a, C, N> {
    pub(super) out: &'a mut C,
    /// The feeder.
    pub(super) from: Address,
    pub(super) now: Time,
    pub(super) numbers: Numbers,
    pub(super) nodes: &'a mut [N],
    /// When a node is to be polled next.
    pub(super) due: &'a mut Time,
}

impl<C, N> Outbox for Near<'_, C, N>
where
    C: Carrier,
    N: Role<Payload = Option<C::Payload>>,
{
    #[inline]
    fn send(&mut self, to: Address, message: &Message) {
        self.out.send(to, message);
    }

    #[inline]
    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        let to = Address::Node(node);
        let place = self.numbers.place(node);
        let Some(node) = place
            .and_then(|place| self.nodes.get_mut(place))
            .filter(|_| self.out.hands_over())
        else {
            return self.out.transfer(node, outgoing);
        };
        self.out.count_handed_over();
        if let Some(payload) = self.out.write(outgoing) {
            self.out.set_sender(to);
            let message = Message::Fragment(*outgoing.fragment());
            node.receive(self.now, &message, Some(payload), self.out);
            *self.due = (*self.due).min(node.next_deadline());
            self.out.set_sender(self.from);
        }
        Transfer::Done
    }
}
