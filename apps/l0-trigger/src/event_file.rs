//! Event file writer: writes records from a tap of the trigger loop, outside of it.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Error, Result, anyhow};
use pollux_app::Output;
use pollux_na62::l0::L0Record;
use pollux_output::Task;
use pollux_pmd::event::{EventConsumer, EventRecord};
use pollux_recording::record_header;

use crate::file_counts::FileCounts;
use crate::file_writer::Writing;

/// Number of records taken from the queue at a time.
const BURST: usize = 256;

/// Number of bytes collected for one write.
const BUFFER: usize = 1 << 20;

/// Writes event records to a file. A disk failure ends the recording, never the trigger.
struct Recorder {
    queue: EventConsumer,
    counts: Arc<FileCounts>,
    /// The file, or the pattern for files of bursts.
    output: Output,
    run: Option<u32>,
    /// With one file for each burst: the burst that the current file began with.
    burst: Option<u16>,
    file: File,
    buffer: Vec<u8>,
    /// Number of records in the buffer.
    buffered: u64,
    failed: Option<Error>,
}

/// Creates the file, and starts to write the records of `queue` to it, on none of the CPUs in
/// `loops`.
pub fn start(
    output: &Output,
    run: Option<u32>,
    queue: EventConsumer,
    counts: Arc<FileCounts>,
    loops: &[usize],
) -> Result<Writing> {
    let name = output.name();
    output.clear(false)?;
    let first = output.of_burst(1);
    let file = first.create()?;
    counts.begun(first.path(), usize::MAX);
    let mut buffer = Vec::with_capacity(BUFFER);
    buffer.extend(record_header(run));
    let recorder = Recorder {
        queue,
        counts: Arc::clone(&counts),
        output: output.clone(),
        run,
        burst: output.is_by_burst().then_some(1),
        file,
        buffer,
        buffered: 0,
        failed: None,
    };
    Writing::start(recorder, name, counts, loops)
}

impl Recorder {
    fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(&self.buffer)
        {
            let name = self.output.of_burst(self.burst.unwrap_or(1)).name();
            self.fail(anyhow!("{name} is incomplete: {error}"));
        }
        match self.failed {
            None => self.counts.written.add(self.buffered),
            Some(_) => self.counts.refused.add(self.buffered),
        }
        self.buffered = 0;
        self.buffer.clear();
    }

    fn fail(&mut self, error: Error) {
        tracing::error!("{error:#}: no more events are recorded, the run continues");
        self.failed = Some(error);
    }

    /// Continues in the file of a burst.
    fn turn(&mut self, burst: u16) {
        self.flush();
        self.burst = Some(burst);
        if self.failed.is_some() {
            return;
        }
        let output = self.output.of_burst(burst);
        match output.create() {
            Ok(file) => {
                self.file = file;
                self.counts.begun(output.path(), usize::MAX);
                self.buffer.extend(record_header(self.run));
            }
            Err(error) => self.fail(error),
        }
    }
}

impl Task for Recorder {
    type End = Result<()>;

    fn work(&mut self) -> bool {
        let mut records = [EventRecord::default(); BURST];
        let n = self.queue.poll_burst(&mut records);
        for record in &records[..n] {
            let burst = L0Record::burst_of(record);
            // Where boards disagree, events of the previous burst may arrive in between: they stay
            // in this file.
            if self
                .burst
                .is_some_and(|present| L0Record::is_later_burst(burst, present))
            {
                self.turn(burst);
            }
            if self.buffer.len() + size_of::<EventRecord>() > BUFFER {
                self.flush();
            }
            self.buffer.extend(record.to_bytes());
            self.buffered += 1;
        }
        n > 0
    }

    fn finish(mut self, _: Option<Instant>) -> Result<()> {
        self.flush();
        match self.failed {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}
