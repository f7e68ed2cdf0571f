//! The loop of a worker, which takes work off the trigger's.

use std::sync::Arc;

use pollux_pipelines::spread::{Worker, WorkerCounts};
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::{LatencyView, RxQueue};

use crate::clock::RunClock;

/// All that the loop owns.
pub struct WorkerLoop {
    pub worker: Worker,
    /// What it does while there are no jobs.
    pub idle: Idle,
    pub clock: RunClock,
    pub jitter: JitterMeter<RunClock>,
    /// Set when the trigger's loop has ended.
    pub stop: StopFlag,
    /// It shares its CPU with other loops.
    pub gives_way: bool,
}

/// What a worker's loop counts.
pub struct WorkerView {
    /// As in the list of cores.
    pub name: String,
    /// The time that each job took.
    pub jobs: LatencyView,
    /// For how long at a time it was kept from looking for a job, its own work included.
    pub gaps: LatencyView,
    /// What the trigger's loop has seen of it.
    pub counts: Arc<WorkerCounts>,
}

impl WorkerView {
    /// How it is, in a word.
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
    /// Views on its counters.
    pub fn view(&self, n: usize) -> WorkerView {
        WorkerView {
            name: name(n),
            jobs: self.worker.times(),
            gaps: self.jitter.gaps(),
            counts: self.worker.counts(),
        }
    }

    /// Works until it is told to end. Nothing but work, unless it shares its CPU.
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

/// What worker `n` is called.
pub fn name(n: usize) -> String {
    format!("worker {n}")
}
