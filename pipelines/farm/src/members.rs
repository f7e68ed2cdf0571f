//! The members of a loop: takes each message to the role that it is for, and polls the roles that are
//! due.

mod numbers;

pub use numbers::Numbers;

use crate::carrier::{Arrival, Carrier};
use crate::role::{Address, Role};
use crate::time::Time;

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
    F: Role<Payload = ()>,
    N: Role<Payload = Option<P>>,
{
    /// Takes a message to its member; false where that is not in the loop.
    #[inline]
    pub fn deliver(
        &mut self,
        now: Time,
        arrival: Arrival<P>,
        out: &mut impl Carrier<Payload = P>,
    ) -> bool {
        let message = &arrival.message;
        out.set_sender(arrival.to);
        match arrival.to {
            Address::Scheduler => {
                if let Some(scheduler) = &mut self.scheduler {
                    scheduler.receive(now, message, (), out);
                    return true;
                }
            }
            Address::Results => {
                if let Some(results) = &mut self.results {
                    results.receive(now, message, (), out);
                    return true;
                }
            }
            Address::Feeder(feeder) => {
                let place = usize::from(feeder).wrapping_sub(self.first_feeder);
                if let Some(feeder) = self.feeders.get_mut(place) {
                    feeder.receive(now, message, (), out);
                    return true;
                }
            }
            Address::Node(node) => {
                let place = self.node_numbers.place(node);
                if let Some(node) = place.and_then(|place| self.nodes.get_mut(place)) {
                    node.receive(now, message, arrival.payload, out);
                    self.due = self.due.min(node.next_deadline());
                    return true;
                }
            }
        }
        false
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
