//! A node that asks feeders for its fragments (policy `credits`).

use super::buffer::Place;
#[cfg(doc)]
use super::requests::CREDITS;
use super::requests::Requests;
use super::{ConfigError, Node, Work};
use crate::message::{Assign, Message};
use crate::role::{Address, Outbox};
#[cfg(doc)]
use crate::scheduler::Policy;
use crate::time::Time;
use crate::topology::Feeders;

impl<P, W: Work<P>> Node<P, W> {
    /// Sets how many fragments the node may have asked for and not received, instead of
    /// [`CREDITS`], for runs whose scheduler has [`Policy::Credits`].
    ///
    /// Fragments that the node did not ask for begin no MEP then, and from the first assignment on
    /// without this call too.
    ///
    /// # Errors
    /// No credit.
    pub fn with_credits(self, credits: usize) -> Result<Self, ConfigError> {
        if credits == 0 {
            return Err(ConfigError::NoCredit);
        }
        let (buffers, feeders) = (self.buffers.len(), self.topology.feeders());
        Ok(Self {
            requests: Requests::new(
                credits,
                buffers,
                (self.config.id, feeders),
                self.config.beat,
            ),
            asks: true,
            ..self
        })
    }

    /// Takes a MEP, and asks for its fragments.
    pub(super) fn assigned(&mut self, assign: &Assign, now: Time, out: &mut impl Outbox) {
        let place = self.topology.buffer_of(assign.descriptor);
        let Some((_, n)) = place.filter(|place| place.0 == self.config.id) else {
            self.counters.misrouted += 1;
            return;
        };
        let all = Feeders::first(self.topology.feeders());
        if !assign.members.without(all).is_empty() {
            self.counters.no_feeder += 1;
            return;
        }
        self.asks = true;
        let buffer = &mut self.buffers[n];
        let before = (buffer.generation(), buffer.part());
        let Some(place) = buffer.assign(assign, &mut self.counters) else {
            return;
        };
        let same = before == (buffer.generation(), buffer.part());
        let kept = if same {
            buffer.members()
        } else {
            Feeders::NONE
        };
        buffer.asked(self.requests.keep(n, kept));
        match place {
            Place::Incomplete => self.requests.want(n),
            Place::Complete => self.complete(n, now, out),
        }
        self.ask(now, out);
    }

    /// Asks while there is credit.
    #[inline]
    pub(super) fn ask(&mut self, now: Time, out: &mut impl Outbox) {
        if self.requests.is_asking() {
            self.ask_next(now, out);
        }
    }

    fn ask_next(&mut self, now: Time, out: &mut impl Outbox) {
        while let Some((n, feeder)) = self.requests.next(&mut self.buffers, now) {
            self.counters.requested += 1;
            let descriptor = self.descriptor(n);
            let request = self.buffers[n].request(self.config.run, descriptor, feeder);
            out.send(Address::Feeder(feeder), &Message::Request(request));
        }
    }

    /// Asks again for what was not answered in time.
    pub(super) fn ask_again(&mut self, now: Time) {
        let timeout = self.requests.timeout();
        for n in 0..self.buffers.len() {
            let late = self.requests.give_up(n, timeout, now);
            if !late.is_empty() {
                self.counters.requested_again += late.len() as u64;
                self.buffers[n].ask_again(late);
                self.requests.want(n);
            }
        }
    }
}
