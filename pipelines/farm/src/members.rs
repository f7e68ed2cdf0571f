//! The members of a loop: takes each message to the role that it is for, and polls the roles that are
//! due.

mod near;
mod numbers;

pub use numbers::Numbers;

use crate::carrier::{Arrival, Carrier};
use crate::message::Message;
use crate::role::{Address, Builder, Hop, Role};
use crate::time::Time;
use near::Near;

/// The members of a loop. `S`, `R`, `F` and `N` are the roles of the scheduler, the result node, the
/// feeders and the nodes, or what a program wraps around them.
#[derive(Debug)]
pub struct Members<S, R, F, N> {
    /// The scheduler, if it is here.
    pub scheduler: Option<S>,
    /// The result node, if it is here.
    pub results: Option<R>,
    /// Number of the first feeder.
    pub first_feeder: usize,
    /// Feeders from that number on.
    pub feeders: Vec<F>,
    /// Numbers of the nodes.
    pub node_numbers: Numbers,
    /// Nodes, in the order of their numbers.
    pub nodes: Vec<N>,
    /// When one beside the scheduler is to be polled next.
    pub due: Time,
}

impl<S, R, F, N, P> Members<S, R, F, N>
where
    S: Role<Payload = ()>,
    R: Role<Payload = ()>,
    F: Hop<Payload = ()>,
    N: Builder<Payload = Option<P>>,
{
    /// Takes a message to its member; false where that is not in the loop, and for a fragment without its
    /// payload.
    #[inline]
    pub fn deliver(
        &mut self,
        now: Time,
        arrival: Arrival<P>,
        out: &mut impl Carrier<Payload = P>,
    ) -> bool {
        let message = &arrival.message;
        match arrival.to {
            Address::Scheduler => {
                out.set_sender(arrival.to);
                if let Some(scheduler) = &mut self.scheduler {
                    scheduler.receive(now, message, (), out);
                    return true;
                }
            }
            Address::Results => {
                out.set_sender(arrival.to);
                if let Some(results) = &mut self.results {
                    results.receive(now, message, (), out);
                    return true;
                }
            }
            Address::Feeder(feeder) => return self.feed(now, feeder, message, out),
            Address::Node(node) => {
                out.set_sender(arrival.to);
                let place = self.node_numbers.place(node);
                if let Some(node) = place.and_then(|place| self.nodes.get_mut(place)) {
                    if matches!(message, Message::Fragment(_)) && arrival.payload.is_none() {
                        return false;
                    }
                    node.receive(now, message, arrival.payload, out);
                    // What is in the frame behind it is of the same MEP as a rule.
                    if let Message::Fragment(fragment) = message
                        && let Some((feeders, payloads)) = out.following(fragment)
                    {
                        node.receive_all(now, fragment, feeders, payloads.map(Some), out);
                    }
                    self.due = self.due.min(node.next_deadline());
                    return true;
                }
            }
        }
        false
    }

    /// Takes a message to a feeder of the loop; false where it is not there.
    ///
    /// A flow control message goes from feeder to feeder of the loop, and their fragments are placed where
    /// the event is built, before anything else is delivered. What an event needs stays in the
    /// first-level cache that way, however many events are under way.
    #[inline]
    fn feed(
        &mut self,
        now: Time,
        id: u8,
        message: &Message,
        out: &mut impl Carrier<Payload = P>,
    ) -> bool {
        let place = |id: u8| usize::from(id).wrapping_sub(self.first_feeder);
        let Some(mut feeder) = self.feeders.get_mut(place(id)) else {
            return false;
        };
        let from = Address::Feeder(id);
        out.set_sender(from);
        let mut near = Near {
            out,
            from,
            now,
            numbers: self.node_numbers,
            nodes: &mut self.nodes,
            due: &mut self.due,
            written: None,
        };
        let Message::Flow(flow) = message else {
            feeder.receive(now, message, (), &mut near);
            near.deliver();
            return true;
        };
        let mut flow = *flow;
        while let Some(to) = feeder.pass(&mut flow, &mut near) {
            let next = match to {
                Address::Feeder(id) if near.out.hands_over() => self.feeders.get_mut(place(id)),
                _ => None,
            };
            let Some(next) = next else {
                near.out.send(to, &Message::Flow(flow));
                break;
            };
            near.out.count_handed_over();
            near.from = to;
            near.out.set_sender(to);
            feeder = next;
        }
        near.deliver();
        true
    }

    /// Polls the scheduler, and the others where one of them is due.
    #[inline]
    pub fn poll(&mut self, now: Time, out: &mut impl Carrier) {
        if now >= self.due {
            self.poll_due(now, out);
        }
        if let Some(scheduler) = &mut self.scheduler {
            out.set_sender(Address::Scheduler);
            scheduler.poll(now, out);
        }
    }

    #[cold]
    fn poll_due(&mut self, now: Time, out: &mut impl Carrier) {
        let mut due = Time::MAX;
        for (n, feeder) in (self.first_feeder..).zip(&mut self.feeders) {
            out.set_sender(Address::Feeder(n as u8));
            feeder.poll(now, out);
            due = due.min(feeder.next_deadline());
        }
        for (n, node) in self.node_numbers.iter().zip(&mut self.nodes) {
            out.set_sender(Address::Node(n));
            node.poll(now, out);
            due = due.min(node.next_deadline());
        }
        if let Some(results) = &mut self.results {
            out.set_sender(Address::Results);
            results.poll(now, out);
            due = due.min(results.next_deadline());
        }
        self.due = due;
    }
}
