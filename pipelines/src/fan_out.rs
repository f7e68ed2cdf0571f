//! Fan-out of a stage to worker loops, each on a core of its own.
//!
//! ```text
//!            +--> ring --> worker 0 --> ring --+
//!   items ---+--> ring --> worker 1 --> ring --+---> results, in the order of their items
//!            +--> processed by the loop itself +
//! ```
//!
//! Items are gathered into jobs. A job goes to the next worker whose ring has room. If no ring has,
//! the loop processes the job itself, so full rings never block it. Results leave in the order of
//! their items, so the output does not depend on the number of workers. Jobs are recycled boxes:
//! nothing is allocated after the start.
//!
//! The loop waits for the oldest job for a bounded time ([`FanOutOptions::patience`]). After that
//! it gives the job up: its items are counted as [undecided](WorkerCounts::undecided), and later
//! ones leave. A worker that holds such a job gets no other until it has returned it. The results
//! of the job are then dropped, as they would leave out of order. The jobs of a worker whose loop
//! has ended are lost, and their items are counted as undecided too: the loop keeps the number of
//! items of each job.

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

/// Jobs that wait for a worker, in addition to the one in progress: enough that a worker does not
/// run idle, and few enough to keep their latency short.
const DEPTH: usize = 4;

/// Most jobs that a stalled worker can hold: those in its ring, and the one in progress.
const KEPT: usize = DEPTH + 1;

/// Parameters of a fan-out.
#[derive(Clone, Copy, Debug)]
pub struct FanOutOptions {
    /// Number of worker loops, in addition to the loop of the pipeline; 0 for no fan-out.
    pub workers: usize,
    /// Loops share CPUs: a loop that waits for another yields its CPU.
    pub shares_cpus: bool,
    /// Longest wait for the oldest job. An interruption of the loop itself counts as a quarter of
    /// this at most, since the worker may have been interrupted for the same reason.
    pub patience: Ns,
}

impl Default for FanOutOptions {
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

impl FanOutOptions {
    /// Most items that a stage with this fan-out holds.
    #[must_use]
    pub fn items(&self) -> usize {
        match self.workers {
            0 => 0,
            workers => jobs(workers) * JOB,
        }
    }
}

/// Number of jobs of a stage: those that the workers may hold, and as many for the loop itself, one
/// of which is being filled. So the loop has a free job even if all workers stall.
fn jobs(workers: usize) -> usize {
    (workers + 1) * KEPT
}

/// The rings to a worker and back.
struct Lane<I: Send, O: Send> {
    to: BoxProducer<Job<I, O>>,
    from: BoxConsumer<Job<I, O>>,
    counts: Arc<WorkerCounts>,
}

impl<I: Send, O: Send> Lane<I, O> {
    /// Whether the worker gets jobs. Sets `gone` if its loop has ended.
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

/// Location of a job that was handed out.
enum Place<I, O> {
    With { lane: usize, items: usize },
    Done(Option<Box<Job<I, O>>>),
}

/// State of the oldest job.
enum Oldest<I, O> {
    Done(Box<Job<I, O>>),
    GivenUp,
    Awaited,
}

/// Time that the loop has waited for the oldest job.
struct Wait {
    limit: u64,
    waited: u64,
    /// Time of the last check.
    looked: Option<Tsc>,
}

impl Wait {
    /// Adds the time since the last check; whether the limit is reached.
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

/// A stage with fan-out. Only for stages that hold nothing back, and whose result for an item does
/// not depend on the rest of the batch.
pub struct FanOut<S: Stage>
where
    S::In: Send,
    S::Out: Send,
{
    own: S,
    lanes: Vec<Lane<S::In, S::Out>>,
    /// Index of the lane for the next job.
    next: usize,
    filling: Box<JobOf<S>>,
    #[expect(clippy::vec_box, reason = "jobs go to the workers as they are")]
    spare: Vec<Box<JobOf<S>>>,
    /// Jobs that were handed out, the oldest first.
    order: VecDeque<Place<S::In, S::Out>>,
    wait: Wait,
    clock: TscClock,
    shares_cpus: bool,
}

impl<S> FanOut<S>
where
    S: Stage + Send + 'static,
    S::In: Send + 'static,
    S::Out: Send + 'static,
{
    /// Fans a stage out to `workers`, copies of the stage. Their number holds, not that of
    /// `options`. Returns the stage for the pipeline, and the workers for their loops.
    ///
    /// # Errors
    /// Rings that cannot be allocated.
    pub fn new(
        own: S,
        workers: Vec<S>,
        options: &FanOutOptions,
    ) -> Result<(Self, Vec<Worker>), RingError> {
        let jobs = jobs(workers.len());
        let clock = TscClock::get();
        let (mut lanes, mut pool) = (Vec::new(), Vec::new());
        for stage in workers {
            let (to, work) = box_ring(DEPTH)?;
            // Room for all jobs: a worker never waits.
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
            pool.push(Worker { work, counts });
        }
        let fan_out = Self {
            own,
            lanes,
            next: 0,
            filling: Box::default(),
            spare: (1..jobs).map(|_| Box::default()).collect(),
            order: VecDeque::with_capacity(jobs),
            wait: Wait {
                limit: clock.to_cycles(options.patience).max(4),
                waited: 0,
                looked: None,
            },
            clock,
            shares_cpus: options.shares_cpus,
        };
        Ok((fan_out, pool))
    }

    /// Hands out the gathered job.
    fn hand_out(&mut self, out: &mut impl Output<S::Out>) {
        let fresh = loop {
            match self.spare.pop() {
                Some(job) => break job,
                // Workers hold at most `KEPT` jobs each, so a job comes back or is given up.
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

    /// Emits the results of finished jobs, up to the first that is not finished.
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

    /// Polls the oldest job, which a worker has.
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

    /// As [`look`](Self::look), if the job is not there or the worker owes another one first.
    #[cold]
    fn look_again(&mut self, lane: usize, items: usize) -> Oldest<S::In, S::Out> {
        // Both before the last poll of the ring: a job that is not there then is late or lost.
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
            // The loop has already waited for an older job of this worker.
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
            // Before the last poll of the ring: a job that is not there then is lost.
            let gone = lane.from.is_abandoned();
            while let Some(job) = lane.recover() {
                self.spare.push(job);
            }
            if gone && lane.counts.owed.get() > 0 {
                lane.counts.gone.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Waits until the oldest job is finished or given up.
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

impl<S> Stage for FanOut<S>
where
    S: Stage + Send + 'static,
    S::In: Send + 'static,
    S::Out: Send + 'static,
{
    type In = S::In;
    type Out = S::Out;

    fn process(&mut self, batch: &mut Batch<S::In>, out: &mut impl Output<S::Out>) {
        for item in batch.drain() {
            // The push succeeds: a full job is handed out at once.
            let _ = self.filling.items.push(item);
            if self.filling.items.is_full() {
                self.hand_out(out);
            }
        }
        self.collect(out);
    }

    /// Hands out a job that is not full if a worker has room for it, or if there is no worker.
    /// Otherwise it waits for further items.
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
