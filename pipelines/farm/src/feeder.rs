//! A feeder: keeps the fragments of one source, and transfers them as flow control messages say
//! (thesis, III.E).

mod counters;
pub mod mockup;
pub mod store;

use std::collections::VecDeque;

pub use counters::Counters;
use pollux_pmd::mempool::prefetch::prefetch_write;

use crate::fragments::{Fragments, Outgoing};
use crate::message::{Alive, Flow, Member, Message, Request};
use crate::place::place_of;
use crate::role::{Address, Hop, Outbox, Role, Transfer};
use crate::time::Time;
use crate::topology::{Descriptor, Feeders, MAX_FEEDERS, Topology};

/// Configuration of a feeder.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Number of the run.
    pub run: u32,
    /// Its number: its place in the ring.
    pub id: u8,
    /// Bytes of the slot that each receive buffer has for a feeder: most bytes of a payload.
    pub slot: u32,
    /// Most MEPs in flight, as of the scheduler.
    pub in_flight: usize,
    /// Messages pass on while a transfer of more than so many bytes runs, if they do not say
    /// `hold`; others wait for the end of the transfer.
    pub bypass_above: u32,
    /// Time between two messages that say that the feeder runs.
    pub beat: Time,
}

/// A feeder that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number that the farm does not have.
    #[error("feeder {id} of {feeders}: the first one is 0")]
    NoFeeder {
        /// The number.
        id: u8,
        /// Feeders of the farm.
        feeders: usize,
    },
    /// No MEP in flight.
    #[error("0 MEPs in flight: set `in_flight` as the scheduler has it")]
    InFlight,
    /// No time between two messages.
    #[error("`beat` is zero: the feeder would send without end")]
    NoBeat,
}

/// MEPs ahead of the present one whose places are asked for: two cache lines.
const AHEAD: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Served {
    mep: u64,
    attempt: u16,
}

/// A transfer that waits or runs.
#[derive(Clone, Copy, Debug)]
struct Job {
    flow: Flow,
    /// A node asks for it: no message goes on.
    requested: bool,
}

/// A request that waits or whose transfer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    mep: u64,
    descriptor: Descriptor,
    generation: u32,
    part: u8,
}

impl Asked {
    fn new(flow: &Flow) -> Self {
        Self {
            mep: flow.mep,
            descriptor: flow.descriptor,
            generation: flow.generation,
            part: flow.part,
        }
    }
}

/// A feeder and its store.
#[derive(Debug)]
pub struct Feeder<S> {
    config: Config,
    /// The node of each descriptor.
    nodes: Box<[u16]>,
    store: S,
    queue: VecDeque<Job>,
    /// The transfer that runs, and its bytes.
    current: Option<(Job, u32)>,
    /// The last attempt of each MEP in flight that was taken.
    served: Box<[Served]>,
    /// The last request for each MEP in flight, until it is answered.
    asked: Box<[Option<Asked>]>,
    decided: u64,
    beat: Time,
    counters: Counters,
}

