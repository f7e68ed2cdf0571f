//! What a scheduler does with messages, and when time-outs are over.

use super::buffers::Release;
use super::columns::Choice;
use super::flights::Phase;
use super::peer::{Exclusion, Peer};
use super::state::Scheduler;
use super::timers::Timer;
use crate::message::{Decided, Feedback, Message, More};
use crate::role::{Outbox, Role};
use crate::time::Time;
use crate::topology::Feeders;

impl Role for Scheduler {
    type Payload = ();

    fn receive(&mut self, now: Time, message: &Message, (): (), out: &mut impl Outbox) {
        if message.run() != self.config.run {
            self.counters.other_run += 1;
            return;
        }
        match message {
            Message::Flow(flow) => self.returned(flow, now, out),
            Message::Feedback(feedback) => self.feedback(feedback, now, out),
            Message::More(more) => self.more(more, now, out),
            Message::Decided(decided) => self.decide(decided, now, out),
            Message::Alive(alive) => self.heard(alive.from, now, out),
            Message::Trigger(trigger) => self.triggered_by_port(trigger, now, out),
            Message::Fragment(_)
            | Message::Decision(_)
            | Message::Ack(_)
            | Message::Withdraw(_)
            | Message::Assign(_)
            | Message::Request(_) => {
                self.counters.unexpected += 1;
            }
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        self.close_due(now, out);
        self.expire_due(now, out);
        self.tell_released(now, out);
        self.look_after(now);
        self.serve(now, out);
    }

    fn next_deadline(&self) -> Time {
        self.timeout_deadline()
            .min(self.triggers.deadline())
            .min(self.release.deadline())
            .min(self.watch)
    }
}

impl Scheduler {
    fn feedback(&mut self, message: &Feedback, now: Time, out: &mut impl Outbox) {
        let gap = self.gap();
        let counts = &mut self.counters.feedback;
        let Some((node, _)) = self.config.topology.buffer_of(message.descriptor) else {
            counts.out_of_range += 1;
            return;
        };
        if self.config.topology.column_of(node) != Some(message.column) {
            counts.wrong_column += 1;
            return;
        }
        let peer = &mut self.nodes[usize::from(node)];
        if peer.excluded.is_some() {
            counts.excluded += 1;
            return;
        }
        peer.hear(now, gap);
        let release = self
            .buffers
            .release(message.descriptor, message.generation, message.mep);
        match release {
            Release::Registered => counts.registered += 1,
            Release::Finished(_) => counts.released += 1,
            Release::Repeated => counts.repeated += 1,
            Release::Stale => counts.stale += 1,
            Release::Foreign => counts.foreign += 1,
        }
        if let Release::Finished(mep) = release {
            self.finished(mep, now);
        }
        if matches!(release, Release::Registered | Release::Finished(_)) {
            let (column, descriptor) = (message.column, message.descriptor);
            self.columns.push(Choice { column, descriptor });
            self.serve(now, out);
        }
    }

    /// The node of a MEP has finished it, and its decision is awaited.
    fn finished(&mut self, mep: u64, now: Time) {
        let running = self.flights.running(mep);
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        self.nodes[usize::from(flight.node)].finished = now;
        if matches!(flight.phase, Phase::Ring | Phase::Building) {
            flight.phase = Phase::Processed;
            flight.wants_more = false;
            flight.overdue = 0;
            if flight.is_first() {
                match running {
                    Some((Timer::Event, started)) => self.again.event.sample(now - started, now),
                    // The last transfer is built before the message is back: it did not wait at all.
                    Some((Timer::Ring, _)) => self.again.event.sample(Time::ZERO, now),
                    Some((Timer::Again, _)) | None => {}
                }
            }
            let waits = self.unexpect_again(mep, running);
            let is_expected = self.flights.look(mep).is_some_and(|flight| flight.expected);
            if waits || !is_expected {
                self.flights.start(mep, Timer::Event, now);
            }
            self.answered(mep);
        }
    }

    /// The message of a MEP was to be sent again, which is not needed any more: whether it was.
    fn unexpect_again(&mut self, mep: u64, running: Option<(Timer, Time)>) -> bool {
        let waits = running.is_some_and(|(timer, _)| timer == Timer::Again);
        if let Some(flight) = self.flights.get(mep).filter(|_| waits)
            && std::mem::take(&mut flight.expected)
        {
            self.counters.flow.unreturned += 1;
            self.leave(mep);
        }
        waits
    }

    fn more(&mut self, message: &More, now: Time, out: &mut impl Outbox) {
        let gap = self.gap();
        if let Some((node, _)) = self.config.topology.buffer_of(message.descriptor)
            && let Some(peer) = self.nodes.get_mut(usize::from(node))
        {
            peer.hear(now, gap);
        }
        let counts = &mut self.counters.more;
        let sent = message.mep < self.unsent;
        let Some(flight) = self.flights.get(message.mep).filter(|_| sent) else {
            if message.mep < self.flights.oldest() {
                counts.repeated += 1;
            } else {
                counts.foreign += 1;
            }
            return;
        };
        if flight.descriptor != message.descriptor || flight.generation != message.generation {
            counts.foreign += 1;
            return;
        }
        let first = flight.part == 0 && !flight.wants_more;
        if !first || !matches!(flight.phase, Phase::Ring | Phase::Building) {
            counts.repeated += 1;
            return;
        }
        flight.wants_more = true;
        counts.taken += 1;
        self.second.push_back(message.mep);
        self.serve(now, out);
    }

