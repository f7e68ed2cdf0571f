//! The barrel shifter (policy `slots`): rounds of events for different nodes. In slot p of a round,
//! feeder i transfers to the node of event i + p: no two feeders transfer to one node.
//!
//! Each feeder gets a message of its own, and returns it. `loops` says the slot, and with the place
//! of the event in its round, which feeder returned the message.

use super::config::Policy;
use super::flights::Phase;
use super::rounds::{Place, Shift};
use super::state::Scheduler;
use super::timers::Timer;
use crate::message::{Flow, Message};
use crate::role::{Address, Outbox};
use crate::time::Time;
use crate::topology::Feeders;

/// The feeder that transfers to a place in a slot.
fn feeder_at(number: u8, slot: u8, feeders: usize) -> u8 {
    let slot = usize::from(slot) % feeders;
    ((usize::from(number) + feeders - slot) % feeders) as u8
}

impl Scheduler {
    /// A MEP with a receive buffer waits for a round; where all feeders are excluded, for one of
    /// them to return.
    pub(super) fn join(&mut self, mep: u64, now: Time) {
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        if flight.pending.is_empty() {
            self.flights.start(mep, Timer::Ring, now);
            return;
        }
        let before = std::mem::replace(&mut flight.shift, Shift::Waits);
        self.flights.stop(mep);
        if before == Shift::Waits {
            return;
        }
        if self.shifter.waiting.len() == self.config.in_flight {
            // Those that were decided while they waited.
            let flights = &self.flights;
            self.shifter
                .waiting
                .retain(|&mep| flights.look(mep).is_some());
        }
        self.shifter.waiting.push_back(mep);
    }

    /// A MEP leaves its round, if it is in one: the round does not wait for it.
    pub(super) fn leave(&mut self, mep: u64) {
        let feeders = self.config.topology.feeders();
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        let Shift::In(place) = flight.shift else {
            return;
        };
        flight.shift = Shift::No;
        flight.expected = false;
        let round = &mut self.shifter.rounds[usize::from(place.round)];
        round.left -= 1;
        let feeder = feeder_at(place.number, round.slot, feeders);
        round.out -= usize::from(flight.pending.has(feeder) && self.config.has_barrier());
    }

    /// Goes on to the next slots and rounds, as far as nothing is left to wait for.
    pub(super) fn shift(&mut self, now: Time, out: &mut impl Outbox) {
        if !matches!(self.config.policy, Policy::Slots { .. }) {
            return;
        }
        let barrier = self.config.has_barrier();
        let feeders = self.config.topology.feeders();
        loop {
            for n in (0..2).filter(|_| barrier) {
                while self.shifter.rounds[n].is_over(feeders) {
                    self.shifter.rounds[n].slot += 1;
                    self.send_slot(n as u8, now, out);
                }
            }
            let n = usize::from(self.shifter.next);
            let [mine, other] = [n, 1 - n].map(|n| self.shifter.rounds[n].left > 0);
            if mine || (barrier && other) || !self.enabled || !self.fill() {
                return;
            }
            self.shifter.next = 1 - self.shifter.next;
            self.send_slot(n as u8, now, out);
            let slots = if barrier { 1 } else { feeders };
            for slot in 1..slots {
                self.shifter.rounds[n].slot = slot as u8;
                self.send_slot(n as u8, now, out);
            }
        }
    }

    /// Fills the next round with MEPs for different nodes, at most one for each feeder. False: none
    /// waits.
    fn fill(&mut self) -> bool {
        let most = self.config.topology.feeders();
        let n = self.shifter.next;
        let round = &mut self.shifter.rounds[usize::from(n)];
        round.meps.clear();
        (round.slot, round.out) = (0, 0);
        for _ in 0..self.shifter.waiting.len() {
            if round.meps.len() == most {
                break;
            }
            let Some(mep) = self.shifter.waiting.pop_front() else {
                break;
            };
            let node = match self.flights.get(mep) {
                Some(flight) if flight.phase == Phase::Ring => flight.node,
                Some(flight) => {
                    flight.shift = Shift::No;
                    continue;
                }
                None => continue,
            };
            let flights = &self.flights;
            let has = |&mep: &u64| flights.look(mep).is_some_and(|flight| flight.node == node);
            if round.meps.iter().any(has) {
                self.shifter.waiting.push_back(mep);
                continue;
            }
            let number = round.meps.len() as u8;
            round.meps.push(mep);
            if let Some(flight) = self.flights.get(mep) {
                flight.expected = true;
                flight.shift = Shift::In(Place { round: n, number });
            }
        }
        round.left = round.meps.len();
        round.left > 0
    }

    /// Sends the messages of a slot.
    fn send_slot(&mut self, n: u8, now: Time, out: &mut impl Outbox) {
        let feeders = self.config.topology.feeders();
        let (run, decided) = (self.config.run, self.release.decided);
        let round = &mut self.shifter.rounds[usize::from(n)];
        for (&mep, number) in round.meps.iter().zip(0..) {
            let place = Shift::In(Place { round: n, number });
            let feeder = feeder_at(number, round.slot, feeders);
            let Some(flight) = self.flights.get(mep) else {
                continue;
            };
            if flight.shift != place || !flight.pending.has(feeder) {
                continue;
            }
            let flow = flight.flow(run, decided);
            let flow = Flow {
                loops: round.slot,
                pending: Feeders::only(feeder),
                ..flow
            };
            round.out += 1;
            self.flights.start(mep, Timer::Ring, now);
            out.send(Address::Feeder(feeder), &Message::Flow(flow));
        }
    }

    /// A feeder returns the message of its slot.
    pub(super) fn slot_returned(&mut self, flow: &Flow, now: Time, out: &mut impl Outbox) {
        let feeders = self.config.topology.feeders();
        let barrier = self.config.has_barrier();
        let counts = &mut self.counters.flow;
        let running = self.flights.running(flow.mep);
        let Some(flight) = self.flights.get(flow.mep) else {
            return;
        };
        let Shift::In(place) = flight.shift else {
            counts.stale += 1;
            return;
        };
        if flight.attempt != flow.attempt {
            counts.stale += 1;
            return;
        }
        let round = &mut self.shifter.rounds[usize::from(place.round)];
        let feeder = feeder_at(place.number, flow.loops, feeders);
        let was_sent = usize::from(flow.loops) < feeders && flow.loops <= round.slot;
        let loops = flight.loops;
        if !was_sent || !flow.pending.is_empty() || !flight.is_copy(&Flow { loops, ..*flow }) {
            counts.errors += 1;
            return;
        }
        if !flight.pending.has(feeder) {
            counts.stale += 1;
            return;
        }
        if let Some((Timer::Ring, sent)) = running {
            self.again.ring.sample(now - sent, now);
        }
        round.out -= usize::from(barrier);
        flight.pending = flight.pending.without(Feeders::only(feeder));
        if flight.pending.is_empty() {
            counts.returned += 1;
            flight.shift = Shift::No;
            round.left -= 1;
            self.all_transferred(flow.mep, now);
        } else if barrier {
            self.flights.stop(flow.mep);
        } else {
            self.flights.start(flow.mep, Timer::Ring, now);
        }
        self.retire();
        self.serve(now, out);
    }
}