impl<S: Fragments> Feeder<S> {
    /// A feeder that knows the receive buffers of a farm. All memory is allocated here.
    ///
    /// # Errors
    /// A configuration that cannot be.
    pub fn new(
        config: Config,
        topology: &Topology,
        store: S,
        now: Time,
    ) -> Result<Self, ConfigError> {
        let (id, feeders) = (config.id, topology.feeders());
        if usize::from(id) >= feeders {
            return Err(ConfigError::NoFeeder { id, feeders });
        }
        if config.in_flight == 0 {
            return Err(ConfigError::InFlight);
        }
        if config.beat == Time::ZERO {
            return Err(ConfigError::NoBeat);
        }
        let none = Served {
            mep: u64::MAX,
            attempt: 0,
        };
        let nodes = topology.nodes();
        Ok(Self {
            nodes: (0..topology.descriptors())
                .map(|descriptor| (descriptor % nodes) as u16)
                .collect(),
            store,
            queue: VecDeque::with_capacity(config.in_flight),
            current: None,
            served: vec![none; config.in_flight].into(),
            asked: vec![None; config.in_flight].into(),
            decided: 0,
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

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store, to add data to.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Messages that wait for the transfer, and the one whose transfer runs.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// The transfer that ran is complete: its message goes on, and the next transfer starts.
    pub fn transferred(&mut self, out: &mut impl Outbox) {
        if let Some((mut job, _)) = self.current.take() {
            let to = self.end(&mut job.flow, job.requested);
            send(to, &job.flow, out);
            self.serve(out);
        }
    }

    /// Takes a flow control message of the run.
    #[inline]
    fn flow(&mut self, flow: &mut Flow, out: &mut impl Outbox) -> Option<Address> {
        self.learn(flow.decided);
        let mine = Feeders::only(self.config.id);
        if flow.pending.and(mine).is_empty() {
            self.counters.not_pending += 1;
            return Some(self.next(flow));
        }
        if flow.count == 0 {
            self.counters.releases += 1;
            return Some(self.done(flow));
        }
        if flow.descriptor.index() >= self.nodes.len() {
            self.counters.out_of_range += 1;
            return None;
        }
        if flow.event.saturating_add(flow.count.into()) <= self.decided {
            self.counters.decided += 1;
            return Some(self.done(flow));
        }
        let slot = self.slot(flow);
        let served = self.served[slot];
        if served.mep == flow.mep {
            // A message comes once in each attempt and round, until it is taken.
            let newer = flow.attempt.wrapping_sub(served.attempt) as i16;
            if newer <= 0 {
                let count = if newer == 0 {
                    &mut self.counters.repeated
                } else {
                    &mut self.counters.stale
                };
                *count += 1;
                return None;
            }
            // The attempt that waits has been given up.
            let mut jobs = self.queue.iter_mut();
            if let Some(job) = jobs.find(|job| !job.requested && job.flow.mep == flow.mep) {
                job.flow = *flow;
                self.counters.stale += 1;
                self.take(slot, flow);
                return None;
            }
        }
        if self.passes(flow) {
            self.counters.bypassed += 1;
            return Some(self.next(flow));
        }
        if self.queue.len() >= self.config.in_flight {
            self.counters.queue_full += 1;
            return None;
        }
        self.take(slot, flow);
        self.begin(flow, false, out)
    }

    /// A node asks for a fragment. It has no answer if it asks for what is not here.
    fn request(&mut self, request: &Request, out: &mut impl Outbox) {
        if request.feeder != self.config.id {
            self.counters.not_pending += 1;
            return;
        }
        if request.descriptor.index() >= self.nodes.len() {
            self.counters.out_of_range += 1;
            return;
        }
        if request.event.saturating_add(request.count.into()) <= self.decided {
            self.counters.decided += 1;
            return;
        }
        let mut flow = requested(request);
        let slot = self.slot(&flow);
        if self.asked[slot] == Some(Asked::new(&flow)) {
            self.counters.repeated += 1;
            return;
        }
        if self.queue.len() >= self.config.in_flight {
            self.counters.queue_full += 1;
            return;
        }
        self.counters.requests += 1;
        self.asked[slot] = Some(Asked::new(&flow));
        self.begin(&mut flow, true, out);
    }

    /// A transfer begins, or waits.
    #[inline]
    fn begin(
        &mut self,
        flow: &mut Flow,
        requested: bool,
        out: &mut impl Outbox,
    ) -> Option<Address> {
        if self.current.is_none() && self.queue.is_empty() {
            return self.start(flow, requested, out);
        }
        let flow = *flow;
        self.queue.push_back(Job { flow, requested });
        self.serve(out);
        None
    }

    fn slot(&self, flow: &Flow) -> usize {
        place_of(flow.mep, self.served.len())
    }

    /// The message is this feeder's to transfer: repetitions are not.
    #[inline]
    fn take(&mut self, slot: usize, flow: &Flow) {
        // The tables of all feeders together are larger than a cache, and MEPs come in turn as a rule.
        prefetch_write(self.served.as_ptr().wrapping_add(slot + AHEAD));
        self.served[slot] = Served {
            mep: flow.mep,
            attempt: flow.attempt,
        };
    }

    /// The message will come again in this attempt.
    fn give_back(&mut self, flow: &Flow) {
        let slot = self.slot(flow);
        self.served[slot].attempt = flow.attempt.wrapping_sub(1);
    }

    /// Whether a message need not wait for the transfer that runs.
    fn passes(&self, flow: &Flow) -> bool {
        let bytes = self.current.map_or(0, |(_, bytes)| bytes);
        bytes > self.config.bypass_above && !flow.hold
    }

    fn learn(&mut self, decided: u64) {
        if decided > self.decided {
            self.decided = decided;
            self.store.release(decided);
        }
    }

    /// Starts transfers until one runs or no message waits.
    fn serve(&mut self, out: &mut impl Outbox) {
        while self.current.is_none() {
            let Some(mut job) = self.queue.pop_front() else {
                return;
            };
            let to = self.start(&mut job.flow, job.requested, out);
            send(to, &job.flow, out);
        }
        // Behind a long transfer, messages pass on.
        let waiting = self.queue.len();
        for _ in 0..waiting {
            let Some(job) = self.queue.pop_front() else {
                return;
            };
            if !job.requested && self.passes(&job.flow) {
                self.counters.bypassed += 1;
                let to = self.pass_by(&job.flow, job.requested);
                send(to, &job.flow, out);
            } else {
                self.queue.push_back(job);
            }
        }
    }

    /// A message that waited goes on without a transfer; a request ends without one.
    fn pass_by(&mut self, flow: &Flow, requested: bool) -> Option<Address> {
        if requested {
            self.answered(flow);
            return None;
        }
        self.give_back(flow);
        Some(self.next(flow))
    }

    /// Requests like this one are new again.
    fn answered(&mut self, flow: &Flow) {
        let slot = self.slot(flow);
        self.asked[slot].take_if(|asked| *asked == Asked::new(flow));
    }

    /// A transfer is complete.
    #[inline]
    fn end(&mut self, flow: &mut Flow, requested: bool) -> Option<Address> {
        if requested {
            self.answered(flow);
            return None;
        }
        Some(self.done(flow))
    }

    /// Starts a transfer, unless data are not there that may come later.
    #[inline]
    fn start(
        &mut self,
        flow: &mut Flow,
        requested: bool,
        out: &mut impl Outbox,
    ) -> Option<Address> {
        let outgoing = Outgoing::new(self.config.id, flow, &self.store, self.config.slot);
        let counters = &mut self.counters;
        if !flow.hold && !outgoing.is_whole() {
            counters.early += 1;
            return self.pass_by(flow, requested);
        }
        let (bytes, oversize) = (outgoing.payload_len() as u32, outgoing.oversize());
        counters.transfers += 1;
        counters.events += u64::from(flow.count);
        counters.bytes += u64::from(bytes);
        counters.absent += u64::from(outgoing.absent() - oversize);
        counters.oversize += u64::from(oversize);
        let node = self.nodes[flow.descriptor.index()];
        match out.transfer(node, &outgoing) {
            Transfer::Done => self.end(flow, requested),
            Transfer::Running => {
                let flow = *flow;
                self.current = Some((Job { flow, requested }, bytes));
                None
            }
        }
    }

    /// A message goes on with the own bit cleared.
    #[inline]
    fn done(&self, flow: &mut Flow) -> Address {
        flow.pending = flow.pending.without(Feeders::only(self.config.id));
        self.next(flow)
    }

    /// Where a message goes: to the next feeder that has to transfer, or back to the scheduler.
    #[inline]
    fn next(&self, flow: &Flow) -> Address {
        let next = flow.pending.next_from(self.config.id + 1);
        next.map_or(Address::Scheduler, Address::Feeder)
    }
}

/// Sends a message that goes on.
fn send(to: Option<Address>, flow: &Flow, out: &mut impl Outbox) {
    if let Some(to) = to {
        out.send(to, &Message::Flow(*flow));
    }
}

/// The transfer that a node asks for.
fn requested(request: &Request) -> Flow {
    Flow {
        run: request.run,
        mep: request.mep,
        event: request.event,
        count: request.count,
        descriptor: request.descriptor,
        generation: request.generation,
        attempt: request.attempt,
        part: request.part,
        loops: 0,
        hold: request.hold,
        members: request.members,
        pending: Feeders::only(request.feeder),
        decided: 0,
    }
}

const _: () = assert!(MAX_FEEDERS < u8::MAX as usize);

impl<S: Fragments> Role for Feeder<S> {
    type Payload = ();

    #[inline]
    fn receive(&mut self, _now: Time, message: &Message, (): (), out: &mut impl Outbox) {
        let run = self.config.run;
        match message {
            Message::Flow(flow) => {
                let mut flow = *flow;
                let to = self.pass(&mut flow, out);
                send(to, &flow, out);
            }
            Message::Request(request) if request.run == run => self.request(request, out),
            other if other.run() == run => self.counters.unexpected += 1,
            _ => self.counters.other_run += 1,
        }
    }

    fn poll(&mut self, now: Time, out: &mut impl Outbox) {
        if now >= self.beat {
            self.beat = now + self.config.beat;
            let alive = Alive {
                run: self.config.run,
                from: Member::Feeder(self.config.id),
            };
            out.send(Address::Scheduler, &Message::Alive(alive));
        }
    }

    fn next_deadline(&self) -> Time {
        self.beat
    }
}

impl<S: Fragments> Hop for Feeder<S> {
    #[inline]
    fn pass(&mut self, flow: &mut Flow, out: &mut impl Outbox) -> Option<Address> {
        if flow.run != self.config.run {
            self.counters.other_run += 1;
            return None;
        }
        self.flow(flow, out)
    }
}
