//! What another loop does for a stage that is spread, and what is seen of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_mempool::{BoxConsumer, BoxProducer};
use pollux_pmd::{Clock, Count, LatencyHistogram, LatencyView, TscClock};

use super::job::JobOf;
use crate::stage::Stage;

/// What the loop has seen of a worker. Written by the loop alone.
#[derive(Debug, Default)]
pub struct WorkerCounts {
    /// Items that were given to the worker and left the stage without a result: it did not bring
    /// them back in time, or it ended with them.
    pub undecided: Count,
    /// Times that the loop stopped waiting for the worker.
    pub stalls: Count,
    /// Jobs that were given up and are still with the worker.
    pub(super) owed: Count,
    pub(super) gone: AtomicBool,
}

impl WorkerCounts {
    /// The loop does not wait for the worker, and gives it nothing, until it brings back what it
    /// has.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.owed.get() > 0 && !self.is_gone()
    }

    /// The loop of the worker has ended, and the stage goes on without it.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

/// What another loop does for a stage that is spread. Drop it only when that loop ends: the stage
/// goes on without the worker then.
pub struct Worker {
    pub(super) work: Box<dyn Work>,
    pub(super) counts: Arc<WorkerCounts>,
}

impl Worker {
    /// Does one job, if there is one; whether there was.
    #[inline]
    pub fn poll(&mut self) -> bool {
        self.work.poll()
    }

    /// The time that each job took, in nanoseconds.
    #[must_use]
    pub fn times(&self) -> LatencyView {
        self.work.times()
    }

    /// What the loop that hands out the jobs has seen of this worker.
    #[must_use]
    pub fn counts(&self) -> Arc<WorkerCounts> {
        Arc::clone(&self.counts)
    }
}

/// A worker whose types are hidden.
pub(super) trait Work: Send {
    fn poll(&mut self) -> bool;
    fn times(&self) -> LatencyView;
}

pub(super) struct Working<S: Stage>
where
    S::In: Send,
    S::Out: Send,
{
    pub(super) stage: S,
    pub(super) work: BoxConsumer<JobOf<S>>,
    pub(super) done: BoxProducer<JobOf<S>>,
    pub(super) clock: TscClock,
    pub(super) times: LatencyHistogram,
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
