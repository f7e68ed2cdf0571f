//! Messages that say where an event goes: the scheduler's end of the flow control ring, and of the
//! policies without a ring.

use super::columns::Choice;
use super::config::{Policy, Timeouts};
use super::flights::{Flight, Phase};
use super::state::Scheduler;
use super::timers::Timer;
use crate::message::{Assign, Flow, Message};
use crate::role::{Address, Outbox};
use crate::time::Time;
use crate::topology::{Descriptor, Feeders};

impl Scheduler {
    /// Gives a MEP to a receive buffer.
    pub(super) fn dispatch(&mut self, mep: u64, choice: Choice, now: Time, out: &mut impl Outbox) {
        let Some((node, _)) = self.config.topology.buffer_of(choice.descriptor) else {
            return;
        };
        let generation = self.buffers.assign(choice.descriptor, mep);
        let repeated = !self.columns.may_follow(choice.column);
        self.columns.dispatched(choice.column);
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        *flight = Flight {
            node,
            column: choice.column,
            descriptor: choice.descriptor,
            generation,
            part: 0,
            overdue: 0,
            wants_more: false,
            ..*flight
        };
        self.counters.dispatched += 1;
        self.counters.columns_repeated += u64::from(repeated);
        self.counters.flow.sent += 1;
        self.nodes[usize::from(node)].events += 1;
        self.send_first(mep, now, out);
    }

    /// Sends the second part of a MEP whose node asked for it, if it is its turn.
    pub(super) fn serve_second(&mut self, now: Time, out: &mut impl Outbox) -> bool {
        let Some(&mep) = self.second.front() else {
            return false;
        };
        let Some(flight) = self.flights.get(mep).filter(|flight| flight.wants_more) else {
            self.second.pop_front();
            return true;
        };
        let (phase, column) = (flight.phase, flight.column);
        if phase != Phase::Building {
            return false;
        }
        let ready = self.ready.filter(|_| self.pending() > 0);
        let free =
            self.columns.may_follow(column) && ready.is_none_or(|choice| choice.column != column);
        // Where no event waits, there is none to go to another column in between.
        if !free && ready.is_some() {
            return false;
        }
        self.second.pop_front();
        if let Some(flight) = self.flights.get(mep) {
            flight.part = 1;
            flight.overdue = 0;
            flight.wants_more = false;
        }
        self.columns.dispatched(column);
        self.counters.flow.sent += 1;
        self.answered(mep);
        self.send_first(mep, now, out);
        true
    }

    /// Sends the message of a part of a MEP for the first time to this buffer.
    fn send_first(&mut self, mep: u64, now: Time, out: &mut impl Outbox) {
        if let Some(flight) = self.flights.get(mep) {
            flight.first = (flight.attempt.wrapping_add(1), now);
        }
        self.send_attempt(mep, now, out);
    }

    /// Sends a MEP to its receive buffer again.
    pub(super) fn resend(&mut self, mep: u64, now: Time, out: &mut impl Outbox) {
        self.counters.flow.resent += 1;
        self.send_attempt(mep, now, out);
    }

    /// Sends the message of a MEP anew: all feeders that take part transfer.
    fn send_attempt(&mut self, mep: u64, now: Time, out: &mut impl Outbox) {
        let members = self.members;
        let second = members.and(self.config.second);
        let hold = self.config.loops == 0 || self.config.policy != Policy::Ring;
        self.leave(mep);
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        flight.members = match flight.part {
            0 => members,
            _ if second.is_empty() => members.next_from(0).map_or(members, Feeders::only),
            _ => second,
        };
        flight.pending = flight.members;
        flight.attempt = flight.attempt.wrapping_add(1);
        flight.loops = 0;
        flight.hold = hold;
        flight.phase = Phase::Ring;
        if matches!(self.config.policy, Policy::Slots { .. }) {
            self.join(mep, now);
        } else {
            self.send_round(mep, now, out);
        }
    }

    /// Sends the message of a MEP into the ring.
    fn send_round(&mut self, mep: u64, now: Time, out: &mut impl Outbox) {
        let (run, decided) = (self.config.run, self.release.decided);
        let policy = self.config.policy;
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        // Repetitions at once would meet the same full outputs again.
        let policy = match policy {
            Policy::None if !flight.is_first() => Policy::Ring,
            policy => policy,
        };
        flight.expected = policy == Policy::Ring;
        if policy == Policy::Credits {
            flight.phase = Phase::Building;
            let assign = assign(run, self.config.loops, flight);
            let node = flight.node;
            self.flights.start(mep, Timer::Event, now);
            if !assign.members.is_empty() {
                out.send(Address::Node(node), &Message::Assign(assign));
            }
            return;
        }
        let flow = flight.flow(run, decided);
        match policy {
            Policy::Ring => {
                self.flights.start(mep, Timer::Ring, now);
                send(&flow, out);
            }
            Policy::Credits | Policy::Slots { .. } | Policy::None => {
                flight.phase = Phase::Building;
                self.flights.start(mep, Timer::Event, now);
                send_to_all(&flow, out);
            }
        }
    }

