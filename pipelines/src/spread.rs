//! A stage that is spread over further loops, each on a core of its own.
//!
//! ```text
//!            +--> ring --> worker 0 --> ring --+
//!   items ---+--> ring --> worker 1 --> ring --+---> results, in the order of their items
//!            +--> worked on by the loop itself +
//! ```
//!
//! Items are gathered into jobs. A job goes to the next worker whose ring has room; if none has, the
//! loop works on it itself, so it is never held up by full rings. Results leave in the order in which
//! their items came, whoever worked on them: what comes out does not depend on the number of
//! workers. Jobs are boxes that go round: nothing is allocated after the start.
//!
//! The loop waits for the oldest job for a bounded time ([`Spreading::patience`]). After that it
//! gives the job up: its items are counted as [undecided](WorkerCounts::undecided), and later ones
//! leave. A worker that owes such a job gets no other until it has brought it back; its results are
//! dropped then, as they would leave out of order. Jobs of a worker whose loop has ended are lost
//! with it, and their items are counted likewise: the loop remembers how many each job has.

mod job;
mod worker;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pollux_mempool::ring::RingError;
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{BoxConsumer, BoxProducer, box_ring};
use pollux_pmd::{Clock, LatencyHistogram, TscClock};

use self::job::{JOB, Job, JobOf};
use self::worker::Working;
pub use self::worker::{Worker, WorkerCounts};
use crate::sink::Output;
use crate::stage::{Batch, Moment, Stage};

/// Jobs that wait for a worker, beside the one that it is at: so many that it finds the next one
/// when it is done, and so few that they are done before long.
const DEPTH: usize = 4;

/// Most jobs that a worker can keep for ever: those in its ring, and the one that it is at.
const KEPT: usize = DEPTH + 1;

/// Over how many loops stages are spread.
#[derive(Clone, Copy, Debug)]
pub struct Spreading {
    /// Loops beside the one that runs the pipeline; 0 for none.
    pub workers: usize,
    /// Loops share CPUs, so that one that waits for another has to give way.
    pub shares_cpus: bool,
    /// How long the loop waits for the oldest job before it gives it up. Time in which the loop
    /// itself stood still counts as a quarter of it at most, since the worker may have stood still
    /// for the same reason.
    pub patience: Ns,
}

impl Default for Spreading {
    /// No workers. The patience of 1 ms is many times what a job takes (16 items of some
    /// microseconds each).
    fn default() -> Self {
        Self {
            workers: 0,
            shares_cpus: false,
            patience: Ns(1_000_000),
        }
    }
}

impl Spreading {
    /// Most items that a stage which is spread so holds.
    #[must_use]
    pub fn items(&self) -> usize {
        match self.workers {
            0 => 0,
            workers => jobs(workers) * JOB,
        }
    }
}

/// Jobs of a stage: those that the workers may keep, and as many that the loop does itself, one of
/// them to be filled. Whatever workers do, the loop has boxes left.
fn jobs(workers: usize) -> usize {
    (workers + 1) * KEPT
}

/// The way to a worker and back.
struct Lane<I: Send, O: Send> {
    to: BoxProducer<Job<I, O>>,
    from: BoxConsumer<Job<I, O>>,
    counts: Arc<WorkerCounts>,
}

impl<I: Send, O: Send> Lane<I, O> {
    /// Whether the worker gets jobs. Notes that it is gone.
    #[inline]
    fn is_used(&self) -> bool {
        if self.from.is_abandoned() {
            self.counts.gone.store(true, Ordering::Relaxed);
            return false;
        }
        self.counts.owed.get() == 0
    }

    /// Takes back a job that was given up. Such jobs are older than all others of the worker.
    #[inline]
    fn recover(&mut self) -> Option<Box<Job<I, O>>> {
        let owed = self.counts.owed.get().checked_sub(1)?;
        let mut job = self.from.pop()?;
        self.counts.owed.set(owed);
        job.clear();
        Some(job)
    }
}

/// Where a job is that was handed out.
enum Place<I, O> {
    With { lane: usize, items: usize },
    Done(Option<Box<Job<I, O>>>),
}

