//! Worker pool: starts, watches and ends the workers' threads.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use pollux_pmd::lcore::{self, Lcore, StopFlag};

use crate::plan::Plan;
use crate::worker::{self, WorkerLoop, WorkerView};

/// Minimum interval between warnings about one worker.
const REPEAT: Duration = Duration::from_secs(1);

/// Maximum time to wait for a worker that was requested to end: its longest job takes some
/// milliseconds.
const END: Duration = Duration::from_secs(5);

/// The last warning about a worker.
#[derive(Clone, Default)]
struct LastWarning {
    ended: bool,
    undecided: u64,
    stalled: bool,
    at: Option<Instant>,
}

/// The workers. They end when this is dropped; jobs in progress are abandoned.
pub struct WorkerPool {
    loops: Vec<Lcore<()>>,
    last_warnings: Vec<LastWarning>,
    stop: Option<StopFlag>,
}

impl WorkerPool {
    pub fn launch(workers: Vec<WorkerLoop>, plan: &Plan) -> Result<Self> {
        let mut worker_pool = Self {
            loops: Vec::new(),
            last_warnings: vec![LastWarning::default(); workers.len()],
            stop: workers.first().map(|worker| worker.stop.clone()),
        };
        for (n, (mut worker, &cpu)) in workers.into_iter().zip(&plan.worker_cpus).enumerate() {
            let name = worker::name(n);
            worker_pool
                .loops
                .push(lcore::launch(&name, cpu, move || worker.run())?);
        }
        Ok(worker_pool)
    }

    /// Warns of workers that have ended, or that do not return events; for the iterations of
    /// housekeeping while the trigger's loop runs.
    pub fn watch(&mut self, views: &[WorkerView]) {
        for ((thread, last), view) in self.loops.iter().zip(&mut self.last_warnings).zip(views) {
            if let Some(warning) = last.news(view, thread.is_finished()) {
                tracing::warn!("{warning}");
            }
        }
    }

    /// Requests the workers to end, and waits until they have.
    ///
    /// # Errors
    /// A worker that panicked, or that does not end; it is abandoned, and ends with the process.
    pub fn join(mut self) -> Result<()> {
        self.end();
        let requested = Instant::now();
        let mut result = Ok(());
        for (n, thread) in self.loops.drain(..).enumerate() {
            while !thread.is_finished() && requested.elapsed() < pollux_app::patience(END) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let ended = if thread.is_finished() {
                thread.join().map_err(Into::into)
            } else {
                stuck(n)
            };
            result = result.and(ended);
        }
        result
    }

    fn end(&self) {
        self.stop.iter().for_each(StopFlag::stop);
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.end();
    }
}

fn stuck(n: usize) -> Result<()> {
    let name = worker::name(n);
    bail!(
        "{name} did not end within {} s of the request (or less, by a second signal), so it is \
         stuck in a job: see `workers` in the report for the events that it kept",
        END.as_secs()
    )
}

impl LastWarning {
    /// The warning about a worker, if it is new.
    fn news(&mut self, view: &WorkerView, ended: bool) -> Option<String> {
        let name = &view.name;
        let undecided = view.counts.undecided.get();
        let stalled = view.counts.is_stalled();
        if ended && !self.ended {
            self.ended = true;
            return Some(format!(
                "{name} has ended before the run: the others continue without it; events that it \
                 had are released undecided ({undecided} so far), and the exit status will say so"
            ));
        }
        let lost = undecided > self.undecided;
        let repeated = self.at.is_some_and(|at| at.elapsed() < REPEAT);
        if !(lost || stalled && !self.stalled) || repeated {
            // It may recover, and stall again.
            self.stalled &= stalled;
            return None;
        }
        let stalls = view.counts.stalls.get();
        (self.undecided, self.stalled, self.at) = (undecided, stalled, Some(Instant::now()));
        let now = if stalled {
            "it has not come back since, and gets no more work until it does"
        } else if view.counts.is_gone() {
            "it has ended"
        } else {
            "it has come back"
        };
        Some(format!(
            "{name} did not return events in time: {undecided} events released undecided so far, \
             in {stalls} stalls; {now}. Look for other tasks on its CPU, and at `core_gap_seconds` \
             of the metrics"
        ))
    }
}

#[cfg(test)]
mod tests;
