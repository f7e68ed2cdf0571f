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

use std::collections::VecDeque;

use pollux_mempool::ring::RingError;
use pollux_mempool::{BoxConsumer, BoxProducer, box_ring};
use pollux_pmd::{Clock, LatencyHistogram, LatencyView, TscClock};

use crate::stage::{Batch, Moment, Sink, Stage};

/// Most items of a job: as many as the ring finder takes at once.
const JOB: usize = 16;

/// Jobs that wait for a worker, beside the one that it is at: so many that it finds the next one
/// when it is done, and so few that they are done before long.
const DEPTH: usize = 4;

/// Over how many loops stages are spread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spreading {
    /// Loops beside the one that runs the pipeline; 0 for none.
    pub workers: usize,
    /// Loops share CPUs, so that one that waits for another has to give way.
    pub shares_cpus: bool,
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

/// Jobs of a stage: those with the workers, those that the loop does itself, and one to be filled.
fn jobs(workers: usize) -> usize {
    (workers + 1) * (DEPTH + 1)
}

/// Items to be worked on, or what was made of them.
struct Job<I, O> {
    items: Batch<I>,
    made: Vec<O>,
}

impl<I, O> Default for Job<I, O> {
    fn default() -> Self {
        Self {
            items: Batch::with_capacity(JOB),
            made: Vec::with_capacity(JOB),
        }
    }
}

type JobOf<S> = Job<<S as Stage>::In, <S as Stage>::Out>;

/// The way to a worker and back.
struct Lane<I: Send, O: Send> {
    to: BoxProducer<Job<I, O>>,
    from: BoxConsumer<Job<I, O>>,
    /// The worker is no more.
    is_gone: bool,
}

/// Where a job is that was handed out.
enum Place<I, O> {
    With(usize),
    Done(Option<Box<Job<I, O>>>),
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
    shares_cpus: bool,
}

impl<S> Spread<S>
where
    S: Stage + Send + 'static,
    S::In: Send + 'static,
    S::Out: Send + 'static,
{
    /// Spreads a stage over `workers`, which do the same as it does; gives the stage for the
    /// pipeline, and the workers for their loops.
    ///
    /// # Errors
    /// Rings that cannot be had.
    pub fn new(
        own: S,
        workers: Vec<S>,
        shares_cpus: bool,
    ) -> Result<(Self, Vec<Worker>), RingError> {
        let jobs = jobs(workers.len());
        let (mut lanes, mut crew) = (Vec::new(), Vec::new());
        for stage in workers {
            let (to, work) = box_ring(DEPTH)?;
            // Room for all: a worker never waits.
            let (done, from) = box_ring(jobs)?;
            lanes.push(Lane {
                to,
                from,
                is_gone: false,
            });
            crew.push(Worker(Box::new(Working {
                stage,
                work,
                done,
                clock: TscClock::get(),
                times: LatencyHistogram::new(),
            })));
        }
        let spread = Self {
            own,
            lanes,
            next: 0,
            filling: Box::default(),
            spare: (1..jobs).map(|_| Box::default()).collect(),
            order: VecDeque::with_capacity(jobs),
            shares_cpus,
        };
        Ok((spread, crew))
    }

    /// Hands out what was gathered.
    fn hand_out(&mut self, out: &mut impl Sink<S::Out>) {
        let fresh = loop {
            match self.spare.pop() {
                Some(job) => break job,
                None => self.wait(out),
            }
        };
        let mut job = std::mem::replace(&mut self.filling, fresh);
        for turn in 0..self.lanes.len() {
            let place = (self.next + turn) % self.lanes.len();
            let lane = &mut self.lanes[place];
            if lane.is_gone {
                continue;
            }
            match lane.to.push(job) {
                Ok(()) => {
                    self.next = place + 1;
                    self.order.push_back(Place::With(place));
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
    fn collect(&mut self, out: &mut impl Sink<S::Out>) {
        while let Some(oldest) = self.order.front_mut() {
            let job = match oldest {
                Place::With(lane) => self.lanes[*lane].from.pop(),
                Place::Done(job) => job.take(),
            };
            let Some(mut job) = job else { return };
            self.order.pop_front();
            job.made.drain(..).for_each(|item| out.push(item));
            job.items.clear();
            self.spare.push(job);
        }
    }

    /// Waits until the oldest job is done.
    #[cold]
    fn wait(&mut self, out: &mut impl Sink<S::Out>) {
        let waiting = self.order.len();
        loop {
            let gone = match self.order.front() {
                Some(&Place::With(lane)) => self.lanes[lane].from.is_abandoned().then_some(lane),
                _ => None,
            };
            self.collect(out);
            if self.order.len() < waiting {
                return;
            }
            if let Some(lane) = gone {
                // What it was at is lost with it; the end of its loop says why.
                self.lanes[lane].is_gone = true;
                self.order.pop_front();
                self.spare.push(Box::default());
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

    fn process(&mut self, batch: &mut Batch<S::In>, out: &mut impl Sink<S::Out>) {
        for item in batch.drain() {
            // It fits: a full job is handed out at once.
            let _ = self.filling.items.push(item);
            if self.filling.items.is_full() {
                self.hand_out(out);
            }
        }
        self.collect(out);
    }

    /// What does not fill a job goes if there is somebody for it: else more may come meanwhile.
    fn tick(&mut self, _now: Moment, out: &mut impl Sink<S::Out>) {
        if !self.filling.items.is_empty() && self.lanes.iter().any(|lane| lane.to.free() > 0) {
            self.hand_out(out);
        }
        self.collect(out);
    }

    fn finish(&mut self, out: &mut impl Sink<S::Out>) {
        if !self.filling.items.is_empty() {
            self.hand_out(out);
        }
        while !self.order.is_empty() {
            self.wait(out);
        }
    }
}

/// What another loop does for a stage that is spread.
pub struct Worker(Box<dyn Work>);

impl Worker {
    /// Does one job, if there is one; whether there was.
    #[inline]
    pub fn poll(&mut self) -> bool {
        self.0.poll()
    }

    /// The time that each job took, in nanoseconds.
    #[must_use]
    pub fn times(&self) -> LatencyView {
        self.0.times()
    }
}

/// A worker whose types are hidden.
trait Work: Send {
    fn poll(&mut self) -> bool;
    fn times(&self) -> LatencyView;
}

struct Working<S: Stage>
where
    S::In: Send,
    S::Out: Send,
{
    stage: S,
    work: BoxConsumer<JobOf<S>>,
    done: BoxProducer<JobOf<S>>,
    clock: TscClock,
    times: LatencyHistogram,
}

impl<S> Work for Working<S>
where
    S: Stage + Send,
    S::In: Send,
    S::Out: Send,
{
    fn poll(&mut self) -> bool {
        let Some(mut job) = self.work.pop() else {
            return false;
        };
        let start = self.clock.now();
        self.stage.process(&mut job.items, &mut job.made);
        let cycles = self.clock.now().since(start);
        self.times.record(self.clock.to_ns(cycles).0);
        // It fits: the ring has room for all jobs that there are.
        drop(self.done.push(job));
        true
    }

    fn times(&self) -> LatencyView {
        self.times.view()
    }
}