/// What became of the oldest job.
enum Oldest<I, O> {
    Done(Box<Job<I, O>>),
    GivenUp,
    Awaited,
}

/// How long the loop has waited for the oldest job.
struct Wait {
    limit: u64,
    waited: u64,
    /// When it looked last.
    looked: Option<Tsc>,
}

impl Wait {
    /// Looks at the clock; whether it has been long enough.
    fn is_over(&mut self, now: Tsc) -> bool {
        let gap = self.looked.map_or(0, |looked| now.since(looked));
        self.looked = Some(now);
        self.waited += gap.min(self.limit / 4);
        self.waited >= self.limit
    }

    fn begin_anew(&mut self) {
        (self.waited, self.looked) = (0, None);
    }
}

/// The stage in the pipeline. Only for stages that hold nothing back, and that make of each item
/// what they would make of it in any other batch.
pub struct Spread<S: Stage>
where
    S::In: Send,
    S::Out: Send,
{
    own: S,
    lanes: Vec<Lane<S::In, S::Out>>,
    /// The lane that has its turn.
    next: usize,
    filling: Box<JobOf<S>>,
    #[expect(clippy::vec_box, reason = "jobs go to the workers as they are")]
    spare: Vec<Box<JobOf<S>>>,
    /// Of the jobs that were handed out, the oldest first.
    order: VecDeque<Place<S::In, S::Out>>,
    wait: Wait,
    clock: TscClock,
    shares_cpus: bool,
}

