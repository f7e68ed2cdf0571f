//! Workers: the event of each stack of images goes to a loop on a core of its own.
//!
//! A worker has two events: one is processed while the other waits. The pool is an [`AsyncStage`]: the
//! loop that receives submits an event and goes on, so one stack is received while others are
//! processed, and results leave in the order of the images. A stage that runs on another processor can
//! take its place.

use std::ops::RangeInclusive;
use std::sync::Arc;

use pollux_images::receive::Stored;
use pollux_images::stages::{Stack, Work};
use pollux_mempool::ring::RingError;
use pollux_mempool::time::Ns;
use pollux_mempool::{BoxConsumer, BoxProducer, box_ring};
use pollux_pipelines::in_flight::{AsyncStage, Busy, Ticket};
use pollux_pipelines::{Batch, Pipeline};
use pollux_pmd::Count;
use pollux_pmd::lcore::StopFlag;

/// Events of a worker: one in progress and one that waits.
const STACKS: usize = 2;

/// The rings to a worker and back, and the free events.
struct Lane<P: Stored> {
    to: BoxProducer<Stack<P>>,
    from: BoxConsumer<Stack<P>>,
    #[expect(
        clippy::vec_box,
        reason = "the rings take and return boxes, which are never made anew"
    )]
    free: Vec<Box<Stack<P>>>,
}

/// Hands stacks to workers in turn.
pub struct WorkerPool<P: Stored> {
    lanes: Vec<Lane<P>>,
    next: usize,
    stack: usize,
    wait: Ns,
}

/// How an event is filled.
#[derive(Clone, Copy)]
pub struct Stacking {
    /// Images of an event.
    pub images: usize,
    /// For how long the first waits for the others; the rest of a run is an event too.
    pub wait: Ns,
}

/// The stages of one worker.
pub type Chain<P> = Pipeline<Work<P>, Work<P>>;

/// A worker before its launch.
pub struct Worker<P: Stored> {
    from: BoxConsumer<Stack<P>>,
    to: BoxProducer<Stack<P>>,
    chain: Chain<P>,
    batch: Batch<Work<P>>,
    images: Arc<Count>,
    stop: StopFlag,
    gives_way: bool,
}

/// A pool of workers that each have a chain, and the workers.
pub fn pool<P: Stored>(
    chains: Vec<Chain<P>>,
    stacking: Stacking,
    stop: &StopFlag,
    gives_way: bool,
) -> Result<(WorkerPool<P>, Vec<Worker<P>>), RingError> {
    let (mut lanes, mut workers) = (Vec::new(), Vec::new());
    let Stacking {
        images: stack,
        wait,
    } = stacking;
    for chain in chains {
        let (to, from) = box_ring(STACKS)?;
        let (back, returned) = box_ring(STACKS)?;
        let event = || Box::new(Stack::with_capacity(stack));
        lanes.push(Lane {
            to,
            from: returned,
            free: (0..STACKS).map(|_| event()).collect(),
        });
        workers.push(Worker {
            from,
            to: back,
            chain,
            batch: Batch::with_capacity(stack),
            images: Arc::default(),
            stop: stop.clone(),
            gives_way,
        });
    }
    let pool = WorkerPool {
        lanes,
        next: 0,
        stack,
        wait,
    };
    Ok((pool, workers))
}

impl<P: Stored> AsyncStage for WorkerPool<P> {
    type In = Work<P>;
    type Out = Work<P>;

    fn batch(&self) -> RangeInclusive<usize> {
        self.stack..=self.stack
    }

    fn batch_wait(&self) -> Ns {
        self.wait
    }

    fn submit(&mut self, ticket: Ticket, images: &mut Batch<Work<P>>) -> Result<(), Busy> {
        let lanes = self.lanes.len();
        for turn in 0..lanes {
            let lane = &mut self.lanes[(self.next + turn) % lanes];
            let Some(mut stack) = lane.free.pop() else {
                continue;
            };
            stack.fill(ticket.0, images.drain());
            // The ring has a place for each event of the lane.
            let _ = lane.to.push(stack);
            self.next = (self.next + turn + 1) % lanes;
            return Ok(());
        }
        Err(Busy)
    }

    fn poll(&mut self, made: &mut Vec<Work<P>>) -> Option<Ticket> {
        for lane in &mut self.lanes {
            if let Some(mut stack) = lane.from.pop() {
                made.append(&mut stack.images);
                let ticket = Ticket(stack.facts().number);
                lane.free.push(stack);
                return Some(ticket);
            }
        }
        None
    }
}

impl<P: Stored> Worker<P> {
    /// Images that it has processed.
    pub fn images(&self) -> Arc<Count> {
        Arc::clone(&self.images)
    }

    /// Processes stacks until it has to end and none waits.
    pub fn run(mut self) {
        loop {
            // Before the ring: a stack that was submitted before the end is still processed.
            let stopped = self.stop.is_set();
            if self.process_next() {
                continue;
            }
            if stopped || self.from.is_abandoned() {
                return;
            }
            if self.gives_way {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    /// Processes the next stack; false if none waits.
    pub fn process_next(&mut self) -> bool {
        let Some(mut stack) = self.from.pop() else {
            return false;
        };
        self.images.add(stack.images.len() as u64);
        for work in stack.images.drain(..) {
            // The batch holds a stack.
            let _ = self.batch.push(work);
        }
        self.chain.process(&mut self.batch, &mut stack.images);
        self.batch.clear();
        let _ = self.to.push(stack);
        true
    }
}
