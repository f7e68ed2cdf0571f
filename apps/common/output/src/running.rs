//! An output that runs, from its start to its report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::counts::{OutputCounts, OutputReport};
use crate::error::OutputError;
use crate::output::EventOutput;
use crate::queue::QueuedEvents;
use crate::thread::{Task, TaskThread};

/// Times of the end.
#[derive(Clone, Copy)]
struct Times {
    /// Time of an output after the last event.
    deadline: Duration,
    /// How much longer it is waited for.
    grace: Duration,
}

/// Together less than the ten seconds in which a run ends.
const TIMES: Times = Times {
    deadline: Duration::from_secs(8),
    grace: Duration::from_secs(1),
};

/// Maximum number of events between two calls of [`EventOutput::work`].
const BURST: usize = 64;

/// Passes events from the queue to the output.
struct Driver {
    output: Box<dyn EventOutput>,
    queue: QueuedEvents,
    counts: Arc<OutputCounts>,
}

impl Task for Driver {
    type End = ();

    fn work(&mut self) -> bool {
        let Self { output, queue, .. } = self;
        let mut taken = 0;
        while taken < BURST && output.has_room() {
            let Some(queued) = queue.pop() else { break };
            if let Some(event) = queued.event() {
                output.push(event);
            }
            taken += 1;
        }
        // An output without room has work, even if it can do nothing now: it must not sleep for
        // long, and the end waits for it.
        let worked = output.work();
        if taken == 0 && !worked && !queue.is_empty() {
            std::thread::sleep(Duration::from_micros(100));
            return true;
        }
        taken > 0 || worked
    }

    fn finish(mut self, deadline: Option<Instant>) {
        while self.queue.pop().is_some() {
            self.counts.unsent.add(1);
        }
        self.output.finish(deadline.unwrap_or_else(Instant::now));
    }
}

/// The thread of an output.
pub struct RunningOutput {
    spec: String,
    counts: Arc<OutputCounts>,
    thread: TaskThread<()>,
    times: Times,
    /// Set by [`end`](Self::end).
    ended: Option<Instant>,
}

impl RunningOutput {
    /// Starts to pass the events of `queue` to an output, on none of the CPUs in `loops`.
    ///
    /// # Errors
    /// The system starts no thread.
    pub fn start(
        spec: &str,
        output: Box<dyn EventOutput>,
        queue: QueuedEvents,
        counts: Arc<OutputCounts>,
        loops: &[usize],
    ) -> Result<Self, OutputError> {
        let driver = Driver {
            output,
            queue,
            counts: Arc::clone(&counts),
        };
        let thread = TaskThread::start(driver, "output", loops);
        Ok(Self {
            spec: spec.into(),
            counts,
            thread: thread.map_err(|error| OutputError::Open {
                spec: spec.into(),
                what: format!("no thread can be started: {error}"),
            })?,
            times: TIMES,
            ended: None,
        })
    }

    /// Says that no more events come: call it for all outputs before the first
    /// [`finish`](Self::finish), so that they end at the same time.
    pub fn end(&mut self) {
        let now = Instant::now();
        self.thread.end(Some(now + self.times.deadline));
        self.ended.get_or_insert(now);
    }

    /// The outcome of all events. Waits until the output has ended, for less than ten seconds after
    /// [`end`](Self::end), or for less after a second signal; an output that takes longer is
    /// abandoned with its thread, and what it has not counted is `unsent`.
    #[must_use]
    pub fn finish(mut self) -> OutputReport {
        self.end();
        let ended = self.ended.unwrap_or_else(Instant::now);
        let most = self.times.deadline + self.times.grace;
        let patient = || ended.elapsed() < pollux_app::patience(most);
        let end = self.thread.wait(patient);
        let mut report = self.counts.report(&self.spec);
        let spec = &self.spec;
        if !matches!(end, Some(Ok(()))) {
            let why = match end {
                None => "does not end, and is not waited for",
                Some(_) => "has panicked",
            };
            report.lost.unsent = 0;
            let known = report.delivered + report.lost.all();
            report.lost.unsent = report.handed.saturating_sub(known);
            report.balanced = true;
            tracing::error!("--output {spec} {why}: the events without an outcome are unsent");
        }
        let lost = report.handed.saturating_sub(report.delivered);
        if lost > 0 {
            let handed = report.handed;
            tracing::warn!("--output {spec}: {lost} of {handed} events were not delivered");
        }
        report
    }
}

#[cfg(test)]
mod tests;
