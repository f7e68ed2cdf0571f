//! Asynchronous stages: work that is submitted to a worker or a GPU, and polled for.
//!
//! An [`AsyncStage`] takes jobs of items and brings back their results later, in any order.
//! [`InFlight`] makes a [`Stage`] of it:
//!
//! ```text
//!             +-- submit(ticket, items) --> worker, GPU --+
//!   items ----+                                           +--> results, in the order of their items
//!             +-- waiting: is_full ------   poll() <------+
//! ```
//!
//! - Results leave in the order of the items, whenever each job was done.
//! - A bounded number of jobs is in flight. When no more can be submitted, items wait and the stage
//!   [is full](Stage::is_full): the poll loop receives no more, and frames wait in the port, where a
//!   loss has a counter.
//! - The end of the input is waited for: [`finish`](Stage::finish) submits what waits and polls until
//!   nothing is in flight.
//! - The oldest job is waited for for a bounded time ([`InFlightOptions::patience`]), which ticks
//!   look at; after that it is given up, its items are counted as
//!   [lost](InFlightCounts::lost), and its results are dropped if they come after all.
//!
//! Nothing is allocated after the start while jobs make no more results than they have items.
//! [`FanOut`](crate::fan_out::FanOut) is for stages that worker loops run as they are: it needs no
//! tickets, as the ring of a worker keeps the order of its jobs, and it works on a job itself where
//! all workers are busy.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::{Clock, Count, TscClock};

use crate::sink::Output;
use crate::stage::{BATCH, Batch, Moment, Stage};

/// Which job it is, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A stage whose work is done elsewhere. Neither function waits.
pub trait AsyncStage {
    /// What it takes.
    type In;
    /// What it makes.
    type Out;

    /// How many items it wants in a job, as [`Stage::batch`].
    fn batch(&self) -> RangeInclusive<usize> {
        1..=BATCH
    }

    /// For how long items are kept back for a job of the least number, as [`Stage::batch_wait`].
    fn batch_wait(&self) -> Ns {
        Ns(20_000)
    }

    /// Begins a job, and takes its items out of the batch.
    ///
    /// # Errors
    /// [`Busy`]: there is no room for it now. All items are in the batch.
    fn submit(&mut self, ticket: Ticket, items: &mut Batch<Self::In>) -> Result<(), Busy>;

    /// Puts the results of one job that is done into `made`, which is empty, in the order of its
    /// items; which job it was. `None` if none is done. Jobs may be done in any order.
    fn poll(&mut self, made: &mut Vec<Self::Out>) -> Option<Ticket>;
}

/// A job could not be submitted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for another job now")]
pub struct Busy;

/// Bounds of jobs that are in flight.
#[derive(Clone, Copy, Debug)]
pub struct InFlightOptions {
    /// Most jobs that are in flight, and done ones that wait for an older one.
    pub jobs: usize,
    /// How long the oldest job may take before it is given up. Time in which the loop itself stood
    /// still counts as a quarter of it at most.
    pub patience: Ns,
}

/// Four jobs, of a second each.
impl Default for InFlightOptions {
    fn default() -> Self {
        Self {
            jobs: 4,
            patience: Ns(1_000_000_000),
        }
    }
}

/// What is counted of jobs. Written by the loop of the pipeline alone.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct InFlightCounts {
    /// Jobs that were submitted.
    pub submitted: Count,
    /// Those that were done in time.
    pub done: Count,
    /// Times that a job was refused, and submitted later.
    pub busy: Count,
    /// Jobs that were given up.
    pub given_up: Count,
    /// Items of those jobs.
    pub lost: Count,
    /// Jobs that are in flight, or done and waiting for an older one.
    pub in_flight: Count,
}

/// Most jobs in flight.
const MOST_JOBS: usize = 4096;

/// A job that was submitted.
struct Slot<T> {
    items: usize,
    made: Option<Vec<T>>,
}

/// A stage of the jobs of an [`AsyncStage`].
pub struct InFlight<A: AsyncStage> {
    stage: A,
    most_jobs: usize,
    /// Items that wait to be submitted, and those of the next job.
    waiting: VecDeque<A::In>,
    job: Batch<A::In>,
    /// Jobs in the order in which they were submitted; the ticket of the first.
    slots: VecDeque<Slot<A::Out>>,
    first: Ticket,
    spare: Vec<Vec<A::Out>>,
    /// How long the oldest job was waited for, and when that was looked at.
    waited: u64,
    looked: Option<Tsc>,
    limit: u64,
    clock: TscClock,
    counts: Arc<InFlightCounts>,
}

impl<A: AsyncStage> InFlight<A> {
    /// Makes the stage, with 1 to 4096 jobs in flight.
    #[must_use]
    pub fn new(stage: A, options: &InFlightOptions) -> Self {
        let most_jobs = options.jobs.clamp(1, MOST_JOBS);
        let most_items = (*stage.batch().end()).clamp(1, 1 << 16);
        let clock = TscClock::get();
        Self {
            stage,
            most_jobs,
            // What the chain brings in one round, once the stage is full.
            waiting: VecDeque::with_capacity(4 * most_items),
            job: Batch::with_capacity(most_items),
            slots: VecDeque::with_capacity(most_jobs),
            first: Ticket(0),
            spare: (0..=most_jobs)
                .map(|_| Vec::with_capacity(most_items))
                .collect(),
            waited: 0,
            looked: None,
            limit: clock.to_cycles(options.patience).max(4),
            clock,
            counts: Arc::default(),
        }
    }

