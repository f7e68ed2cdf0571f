//! Event file writer: writes records from a tap of the trigger loop, outside of it.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Error, Result, anyhow};
use pollux_app::Output;
use pollux_na62::l0::L0Record;
use pollux_output::Task;
use pollux_pmd::event::{EventConsumer, EventRecord};
use pollux_recording::record_header;

use crate::burst_number::BurstNumber;
use crate::file_counts::FileCounts;
use crate::file_writer::Writing;

/// Number of records taken from the queue at a time.
const BURST: usize = 256;

/// Number of bytes collected for one write.
const BUFFER: usize = 1 << 20;

/// Size of a record, and of the header.
const RECORD: usize = size_of::<EventRecord>();

/// Writes all bytes; the number that the file has accepted, which is less after an error.
fn write(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut accepted = 0;
    while accepted < bytes.len() {
        match file.write(&bytes[accepted..]) {
            Ok(0) => return (accepted, Err(ErrorKind::WriteZero.into())),
            Ok(n) => accepted += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (accepted, Err(error)),
        }
    }
    (accepted, Ok(()))
}

/// Writes event records to a file. A disk failure ends the recording, never the trigger.
struct Recorder {
    queue: EventConsumer,
    counts: Arc<FileCounts>,
    /// The file, or the pattern for files of bursts.
    output: Output,
    run: Option<u32>,
    /// With one file for each burst: the burst that the current file began with.
    burst: Option<BurstNumber>,
    file: File,
    /// Bytes of whole records, and of the header, in the file.
    in_file: u64,
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
        burst: output.is_by_burst().then_some(BurstNumber::FIRST),
        file,
        in_file: 0,
        buffer,
        buffered: 0,
        failed: None,
    };
    Writing::start(recorder, name, counts, loops)
}

impl Recorder {
    fn flush(&mut self) {
        let mut written = 0;
        if self.failed.is_none() {
            let (accepted, done) = write(&mut self.file, &self.buffer);
            // In front of the first records there is the header.
            let others = (self.buffer.len() / RECORD) as u64 - self.buffered;
            written = ((accepted / RECORD) as u64).saturating_sub(others);
            self.in_file += (accepted - accepted % RECORD) as u64;
            if let Err(error) = done {
                // Whole records stay, where the file can be shortened: a pipe or a device cannot.
                let _ = self.file.set_len(self.in_file);
                let number = self.burst.map_or(1, BurstNumber::in_name);
                let name = self.output.of_burst(number).name();
                self.fail(anyhow!("{name} is incomplete: {error}"));
            }
        }
        self.counts.written.add(written);
        self.counts.refused.add(self.buffered - written);
        self.buffered = 0;
        self.buffer.clear();
    }

    fn fail(&mut self, error: Error) {
        tracing::error!("{error:#}: no more events are recorded, the run continues");
        self.failed = Some(error);
    }

    /// Continues in the file of a burst.
    fn turn(&mut self, burst: BurstNumber) {
        self.flush();
        self.burst = Some(burst);
        if self.failed.is_some() {
            return;
        }
        let output = self.output.of_burst(burst.in_name());
        match output.create() {
            Ok(file) => {
                (self.file, self.in_file) = (file, 0);
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
            if let Some(present) = self.burst.filter(|present| present.turns_at(burst)) {
                self.turn(present.turned(burst));
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
