//! The files that events go to, and their ways there.

use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result};
use pollux_pmd::event::EventConsumer;
use pollux_program::Output;

use crate::cli::Cli;
use crate::counters::Counters;
use crate::h5::H5;
use crate::keeper::{self, Keeper, Kept, Writer};
use crate::outlet::Tap;
use crate::outputs::Outputs;
use crate::plan::Plan;
use crate::recorder;
use crate::report::RecordingReport;
use crate::scribe::{self, FileCounts, PATIENCE, Writing};
use crate::setup;

/// What becomes of the events that are to be in files.
#[derive(Default)]
pub struct Counts {
    /// Of `--events-out`.
    pub recording: Option<Arc<FileCounts>>,
    /// Of `--record`.
    pub record: Option<Arc<FileCounts>>,
}

/// Files to be written, before the counters are there that will be in them.
pub struct Files<'a> {
    outputs: &'a Outputs,
    recording: Option<File<'a, EventConsumer>>,
    record: Option<File<'a, Kept>>,
}

struct File<'a, Queue> {
    output: &'a Output,
    queue: Queue,
    counts: Arc<FileCounts>,
}

impl<'a> Files<'a> {
    /// The files of the run, and the ends in the trigger loop.
    pub fn new(outputs: &'a Outputs, taps: &mut Vec<Tap>) -> Result<(Self, Option<Keeper>)> {
        let recording = match &outputs.recording {
            None => None,
            Some(output) => {
                let (queue, counts) = setup::tap(taps, outputs.run.is_some())?;
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
            return Ok((files, None));
        };
        let counts = Arc::<FileCounts>::default();
        let (keeper, queue) = keeper::queue(Arc::clone(&counts))?;
        files.record = Some(File {
            output,
            queue,
            counts,
        });
        Ok((files, Some(keeper)))
    }

    pub fn counts(&self) -> Counts {
        let recording = self.recording.as_ref();
        let record = self.record.as_ref();
        Counts {
            recording: recording.map(|file| Arc::clone(&file.counts)),
            record: record.map(|file| Arc::clone(&file.counts)),
        }
    }

    /// Creates them, and starts to write.
    pub fn start(self, cli: &Cli, plan: &Plan, counters: &Arc<Counters>) -> Result<Written> {
        let loops = plan.cpus();
        let run = self.outputs.run;
        let recording = self
            .recording
            .map(|file| recorder::start(file.output, run, file.queue, file.counts, &loops));
        let record = self.record.map(|file| {
            // As it is written; nothing, where it is the built-in one.
            let configuration = cli.config.as_ref().map(fs::read_to_string);
            let configuration = configuration.transpose().context("--config")?;
            let configuration = configuration.unwrap_or_default();
            let store = H5::create(self.outputs, file.output, configuration, counters)?;
            let writer = Writer::new(file.queue, Arc::clone(&file.counts), store);
            scribe::start(writer, file.output.name(), file.counts, &loops)
        });
        Ok(Written {
            recording: recording.transpose()?,
            record: record.transpose()?,
        })
    }
}

/// Files that are being written.
pub struct Written {
    recording: Option<Writing>,
    record: Option<Writing>,
}

/// What there is at the end.
#[derive(Default)]
pub struct Reports {
    pub recording: RecordingReport,
    pub record: Option<RecordingReport>,
}

impl Written {
    /// Completes them, once the loops have ended, as far as the disk lets.
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