    /// What is counted of its jobs.
    #[must_use]
    pub fn counts(&self) -> Arc<InFlightCounts> {
        Arc::clone(&self.counts)
    }

    /// Submits what waits, as far as there is room.
    fn submit(&mut self) {
        while !(self.waiting.is_empty() && self.job.is_empty()) && self.slots.len() < self.most_jobs
        {
            while !self.job.is_full()
                && let Some(item) = self.waiting.pop_front()
            {
                // There is room.
                let _ = self.job.push(item);
            }
            let items = self.job.as_slice().len();
            let ticket = Ticket(self.first.0 + self.slots.len() as u64);
            if self.stage.submit(ticket, &mut self.job).is_err() {
                self.counts.busy.add(1);
                break;
            }
            self.job.clear();
            if self.slots.is_empty() {
                // The time of this job begins, whatever the wait for its submission was.
                (self.waited, self.looked) = (0, None);
            }
            self.slots.push_back(Slot { items, made: None });
            self.counts.submitted.add(1);
        }
        self.counts.in_flight.set(self.slots.len() as u64);
    }

    /// Takes what is done, and hands on what no older job is missing for.
    fn collect(&mut self, out: &mut impl Output<A::Out>) {
        while let Some(mut made) = self.spare.pop() {
            let Some(ticket) = self.stage.poll(&mut made) else {
                made.clear();
                self.spare.push(made);
                break;
            };
            // Below the first are those that were given up.
            let place = ticket.0.checked_sub(self.first.0);
            let slot = place.and_then(|place| self.slots.get_mut(usize::try_from(place).ok()?));
            match slot {
                Some(slot) if slot.made.is_none() => {
                    slot.made = Some(made);
                    self.counts.done.add(1);
                }
                _ => {
                    made.clear();
                    self.spare.push(made);
                }
            }
        }
        while let Some(mut made) = self.slots.front_mut().and_then(|slot| slot.made.take()) {
            made.drain(..).for_each(|item| out.push(item));
            self.spare.push(made);
            self.remove_first();
        }
    }

    fn remove_first(&mut self) -> Option<Slot<A::Out>> {
        let slot = self.slots.pop_front()?;
        self.first.0 += 1;
        (self.waited, self.looked) = (0, None);
        Some(slot)
    }

    /// Looks at the clock; whether the oldest job was waited for long enough.
    fn is_over(&mut self) -> bool {
        let now = self.clock.now();
        let gap = self.looked.map_or(0, |looked| now.since(looked));
        self.looked = Some(now);
        self.waited += gap.min(self.limit / 4);
        self.waited >= self.limit
    }

    /// Gives the oldest job up if it takes too long, or the items that wait if the stage takes no job
    /// for as long although it has none: else a stage whose workers are gone would be full for ever.
    /// Returns whether it did.
    fn give_up(&mut self) -> bool {
        if self.slots.is_empty() && !self.is_full() {
            (self.waited, self.looked) = (0, None);
            return false;
        }
        if !self.is_over() {
            return false;
        }
        if let Some(slot) = self.remove_first() {
            self.counts.given_up.add(1);
            self.counts.lost.add(slot.items as u64);
        } else {
            let left = self.waiting.len() + self.job.as_slice().len();
            self.counts.lost.add(left as u64);
            self.waiting.clear();
            self.job.clear();
            (self.waited, self.looked) = (0, None);
        }
        true
    }

    /// Goes on with all jobs as far as that is possible now.
    fn advance(&mut self, out: &mut impl Output<A::Out>) {
        self.collect(out);
        self.submit();
    }
}

impl<A: AsyncStage> Stage for InFlight<A> {
    type In = A::In;
    type Out = A::Out;

    fn batch(&self) -> RangeInclusive<usize> {
        self.stage.batch()
    }

    fn batch_wait(&self) -> Ns {
        self.stage.batch_wait()
    }

    fn process(&mut self, batch: &mut Batch<A::In>, out: &mut impl Output<A::Out>) {
        self.waiting.extend(batch.drain());
        self.advance(out);
    }

    fn tick(&mut self, _now: Moment, out: &mut impl Output<A::Out>) {
        self.advance(out);
        self.give_up();
    }

    fn finish(&mut self, out: &mut impl Output<A::Out>) {
        let mut over = false;
        loop {
            self.advance(out);
            if self.slots.is_empty() && !self.is_full() {
                return;
            }
            if over {
                // One job has had its time; the others had the same.
                self.waited = self.limit;
            }
            over |= self.give_up();
            self.clock.relax();
        }
    }

    fn is_full(&self) -> bool {
        !self.waiting.is_empty() || !self.job.is_empty()
    }
}