impl<S> Spread<S>
where
    S: Stage + Send + 'static,
    S::In: Send + 'static,
    S::Out: Send + 'static,
{
    /// Spreads a stage over `workers`, which do the same as it does, however many `spreading` says;
    /// gives the stage for the pipeline, and the workers for their loops.
    ///
    /// # Errors
    /// Rings that cannot be had.
    pub fn new(
        own: S,
        workers: Vec<S>,
        spreading: &Spreading,
    ) -> Result<(Self, Vec<Worker>), RingError> {
        let jobs = jobs(workers.len());
        let clock = TscClock::get();
        let (mut lanes, mut crew) = (Vec::new(), Vec::new());
        for stage in workers {
            let (to, work) = box_ring(DEPTH)?;
            // Room for all: a worker never waits.
            let (done, from) = box_ring(jobs)?;
            let counts = Arc::<WorkerCounts>::default();
            lanes.push(Lane {
                to,
                from,
                counts: Arc::clone(&counts),
            });
            let work = Box::new(Working {
                stage,
                work,
                done,
                clock,
                times: LatencyHistogram::new(),
            });
            crew.push(Worker { work, counts });
        }
        let spread = Self {
            own,
            lanes,
            next: 0,
            filling: Box::default(),
            spare: (1..jobs).map(|_| Box::default()).collect(),
            order: VecDeque::with_capacity(jobs),
            wait: Wait {
                limit: clock.to_cycles(spreading.patience).max(4),
                waited: 0,
                looked: None,
            },
            clock,
            shares_cpus: spreading.shares_cpus,
        };
        Ok((spread, crew))
    }

    /// Hands out what was gathered.
    fn hand_out(&mut self, out: &mut impl Output<S::Out>) {
        let fresh = loop {
            match self.spare.pop() {
                Some(job) => break job,
                // Workers keep no more than `KEPT` each, so there are jobs to wait for.
                None => self.wait(out),
            }
        };
        let mut job = std::mem::replace(&mut self.filling, fresh);
        let items = job.items.as_slice().len();
        for turn in 0..self.lanes.len() {
            let place = (self.next + turn) % self.lanes.len();
            let lane = &mut self.lanes[place];
            if !lane.is_used() {
                continue;
            }
            match lane.to.push(job) {
                Ok(()) => {
                    self.next = place + 1;
                    self.order.push_back(Place::With { lane: place, items });
                    return;
                }
                Err(refused) => job = refused,
            }
        }
        self.own.process(&mut job.items, &mut job.made);
        self.order.push_back(Place::Done(Some(job)));
    }

    /// Hands on what is done, as far as nothing older is missing.
    #[inline]
    fn collect(&mut self, out: &mut impl Output<S::Out>) {
        loop {
            let done = match self.order.front_mut() {
                None => break,
                Some(Place::Done(job)) => job.take(),
                Some(&mut Place::With { lane, items }) => match self.look(lane, items) {
                    Oldest::Done(job) => Some(job),
                    Oldest::GivenUp => None,
                    Oldest::Awaited => break,
                },
            };
            self.order.pop_front();
            self.wait.begin_anew();
            if let Some(mut job) = done {
                job.made.drain(..).for_each(|item| out.push(item));
                job.items.clear();
                self.spare.push(job);
            }
        }
        self.recover();
    }

    /// Looks after the oldest job, which is with a worker.
    #[inline]
    fn look(&mut self, lane: usize, items: usize) -> Oldest<S::In, S::Out> {
        let own = &mut self.lanes[lane];
        if own.counts.owed.get() == 0
            && let Some(job) = own.from.pop()
        {
            return Oldest::Done(job);
        }
        self.look_again(lane, items)
    }

    /// The same where the job is not there, or another is expected first.
    #[cold]
    fn look_again(&mut self, lane: usize, items: usize) -> Oldest<S::In, S::Out> {
        // Both before the last look: what is not there then did not come in time, or never will.
        let gone = self.lanes[lane].from.is_abandoned();
        let over = self.wait.is_over(self.clock.now());
        let Lane { from, counts, .. } = &mut self.lanes[lane];
        while counts.owed.get() > 0 {
            let Some(mut job) = from.pop() else { break };
            counts.owed.set(counts.owed.get() - 1);
            job.clear();
            self.spare.push(job);
        }
        let stalled = counts.owed.get() > 0;
        if !stalled && let Some(job) = from.pop() {
            return Oldest::Done(job);
        }
        if gone {
            counts.gone.store(true, Ordering::Relaxed);
        } else if stalled {
            // The loop has waited for an older job already.
            counts.owed.add(1);
        } else if over {
            counts.owed.add(1);
            counts.stalls.add(1);
        } else {
            return Oldest::Awaited;
        }
        counts.undecided.add(items as u64);
        Oldest::GivenUp
    }

    /// Takes back jobs that were given up.
    #[inline]
    fn recover(&mut self) {
        for lane in &mut self.lanes {
            if lane.counts.owed.get() == 0 {
                continue;
            }
            // Before the last look: what is not there then never will be.
            let gone = lane.from.is_abandoned();
            while let Some(job) = lane.recover() {
                self.spare.push(job);
            }
            if gone && lane.counts.owed.get() > 0 {
                lane.counts.gone.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Waits until the oldest job is done, or given up.
    #[cold]
    fn wait(&mut self, out: &mut impl Output<S::Out>) {
        let waiting = self.order.len();
        loop {
            self.collect(out);
            if self.order.len() < waiting || !self.spare.is_empty() {
                return;
            }
            if self.shares_cpus {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl<S> Stage for Spread<S>
where
    S: Stage + Send + 'static,
    S::In: Send + 'static,
    S::Out: Send + 'static,
{
    type In = S::In;
    type Out = S::Out;

    fn process(&mut self, batch: &mut Batch<S::In>, out: &mut impl Output<S::Out>) {
        for item in batch.drain() {
            // It fits: a full job is handed out at once.
            let _ = self.filling.items.push(item);
            if self.filling.items.is_full() {
                self.hand_out(out);
            }
        }
        self.collect(out);
    }

    /// What does not fill a job goes if a worker has room for it, or if there is no worker: else
    /// more may come meanwhile.
    fn tick(&mut self, _now: Moment, out: &mut impl Output<S::Out>) {
        if !self.filling.items.is_empty() {
            let mut used = self.lanes.iter().filter(|lane| lane.is_used()).peekable();
            if used.peek().is_none() || used.any(|lane| lane.to.free() > 0) {
                self.hand_out(out);
            }
        }
        self.collect(out);
    }

    fn finish(&mut self, out: &mut impl Output<S::Out>) {
        if !self.filling.items.is_empty() {
            self.hand_out(out);
        }
        while !self.order.is_empty() {
            self.wait(out);
        }
    }
}
