//! Outputs of events (`--output`): their queues, and the threads that drive them.

use std::sync::Arc;

use anyhow::Result;
use pollux_output::{
    EventOutput, EventQueues, OutputCounts, OutputReport, PlannedOutput, QueuedEvents, RunContext,
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

    /// Opens the outputs.
    pub fn open(self, run: &RunContext<'_>) -> Result<OpenOutputs> {
        let open = |output: QueuedOutput<'_>| {
            let QueuedOutput {
                planned,
                queue,
                counts,
            } = output;
            Ok(OpenOutput {
                spec: planned.spec.clone(),
                output: planned.plan.open(run, Arc::clone(&counts))?,
                queue,
                counts,
            })
        };
        self.0
            .into_iter()
            .map(open)
            .collect::<Result<_>>()
            .map(OpenOutputs)
    }
}

/// Open outputs that have sent nothing of events yet: the run can still fail to begin.
pub struct OpenOutputs(Vec<OpenOutput>);

struct OpenOutput {
    spec: String,
    output: Box<dyn EventOutput>,
    queue: QueuedEvents,
    counts: Arc<OutputCounts>,
}

impl OpenOutputs {
    /// Starts their threads on none of the CPUs in `loops`.
    pub fn start(self, loops: &[usize]) -> Result<RunningOutputs> {
        let start = |output: OpenOutput| {
            let OpenOutput {
                spec,
                output,
                queue,
                counts,
            } = output;
            Ok(RunningOutput::start(&spec, output, queue, counts, loops)?)
        };
        let running = self.0.into_iter().map(start);
        running.collect::<Result<_>>().map(RunningOutputs)
    }
}

/// Outputs that pass events on. They end soon if they are dropped.
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
