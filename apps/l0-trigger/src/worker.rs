//! The loop of a worker, which takes work off the trigger's loop.

use std::sync::Arc;

use pollux_pipelines::fan_out::{Worker, WorkerCounts};
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::{LatencyView, RxQueue};

use crate::clock::RunClock;

/// All that the loop owns.
pub struct WorkerLoop {
    pub worker: Worker,
    /// Its idle mode while there are no jobs.
    pub idle: Idle,
    pub clock: RunClock,
    pub jitter: JitterMeter<RunClock>,
    /// Set when the trigger's loop has ended.
    pub stop: StopFlag,
    /// It shares its CPU with other loops.
    pub gives_way: bool,
}

/// Counters of a worker's loop.
pub struct WorkerView {
    /// As in the list of cores.
    pub name: String,
    /// Time of each job.
    pub jobs: LatencyView,
    /// Time between two polls for a job, including its own work.
    pub gaps: LatencyView,
    /// State of the worker as seen by the trigger's loop.
    pub counts: Arc<WorkerCounts>,
}

impl WorkerView {
    /// Name of its state.
    pub fn state(&self) -> &'static str {
        if self.counts.is_gone() {
            "gone"
        } else if self.counts.is_stalled() {
            "stalled"
        } else {
            "running"
        }
    }
}

impl WorkerLoop {
    /// Views of its counters.
    pub fn view(&self, n: usize) -> WorkerView {
        WorkerView {
            name: name(n),
            jobs: self.worker.times(),
            gaps: self.jitter.gaps(),
            counts: self.worker.counts(),
        }
    }

    /// Works until the stop flag is set. Does nothing but work, unless it shares its CPU.
    pub fn run(&mut self) {
        let none = || std::iter::empty::<&mut RxQueue>();
        while !self.stop.is_set() {
            self.jitter.tick();
            if self.worker.poll() {
                self.idle.worked(none());
                continue;
            }
            if self.gives_way {
                std::thread::yield_now();
            }
            if self.idle.rest(&self.clock, none()) {
                self.jitter.skip();
            }
        }
    }
}

/// Name of worker `n`.
pub fn name(n: usize) -> String {
    format!("worker {n}")
}
