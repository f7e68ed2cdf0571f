//! Outputs of events (`--output`): their queues, and the threads that drive them.

use std::sync::Arc;

use anyhow::Result;
use pollux_output::{
    EventQueues, OutputCounts, OutputReport, PlannedOutput, QueuedEvents, RunContext,
    RunningOutput, event_queue,
};

/// Outputs before they are opened, which needs the counters of the run.
pub struct QueuedOutputs<'a>(Vec<QueuedOutput<'a>>);

struct QueuedOutput<'a> {
    planned: &'a PlannedOutput,
    queue: QueuedEvents,
    counts: Arc<OutputCounts>,
}

/// Counters of an output.
pub struct OutputView {
    /// Its spec.
    pub spec: String,
    pub counts: Arc<OutputCounts>,
}

impl<'a> QueuedOutputs<'a> {
    /// Adds the queue of each output to those of the loop.
    pub fn new(planned: &'a [PlannedOutput], queues: &mut EventQueues) -> Result<Self> {
        let outputs = planned.iter().map(|planned| {
            let counts = Arc::<OutputCounts>::default();
            let selection = planned.plan.selection();
            let (producer, queue) = event_queue(selection, Arc::clone(&counts.queue))?;
            queues.add(producer);
            Ok(QueuedOutput {
                planned,
                queue,
                counts,
            })
        });
        outputs.collect::<Result<_>>().map(Self)
    }

    pub fn views(&self) -> Vec<OutputView> {
        let view = |output: &QueuedOutput<'_>| OutputView {
            spec: output.planned.spec.clone(),
            counts: Arc::clone(&output.counts),
        };
        self.0.iter().map(view).collect()
    }

    /// Opens the outputs, and starts their threads on none of the CPUs in `loops`.
    pub fn start(self, run: &RunContext<'_>, loops: &[usize]) -> Result<RunningOutputs> {
        let start = |output: QueuedOutput<'_>| {
            let QueuedOutput {
                planned,
                queue,
                counts,
            } = output;
            let open = planned.plan.open(run, Arc::clone(&counts))?;
            Ok(RunningOutput::start(
                &planned.spec,
                open,
                queue,
                counts,
                loops,
            )?)
        };
        let running = self.0.into_iter().map(start);
        running.collect::<Result<_>>().map(RunningOutputs)
    }
}

/// Open outputs. They end soon if they are dropped.
pub struct RunningOutputs(Vec<RunningOutput>);

impl RunningOutputs {
    /// Says to all that no more events come.
    pub fn end(&mut self) {
        self.0.iter_mut().for_each(RunningOutput::end);
    }

    /// Waits for all, less than ten seconds after [`end`](Self::end).
    pub fn finish(self) -> Vec<OutputReport> {
        self.0.into_iter().map(RunningOutput::finish).collect()
    }
}
