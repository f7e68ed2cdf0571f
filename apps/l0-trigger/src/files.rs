//! Event files of a run, and the queues to their writers.

use std::sync::Arc;

use anyhow::Result;
use pollux_app::Output;
use pollux_output::{EventQueues, QueuedEvents, Selection, event_queue};
use pollux_pmd::event::EventConsumer;

use crate::cli::Cli;
use crate::counters::Counters;
use crate::event_file;
use crate::file_counts::{FileCounts, FilesCounts};
use crate::file_writer::{PATIENCE, Writing};
use crate::hdf5_file::Hdf5File;
use crate::outputs::Outputs;
use crate::plan::Plan;
use crate::record_queue::Writer;
use crate::report::RecordingReport;
use crate::tap::{self, Tap};

/// Files before their writers start, which need the counters.
pub struct Files<'a> {
    outputs: &'a Outputs,
    recording: Option<File<'a, EventConsumer>>,
    record: Option<File<'a, QueuedEvents>>,
}

struct File<'a, Queue> {
    output: &'a Output,
    queue: Queue,
    counts: Arc<FileCounts>,
}

impl<'a> Files<'a> {
    /// The files of the run; adds the producers in the trigger loop.
    pub fn new(
        outputs: &'a Outputs,
        taps: &mut Vec<Tap>,
        queues: &mut EventQueues,
    ) -> Result<Self> {
        let recording = match &outputs.recording {
            None => None,
            Some(output) => {
                let (queue, counts) = tap::add(taps, outputs.run.is_some())?;
                Some(File {
                    output,
                    queue,
                    counts,
                })
            }
        };
        let mut files = Self {
            outputs,
            recording,
            record: None,
        };
        let Some(output) = &outputs.record else {
            return Ok(files);
        };
        let counts = Arc::<FileCounts>::default();
        let (producer, queue) = event_queue(Selection::Kept, Arc::clone(&counts.queue))?;
        queues.add(producer);
        files.record = Some(File {
            output,
            queue,
            counts,
        });
        Ok(files)
    }

    pub fn counts(&self) -> FilesCounts {
        let recording = self.recording.as_ref();
        let record = self.record.as_ref();
        FilesCounts {
            recording: recording.map(|file| Arc::clone(&file.counts)),
            record: record.map(|file| Arc::clone(&file.counts)),
        }
    }

    /// Creates the files, and starts to write.
    pub fn start(self, cli: &Cli, plan: &Plan, counters: &Arc<Counters>) -> Result<Written> {
        let loops = plan.cpus();
        let run = self.outputs.run;
        let recording = self
            .recording
            .map(|file| event_file::start(file.output, run, file.queue, file.counts, &loops));
        let record = self.record.map(|file| {
            let configuration = cli.source().text()?;
            let store = Hdf5File::create(self.outputs, file.output, configuration, counters)?;
            let writer = Writer::new(file.queue, Arc::clone(&file.counts), store);
            Writing::start(writer, file.output.name(), file.counts, &loops)
        });
        Ok(Written {
            recording: recording.transpose()?,
            record: record.transpose()?,
        })
    }
}

/// Open files.
pub struct Written {
    recording: Option<Writing>,
    record: Option<Writing>,
}

/// The result at the end.
#[derive(Default)]
pub struct Reports {
    pub recording: RecordingReport,
    pub record: Option<RecordingReport>,
}

impl Written {
    /// Completes the files after the loops have ended, as far as the disk permits.
    pub fn finish(self) -> (Reports, Result<()>) {
        let finish = |writing: Writing| writing.finish(PATIENCE);
        let (recording, records) = self.recording.map(finish).unzip();
        let (record, events) = self.record.map(finish).unzip();
        let reports = Reports {
            recording: recording.unwrap_or_default(),
            record,
        };
        (
            reports,
            records.unwrap_or(Ok(())).and(events.unwrap_or(Ok(()))),
        )
    }
}
