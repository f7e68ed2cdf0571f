//! A computing node: builds events in its receive buffers, has them worked on, and sends the
//! decision and the feedback (thesis, III.A and III.B.6).

mod asking;
mod buffer;
mod counters;
mod requests;
mod unacked;
mod work;

use std::collections::VecDeque;

pub use counters::Counters;
pub use requests::CREDITS;
pub use work::{Built, Step, Work};

use buffer::{Buffer, Place, State};
use requests::Requests;
use unacked::Unacked;

use crate::message::{Alive, Decision, Feedback, Fragment, Member, Message, More, Withdraw};
use crate::role::{Address, Builder, Outbox, Role};
use crate::time::Time;
use crate::topology::{Descriptor, Feeders, Topology};

/// Configuration of a node.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Number of the run.
    pub run: u32,
    /// Its number.
    pub id: u16,
    /// Bytes of the slot that a receive buffer has for a feeder: most bytes of a payload.
    pub slot: u32,
    /// Events that are worked on at a time: processors of the node.
    pub workers: usize,
    /// Time between two messages that say that the node runs, and after which a message that was
    /// not answered is sent again.
    pub beat: Time,
}

/// A node that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number that the farm does not have.
    #[error("node {id} of {nodes}: the first one is 0")]
    NoNode {
        /// The number.
        id: u16,
        /// Nodes of the farm.
        nodes: usize,
    },
    /// No worker.
    #[error("0 workers: no event would be worked on; set `workers` to 1 or more")]
    NoWorker,
    /// No credit.
    #[error("0 credits: no fragment would be asked for; set 1 or more")]
    NoCredit,
    /// No time between two messages.
    #[error("`beat` is zero: the node would send without end")]
    NoBeat,
}

/// A node. `P` is the handle of a payload, `W` the trigger algorithm.
#[derive(Debug)]
pub struct Node<P, W> {
    config: Config,
    topology: Topology,
    column: u8,
    buffers: Box<[Buffer<P>]>,
    /// Buffers that are built and wait for a processor.
    built: VecDeque<usize>,
    /// Processors that work.
    working: usize,
    work: W,
    unacked: Unacked,
    requests: Requests,
    /// It asks for its fragments: others begin no MEP.
    asks: bool,
    beat: Time,
    /// When a processor is done next.
    wake: Time,
    counters: Counters,
    /// MEPs that lack the fragment of a feeder, by feeder.
    missing: Box<[u64]>,
}

