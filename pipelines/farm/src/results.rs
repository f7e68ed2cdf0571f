//! The result node: takes decisions from all nodes, and hands them on in order, each once.

use crate::message::{Ack, Alive, Decided, Decision, Member, Message};
use crate::place::place_of;
use crate::role::{Address, Outbox, Role};
use crate::time::Time;
use crate::topology::Topology;

/// Configuration of a result node.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Number of the run.
    pub run: u32,
    /// Most MEPs in flight, as of the scheduler.
    pub in_flight: usize,
    /// Time between two messages that say that the result node runs, and what is decided.
    pub beat: Time,
}

/// A result node that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No MEP in flight.
    #[error("0 MEPs in flight: set `in_flight` as the scheduler has it")]
    InFlight,
    /// No time between two messages.
    #[error("`beat` is zero: the result node would send without end")]
    NoBeat,
}

/// Counters of a result node, each of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// MEPs that were decided.
    pub decided: u64,
    /// Their events.
    pub events: u64,
    /// Accepted events.
    pub accepted: u64,
    /// MEPs that lack fragments.
    pub incomplete: u64,
    /// Decisions that arrived again.
    pub repeated: u64,
    /// Of them, those that differ from the first one.
    pub conflicting: u64,
    /// Decisions on MEPs that cannot be in flight, or that were not fetched yet in front of them.
    pub ahead: u64,
    /// Decisions whose events do not follow those of the MEP before.
    pub gaps: u64,
    /// Decisions from buffers that the farm does not have.
    pub out_of_range: u64,
    /// Messages of another run.
    pub other_run: u64,
    /// Messages that are not for a result node.
    pub unexpected: u64,
}

/// A result node.
#[derive(Debug)]
pub struct Results {
    config: Config,
    topology: Topology,
    decisions: Box<[Option<Decision>]>,
    /// All MEPs before this one are decided.
    before: u64,
    /// The next MEP to hand on.
    next: u64,
    next_event: u64,
    beat: Time,
    counters: Counters,
}

impl Results {
    /// A result node without decisions. All memory is allocated here.
    ///
    /// # Errors
    /// A configuration that cannot be.
    pub fn new(config: Config, topology: &Topology, now: Time) -> Result<Self, ConfigError> {
        if config.in_flight == 0 {
            return Err(ConfigError::InFlight);
        }
        if config.beat == Time::ZERO {
            return Err(ConfigError::NoBeat);
        }
        Ok(Self {
            topology: topology.clone(),
            decisions: vec![None; config.in_flight].into(),
            before: 0,
            next: 0,
            next_event: 0,
            beat: now,
            counters: Counters::default(),
            config,
        })
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// All MEPs before this one are decided.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.before
    }

    /// Hands on the next decision in the order of the events, if it is there. Decisions that are
    /// not fetched keep later ones out.
    pub fn fetch(&mut self) -> Option<Decision> {
        let slot = self.slot(self.next);
        let due = |decision: &mut Decision| decision.mep == self.next;
        let decision = self.decisions[slot].take_if(due)?;
        self.next += 1;
        self.counters.gaps += u64::from(decision.event != self.next_event);
        self.next_event = decision.event.saturating_add(decision.count.into());
        Some(decision)
    }

    fn slot(&self, mep: u64) -> usize {
        place_of(mep, self.decisions.len())
    }

    fn decision(&mut self, decision: &Decision, out: &mut impl Outbox) {
        let Some((node, _)) = self.topology.buffer_of(decision.descriptor) else {
            self.counters.out_of_range += 1;
            return;
        };
        let (run, mep) = (self.config.run, decision.mep);
        let slot = self.slot(mep);
        if mep >= self.next {
            if mep - self.next >= self.decisions.len() as u64 {
                self.counters.ahead += 1;
                return;
            }
            match self.decisions[slot] {
                None => self.take(slot, decision),
                Some(first) => {
                    self.counters.repeated += 1;
                    self.counters.conflicting += u64::from(first.accepted != decision.accepted);
                }
            }
        } else {
            self.counters.repeated += 1;
        }
        out.send(Address::Node(node), &Message::Ack(Ack { run, mep }));
        let before = self.before;
        let bits = 1;
        let decided = Decided {
            run,
            mep,
            bits,
            before,
        };
        out.send(Address::Scheduler, &Message::Decided(decided));
    }

    /// Tells the scheduler of all decisions that it does not know from the first ones on: messages
    /// may have been lost.
    fn repeat(&self, out: &mut impl Outbox) {
        let (run, before) = (self.config.run, self.before);
        let end = self.next.saturating_add(self.decisions.len() as u64);
        let first = before.saturating_sub(1);
        for mep in (first..end).step_by(64) {
            let is_decided = |n: u64| {
                let mep = mep + n;
                mep < before || (mep < end && self.decisions[self.slot(mep)].is_some())
            };
            let bits = (0..64).fold(0, |bits, n| bits | u64::from(is_decided(n)) << n);
            if bits != 0 {
                let decided = Decided {
                    run,
                    mep,
                    bits,
                    before,
                };
                out.send(Address::Scheduler, &Message::Decided(decided));
            }
        }
    }

    fn take(&mut self, slot: usize, decision: &Decision) {
        self.decisions[slot] = Some(*decision);
        let counters = &mut self.counters;
        counters.decided += 1;
        counters.events += u64::from(decision.count);
        counters.accepted += u64::from(decision.accepted.count_ones());
        counters.incomplete += u64::from(!decision.missing.is_empty());
        while self.before - self.next < self.decisions.len() as u64
            && self.decisions[self.slot(self.before)].is_some()
        {
            self.before += 1;
        }
    }
}

impl Role for Results {
    type Payload = ();

    fn receive(&mut self, _now: Time, message: &Message, (): (), out: &mut impl Outbox) {
        if message.run() != self.config.run {
            self.counters.other_run += 1;
            return;
        }
        match message {
            Message::Decision(decision) => self.decision(decision, out),
            _ => self.counters.unexpected += 1,
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        if now < self.beat {
            return;
        }
        self.beat = now + self.config.beat;
        let run = self.config.run;
        let from = Member::Results;
        out.send(Address::Scheduler, &Message::Alive(Alive { run, from }));
        self.repeat(out);
    }

    fn next_deadline(&self) -> Time {
        self.beat
    }
}
