//! A worker of a stage with fan-out, and its counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_mempool::{BoxConsumer, BoxProducer};
use pollux_pmd::{Clock, Count, LatencyHistogram, LatencyView, TscClock};

use super::job::JobOf;
use crate::stage::Stage;

/// Counters of a worker. Written only by the loop that hands out the jobs.
#[derive(Debug, Default)]
pub struct WorkerCounts {
    /// Items that were given to the worker and left the stage without a result: the worker did not
    /// return them in time, or its loop ended.
    pub undecided: Count,
    /// Number of times that the loop stopped waiting for the worker.
    pub stalls: Count,
    /// Jobs that were given up and that the worker has not returned.
    pub(super) owed: Count,
    pub(super) gone: AtomicBool,
}

impl WorkerCounts {
    /// Whether the worker holds a job that was given up: it gets no other until it has returned it,
    /// and the loop does not wait for it.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.owed.get() > 0 && !self.is_gone()
    }

    /// Whether the loop of the worker has ended; the stage continues without it.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

/// A worker, to be polled by its loop. Dropping it ends its part of the work: the stage continues
/// without it. So drop it only when the loop ends.
pub struct Worker {
    pub(super) work: Box<dyn Work>,
    pub(super) counts: Arc<WorkerCounts>,
}

impl Worker {
    /// Processes one job, if there is one; returns whether there was.
    #[inline]
    pub fn poll(&mut self) -> bool {
        self.work.poll()
    }

    /// Processing times of the jobs, in nanoseconds.
    #[must_use]
    pub fn times(&self) -> LatencyView {
        self.work.times()
    }

    /// Counters of this worker.
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
        // The push succeeds: the ring has room for all jobs.
        drop(self.done.push(job));
        true
    }

    fn times(&self) -> LatencyView {
        self.times.view()
    }
}