    fn decide(&mut self, message: &Decided, now: Time, out: &mut impl Outbox) {
        let gap = self.gap();
        self.results.hear(now, gap);
        let last = u64::from(message.bits.checked_ilog2().unwrap_or(0));
        let is_sent = message
            .mep
            .checked_add(last)
            .is_some_and(|mep| mep < self.unsent);
        if !is_sent || message.before > self.unsent {
            self.counters.decided_foreign += 1;
            return;
        }
        for mep in self.decided..message.before {
            self.mark_decided(mep, now);
        }
        for n in (0..=last).filter(|n| message.bits >> n & 1 == 1) {
            self.mark_decided(message.mep + n, now);
        }
        self.decided = self.decided.max(message.before);
        let next_event = self.flights.next_event();
        let event = (self.flights.get(self.decided)).map_or(next_event, |flight| flight.event);
        self.release.decided(event, now + self.again.ring.timeout());
        self.retire();
        self.serve(now, out);
    }

    fn mark_decided(&mut self, mep: u64, now: Time) {
        let running = self.flights.running(mep);
        let Some(flight) = self.flights.get(mep) else {
            return;
        };
        if flight.phase == Phase::Decided {
            return;
        }
        if let Some((Timer::Event, started)) = running
            && flight.phase == Phase::Processed
        {
            self.again.event.sample(now - started, now);
        }
        self.nodes[usize::from(flight.node)].decided = now;
        flight.phase = Phase::Decided;
        flight.wants_more = false;
        self.unexpect_again(mep, running);
        if self
            .flights
            .look(mep)
            .is_some_and(|flight| !flight.expected)
        {
            self.flights.stop(mep);
        }
        self.answered(mep);
    }

    pub(super) fn expire(
        &mut self,
        timer: Timer,
        slot: usize,
        started: Time,
        now: Time,
        out: &mut impl Outbox,
    ) {
        let gap = self.gap();
        let results = self.results.is_steady(started, now, gap);
        let Some(flight) = self.flights.at(slot) else {
            return;
        };
        let (mep, node, phase) = (flight.mep, flight.node, flight.phase);
        let rtt = match timer {
            Timer::Ring => &mut self.again.ring,
            Timer::Event | Timer::Again => &mut self.again.event,
        };
        let periods = self.config.blame(rtt.periods());
        rtt.expired(started, now);
        let are_steady = |members| {
            are_steady(&self.feeders, members, |peer| {
                peer.is_steady(started, now, gap)
            })
        };
        let feeders = phase == Phase::Processed || are_steady(flight.members);
        match (timer, phase) {
            (Timer::Ring, Phase::Ring) => {
                self.counters.flow.timeouts += 1;
                self.repeat(mep, now, out);
            }
            (Timer::Ring, _) => {
                flight.expected = false;
                self.counters.flow.unreturned += 1;
                self.leave(mep);
                if phase == Phase::Processed {
                    self.flights.start(mep, Timer::Event, now);
                }
                self.retire();
            }
            // The node has asked for the second part, and waits for the scheduler.
            (Timer::Event, _) if flight.wants_more => {
                self.flights.start(mep, Timer::Event, now);
            }
            (Timer::Event, phase) => {
                let peer = &self.nodes[usize::from(node)];
                let is_moving = match phase {
                    Phase::Processed => peer.decided > started,
                    _ => peer.finished > started,
                };
                let is_excused = is_moving || !peer.is_steady(started, now, gap);
                // Without acknowledgements, nodes cannot go on either; nor without fragments.
                match (results, feeders) {
                    (false, _) => self.counters.results_silent += 1,
                    (true, false) => self.counters.feeders_silent += 1,
                    (true, true) if is_excused => self.counters.nodes_excused += 1,
                    (true, true) => flight.overdue = flight.overdue.saturating_add(periods),
                }
                match (flight.overdue < self.config.tries, phase) {
                    (true, Phase::Processed) => self.flights.start(mep, Timer::Event, now),
                    (true, _) => self.repeat(mep, now, out),
                    (false, Phase::Processed) => self.drop_node(node, Exclusion::Undecided, now),
                    (false, _) => self.drop_node(node, Exclusion::Overdue, now),
                }
            }
            (Timer::Again, _) => {}
        }
    }
}

/// Whether there are feeders to wait for, and each was heard without a pause.
fn are_steady(feeders: &[Peer], members: Feeders, is_steady: impl Fn(&Peer) -> bool) -> bool {
    let mut peers = feeders.iter().zip(0..);
    !members.is_empty() && peers.all(|(peer, id)| !members.has(id) || is_steady(peer))
}
