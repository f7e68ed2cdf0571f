//! The event file: records that the trigger loop taps off, written outside of it.

use std::fs::File;
use std::io::{Error, Write};
use std::sync::Arc;

use anyhow::{Result, anyhow};
use pollux_pmd::event::{EventConsumer, EventRecord};
use pollux_program::Output;

use crate::scribe::{self, FileCounts, Scribe, Writing};

/// Records taken from the queue at a time.
const BURST: usize = 256;

/// First 64 bytes of an event file (docs/formats/event-record.md): magic, version, record size; in
/// version 2, of a run with a number, that too.
fn header(run: Option<u32>) -> [u8; 64] {
    let version = 1 + u32::from(run.is_some());
    let mut header = [0; 64];
    header[..8].copy_from_slice(b"PXEVENTS");
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&(size_of::<EventRecord>() as u32).to_le_bytes());
    header[16..20].copy_from_slice(&run.unwrap_or(0).to_le_bytes());
    header
}

/// Bytes that are gathered for one write.
const BUFFER: usize = 1 << 20;

/// Writes event records to a file. A disk that fails ends the recording, never the trigger.
struct Recorder {
    queue: EventConsumer,
    counts: Arc<FileCounts>,
    /// The option and the path.
    name: String,
    file: File,
    buffer: Vec<u8>,
    /// Records in the buffer.
    buffered: u64,
    failed: Option<Error>,
}

/// Creates the file, and starts to write what comes by `queue` to it, on none of the CPUs in
/// `loops`.
pub fn start(
    output: &Output,
    run: Option<u32>,
    queue: EventConsumer,
    counts: Arc<FileCounts>,
    loops: &[usize],
) -> Result<Writing> {
    let (name, file) = (output.name(), output.create()?);
    let mut buffer = Vec::with_capacity(BUFFER);
    buffer.extend(header(run));
    let recorder = Recorder {
        queue,
        counts: Arc::clone(&counts),
        name: name.clone(),
        file,
        buffer,
        buffered: 0,
        failed: None,
    };
    scribe::start(recorder, name, counts, loops)
}

impl Recorder {
    fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(&self.buffer)
        {
            let name = &self.name;
            tracing::error!("{name}: {error}: no more events are recorded, the run goes on");
            self.failed = Some(error);
        }
        match self.failed {
            None => self.counts.written.add(self.buffered),
            Some(_) => self.counts.refused.add(self.buffered),
        }
        self.buffered = 0;
        self.buffer.clear();
    }
}

impl Scribe for Recorder {
    fn work(&mut self) -> bool {
        let mut records = [EventRecord::default(); BURST];
        let n = self.queue.poll_burst(&mut records);
        for record in &records[..n] {
            if self.buffer.len() + size_of::<EventRecord>() > BUFFER {
                self.flush();
            }
            self.buffer.extend(record.to_bytes());
            self.buffered += 1;
        }
        n > 0
    }

    fn finish(mut self) -> Result<()> {
        self.flush();
        match self.failed {
            None => Ok(()),
            Some(error) => Err(anyhow!("{} is incomplete: {error}", self.name)),
        }
    }
}