    /// Compares a message that returned with the copy of what was sent.
    pub(super) fn returned(&mut self, flow: &Flow, now: Time, out: &mut impl Outbox) {
        if flow.count == 0 {
            self.release_returned(flow, now);
            return;
        }
        let sent = flow.mep < self.unsent;
        let loops = self.config.loops;
        let counts = &mut self.counters.flow;
        let running = self.flights.running(flow.mep);
        let Some(flight) = self.flights.get(flow.mep).filter(|_| sent) else {
            let stale = flow.mep < self.flights.oldest();
            let count = if stale {
                &mut counts.stale
            } else {
                &mut counts.errors
            };
            *count += 1;
            return;
        };
        if matches!(self.config.policy, Policy::Slots { .. }) {
            self.slot_returned(flow, now, out);
            return;
        }
        let is_free = self.config.policy == Policy::None && flight.is_first();
        if is_free && flight.attempt == flow.attempt {
            counts.returned += 1;
            return;
        }
        if self.config.timeouts == Timeouts::Observed
            && flight.expected
            && flight.phase == Phase::Ring
            && flight.is_done_before(flow)
        {
            // The round trip takes longer than the time-out was.
            if flow.attempt == flight.first.0 {
                self.again.ring.sample(now - flight.first.1, now);
            }
            counts.returned += 1;
            self.complete_ring(flow.mep, now, out);
            return;
        }
        if !flight.expected || flight.attempt != flow.attempt || flight.loops > flow.loops {
            counts.stale += 1;
            return;
        }
        if !flight.is_copy(flow) {
            counts.errors += 1;
            return;
        }
        if let Some((Timer::Ring, sent)) = running {
            self.again.ring.sample(now - sent, now);
        }
        flight.pending = flow.pending;
        if flow.part == 0 && flow.loops == 0 {
            self.release.tell(flow.decided);
        }
        if !flow.pending.is_empty() && flight.phase == Phase::Ring {
            flight.loops = flight.loops.saturating_add(1);
            flight.hold = flight.loops >= loops;
            counts.loops += 1;
            self.send_round(flow.mep, now, out);
            return;
        }
        counts.returned += 1;
        self.complete_ring(flow.mep, now, out);
    }

    /// The message of a MEP has returned from feeders that have all transferred.
    fn complete_ring(&mut self, mep: u64, now: Time, out: &mut impl Outbox) {
        self.all_transferred(mep, now);
        self.retire();
        self.serve(now, out);
    }

    /// All feeders have transferred their fragments of a MEP.
    pub(super) fn all_transferred(&mut self, mep: u64, now: Time) {
        self.answered(mep);
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        flight.expected = false;
        match flight.phase {
            Phase::Ring => {
                flight.phase = Phase::Building;
                self.flights.start(mep, Timer::Event, now);
            }
            Phase::Processed => self.flights.start(mep, Timer::Event, now),
            Phase::Waiting | Phase::Building | Phase::Decided => self.flights.stop(mep),
        }
    }

    /// Sends what is decided, if no other message has told the feeders in time.
    pub(super) fn tell_released(&mut self, now: Time, out: &mut impl Outbox) {
        if now < self.release.deadline {
            return;
        }
        if self.release.copy.is_some() {
            self.again.ring.expired(self.release.sent, now);
        }
        self.release.deadline = now + self.again.ring.timeout();
        if self.members.is_empty() {
            return;
        }
        self.release.number += 1;
        let flow = Flow {
            run: self.config.run,
            mep: self.release.number,
            event: 0,
            count: 0,
            descriptor: Descriptor(0),
            generation: 0,
            attempt: 0,
            part: 0,
            loops: 0,
            hold: true,
            members: self.members,
            pending: self.members,
            decided: self.release.decided,
        };
        self.release.copy = Some(flow);
        self.release.sent = now;
        send(&flow, out);
    }

    fn release_returned(&mut self, flow: &Flow, now: Time) {
        let pending = Feeders::NONE;
        if self.release.copy.map(|copy| Flow { pending, ..copy }) == Some(*flow) {
            self.again.ring.sample(now - self.release.sent, now);
            self.release.copy = None;
            self.release.tell(flow.decided);
            self.retire();
        } else if flow.mep <= self.release.number {
            self.counters.flow.stale += 1;
        } else {
            self.counters.flow.errors += 1;
        }
    }
}

/// The message that gives a node its MEP.
fn assign(run: u32, loops: u8, flight: &Flight) -> Assign {
    Assign {
        run,
        mep: flight.mep,
        event: flight.event,
        count: flight.count,
        descriptor: flight.descriptor,
        generation: flight.generation,
        attempt: flight.attempt,
        part: flight.part,
        loops,
        members: flight.members,
    }
}

/// Sends a message to the first feeder that has to transfer.
fn send(flow: &Flow, out: &mut impl Outbox) {
    if let Some(feeder) = flow.pending.next_from(0) {
        out.send(Address::Feeder(feeder), &Message::Flow(*flow));
    }
}

/// Sends a message to each feeder that has to transfer: it returns from there.
fn send_to_all(flow: &Flow, out: &mut impl Outbox) {
    let mut next = 0;
    while let Some(feeder) = flow.pending.next_from(next) {
        let pending = Feeders::only(feeder);
        let message = Message::Flow(Flow { pending, ..*flow });
        out.send(Address::Feeder(feeder), &message);
        next = feeder + 1;
    }
}