impl<P, W: Work<P>> Node<P, W> {
    /// A node with free buffers. All memory is allocated here.
    ///
    /// # Errors
    /// A configuration that cannot be.
    pub fn new(
        config: Config,
        topology: &Topology,
        work: W,
        now: Time,
    ) -> Result<Self, ConfigError> {
        let (id, nodes) = (config.id, topology.nodes());
        let Some(column) = topology.column_of(id) else {
            return Err(ConfigError::NoNode { id, nodes });
        };
        if config.workers == 0 {
            return Err(ConfigError::NoWorker);
        }
        if config.beat == Time::ZERO {
            return Err(ConfigError::NoBeat);
        }
        let (buffers, feeders) = (topology.buffers(), topology.feeders());
        Ok(Self {
            topology: topology.clone(),
            column,
            buffers: (0..buffers).map(|_| Buffer::new(feeders)).collect(),
            built: VecDeque::with_capacity(buffers),
            working: 0,
            work,
            unacked: Unacked::new(4 * buffers, config.beat),
            requests: Requests::new(CREDITS, buffers, (id, feeders), config.beat),
            asks: false,
            beat: now,
            wake: Time::MAX,
            counters: Counters::default(),
            missing: vec![0; feeders].into(),
            config,
        })
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// MEPs that lack the fragment of a feeder, by feeder.
    #[must_use]
    pub fn missing(&self) -> &[u64] {
        &self.missing
    }

    /// The trigger algorithm.
    #[must_use]
    pub fn work(&self) -> &W {
        &self.work
    }

    /// The trigger algorithm, to change it in the run.
    pub fn work_mut(&mut self) -> &mut W {
        &mut self.work
    }

    /// Buffers in use, and decisions that the result node has not acknowledged.
    #[must_use]
    pub fn in_use(&self) -> usize {
        let used = |buffer: &&Buffer<P>| buffer.state != State::Idle;
        self.buffers.iter().filter(used).count() + self.unacked.len()
    }

    /// Fragments that were asked for and did not arrive (policy `credits`).
    #[must_use]
    pub fn requested(&self) -> usize {
        self.requests.len()
    }

    fn descriptor(&self, buffer: usize) -> Descriptor {
        let descriptor = self.topology.descriptor(self.config.id, buffer);
        descriptor.unwrap_or_default()
    }

    #[inline]
    fn fragment(&mut self, now: Time, fragment: &Fragment, payload: P, out: &mut impl Outbox) {
        let place = self.topology.buffer_of(fragment.descriptor);
        let Some((_, n)) = place.filter(|place| place.0 == self.config.id) else {
            self.counters.misrouted += 1;
            return;
        };
        if usize::from(fragment.feeder) >= self.topology.feeders() {
            self.counters.no_feeder += 1;
            return;
        }
        let buffer = &mut self.buffers[n];
        if self.requests.len() > 0 && buffer.expects(fragment) {
            self.requests.answered(n, fragment.feeder, now);
        }
        let how = (self.config.slot, self.asks);
        let place = buffer.place(fragment, payload, how, &mut self.counters);
        if place == Place::Complete {
            self.complete(n, now, out);
        }
        self.ask(now, out);
    }

    /// Places fragments that differ in their feeders alone, all at a time, if they complete no more than
    /// others of the part that is built; false where each is to be looked at.
    #[inline]
    fn all_fragments(
        &mut self,
        now: Time,
        fragment: &Fragment,
        feeders: Feeders,
        payloads: &mut impl Iterator<Item = P>,
        out: &mut impl Outbox,
    ) -> bool {
        let place = self.topology.buffer_of(fragment.descriptor);
        let Some((_, n)) = place.filter(|place| place.0 == self.config.id) else {
            return false;
        };
        let others = feeders.without(Feeders::first(self.topology.feeders()));
        let buffer = &mut self.buffers[n];
        let known =
            others.is_empty() && self.requests.len() == 0 && fragment.run == self.config.run;
        if !known || !buffer.takes(fragment, feeders, self.config.slot) {
            return false;
        }
        let place = buffer.place_all(fragment, feeders, payloads, &mut self.counters);
        if place == Place::Complete {
            self.complete(n, now, out);
        }
        self.ask(now, out);
        true
    }

    /// The last fragment of a part has been placed.
    #[inline(never)]
    fn complete(&mut self, n: usize, now: Time, out: &mut impl Outbox) {
        self.requests.keep(n, Feeders::NONE);
        let (counters, buffer) = (&mut self.counters, &mut self.buffers[n]);
        if buffer.part() == 0 {
            counters.built += 1;
            counters.events += u64::from(buffer.count());
            let missing = buffer.missing(self.topology.feeders());
            counters.complete += u64::from(missing.is_empty());
            let mut next = missing.next_from(0);
            while let Some(feeder) = next {
                self.missing[usize::from(feeder)] += 1;
                next = missing.next_from(feeder + 1);
            }
        } else {
            counters.second += 1;
        }
        self.built.push_back(n);
        self.serve(now, out);
    }

    /// Starts work while a processor is free.
    fn serve(&mut self, now: Time, out: &mut impl Outbox) {
        while self.working < self.config.workers {
            let Some(n) = self.built.pop_front() else {
                return;
            };
            self.step(n, now, out);
        }
    }

    /// Works on the MEP of a buffer.
    fn step(&mut self, n: usize, now: Time, out: &mut impl Outbox) {
        let feeders = self.topology.feeders();
        let buffer = &mut self.buffers[n];
        match self.work.work(now, &buffer.built(feeders)) {
            Step::Wait(until) => {
                buffer.wait(until);
                self.working += 1;
                self.wake = self.wake.min(until);
            }
            Step::More if buffer.part() == 0 => {
                buffer.ask(now);
                let more = self.more(n);
                out.send(Address::Scheduler, &Message::More(more));
            }
            // There is no third part: what asks for one accepts nothing.
            Step::More => self.decide(n, 0, now, out),
            Step::Decide(accepted) => self.decide(n, accepted, now, out),
        }
    }

    fn more(&self, n: usize) -> More {
        let buffer = &self.buffers[n];
        More {
            run: self.config.run,
            descriptor: self.descriptor(n),
            generation: buffer.generation(),
            mep: buffer.mep(),
        }
    }

    fn decide(&mut self, n: usize, accepted: u64, now: Time, out: &mut impl Outbox) {
        let (run, descriptor) = (self.config.run, self.descriptor(n));
        let feeders = self.topology.feeders();
        let buffer = &mut self.buffers[n];
        let generation = buffer.generation();
        let built = buffer.built(feeders);
        let decision = Decision {
            run,
            mep: built.mep,
            event: built.event,
            count: built.count,
            descriptor,
            generation,
            absent: built.absent,
            missing: built.missing,
            accepted: accepted & Feeders::first(built.count.into()).0,
        };
        buffer.clear();
        self.counters.decided += 1;
        if self.unacked.add(decision, now) {
            out.send(Address::Results, &Message::Decision(decision));
            self.release(n, now, out);
        } else {
            self.buffers[n].hold(decision);
        }
    }

    /// Tells the scheduler that a buffer is free.
    fn release(&mut self, n: usize, now: Time, out: &mut impl Outbox) {
        self.buffers[n].free(now);
        let feedback = self.feedback(n);
        out.send(Address::Scheduler, &Message::Feedback(feedback));
    }

    fn feedback(&self, n: usize) -> Feedback {
        let buffer = &self.buffers[n];
        Feedback {
            run: self.config.run,
            column: self.column,
            descriptor: self.descriptor(n),
            generation: buffer.generation(),
            mep: buffer.mep(),
        }
    }

    /// Gives up what a buffer waits for, if others have it.
    fn withdraw(&mut self, withdraw: &Withdraw, now: Time, out: &mut impl Outbox) {
        let place = self.topology.buffer_of(withdraw.descriptor);
        let Some((_, n)) = place.filter(|place| place.0 == self.config.id) else {
            self.counters.misrouted += 1;
            return;
        };
        let buffer = &mut self.buffers[n];
        buffer.forget(withdraw.generation);
        let newer = buffer.generation().wrapping_sub(withdraw.generation) as i32;
        let waits = matches!(buffer.state, State::Building | State::Asking);
        if newer <= 0 && waits {
            self.counters.abandoned += 1;
            buffer.clear();
            self.requests.keep(n, Feeders::NONE);
            self.release(n, now, out);
            self.ask(now, out);
        }
    }

    fn acknowledged(&mut self, mep: u64, now: Time, out: &mut impl Outbox) {
        if !self.unacked.remove(mep, now) {
            self.counters.acks_repeated += 1;
            return;
        }
        // A buffer waits for room in the list.
        for n in 0..self.buffers.len() {
            if let Some(decision) = self.buffers[n].held()
                && self.unacked.add(decision, now)
            {
                out.send(Address::Results, &Message::Decision(decision));
                self.release(n, now, out);
                return;
            }
        }
    }

    /// Ends the work of processors whose time is over.
    fn wake(&mut self, now: Time, out: &mut impl Outbox) {
        if now < self.wake {
            return;
        }
        self.wake = Time::MAX;
        for n in 0..self.buffers.len() {
            match self.buffers[n].state {
                State::Working(until) if until <= now => {
                    self.working -= 1;
                    self.step(n, now, out);
                }
                State::Working(until) => self.wake = self.wake.min(until),
                _ => {}
            }
        }
        self.serve(now, out);
    }

    /// Says that the node runs, and sends again what was not answered.
    fn remind(&mut self, now: Time, out: &mut impl Outbox) {
        if now < self.beat {
            return;
        }
        let old = now - self.config.beat;
        self.beat = now + self.config.beat;
        let from = Member::Node(self.config.id);
        let run = self.config.run;
        out.send(Address::Scheduler, &Message::Alive(Alive { run, from }));
        for n in 0..self.buffers.len() {
            match self.buffers[n].state {
                State::Idle if self.buffers[n].since() <= old => {
                    let feedback = self.feedback(n);
                    out.send(Address::Scheduler, &Message::Feedback(feedback));
                }
                State::Asking if self.buffers[n].since() <= old => {
                    self.counters.resent += 1;
                    let more = self.more(n);
                    out.send(Address::Scheduler, &Message::More(more));
                }
                _ => {}
            }
        }
        for decision in self.unacked.due(now) {
            self.counters.resent += 1;
            out.send(Address::Results, &Message::Decision(*decision));
        }
        self.ask_again(now);
        self.ask(now, out);
    }
}

impl<P, W: Work<P>> Role for Node<P, W> {
    type Payload = P;

    #[inline]
    fn receive(&mut self, now: Time, message: &Message, payload: P, out: &mut impl Outbox) {
        let run = self.config.run;
        match message {
            Message::Fragment(m) if m.run == run => self.fragment(now, m, payload, out),
            Message::Ack(m) if m.run == run => self.acknowledged(m.mep, now, out),
            Message::Withdraw(m) if m.run == run => self.withdraw(m, now, out),
            Message::Assign(m) if m.run == run => self.assigned(m, now, out),
            other if other.run() == run => self.counters.unexpected += 1,
            _ => self.counters.other_run += 1,
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        self.wake(now, out);
        self.remind(now, out);
    }

    fn next_deadline(&self) -> Time {
        self.beat.min(self.wake)
    }
}

impl<P, W: Work<P>> Builder for Node<P, W> {
    #[inline]
    fn receive_all(
        &mut self,
        now: Time,
        fragment: &Fragment,
        mut feeders: Feeders,
        mut payloads: impl Iterator<Item = P>,
        out: &mut impl Outbox,
    ) {
        // One that begins a MEP is looked at by itself, and as a rule those behind it are not.
        while let Some(feeder) = feeders.next_from(0) {
            if self.all_fragments(now, fragment, feeders, &mut payloads, out) {
                return;
            }
            let Some(payload) = payloads.next() else {
                self.counters.without_payload += feeders.len() as u64;
                return;
            };
            let fragment = Fragment {
                feeder,
                ..*fragment
            };
            self.receive(now, &Message::Fragment(fragment), payload, out);
            feeders = feeders.without(Feeders::only(feeder));
        }
    }
}
