//! The event file: records that the trigger loop taps off, written outside of it.

use std::fs::File;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use pollux_pmd::Count;
use pollux_pmd::event::{EventConsumer, EventRecord};

use crate::report::RecordingReport;

/// Records taken from the queue at a time.
const BURST: usize = 256;

/// First 64 bytes of an event file (docs/formats/event-record.md): magic, version, record size.
fn header() -> [u8; 64] {
    let mut header = [0; 64];
    header[..8].copy_from_slice(b"PXEVENTS");
    header[8..12].copy_from_slice(&1u32.to_le_bytes());
    header[12..16].copy_from_slice(&(size_of::<EventRecord>() as u32).to_le_bytes());
    header
}

/// Bytes that are gathered for one write.
const BUFFER: usize = 1 << 20;

/// Writes event records to a file. A disk that fails ends the recording, never the trigger.
pub struct Recorder {
    queue: EventConsumer,
    /// Records that found the queue full.
    missed: Arc<Count>,
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// Records in the buffer.
    buffered: u64,
    report: RecordingReport,
    failed: Option<Error>,
}

impl Recorder {
    /// Creates the file; records will be taken from `queue`, and `missed` counts those that it
    /// had no room for.
    pub fn create(path: &Path, queue: EventConsumer, missed: Arc<Count>) -> Result<Self> {
        let file =
            File::create(path).with_context(|| format!("--events-out {}", path.display()))?;
        let mut buffer = Vec::with_capacity(BUFFER);
        buffer.extend(header());
        Ok(Self {
            queue,
            missed,
            path: path.to_owned(),
            file,
            buffer,
            buffered: 0,
            report: RecordingReport::default(),
            failed: None,
        })
    }

    /// Takes what is in the queue; whether there was anything.
    pub fn drain(&mut self) -> bool {
        let mut records = [EventRecord::default(); BURST];
        let mut any = false;
        loop {
            let n = self.queue.poll_burst(&mut records);
            if n == 0 {
                return any;
            }
            any = true;
            for record in &records[..n] {
                if self.buffer.len() + size_of::<EventRecord>() > BUFFER {
                    self.flush();
                }
                self.buffer.extend(record.to_bytes());
                self.buffered += 1;
            }
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(&self.buffer)
        {
            let path = self.path.display();
            tracing::error!("{path}: {error}: no more events are recorded, the run goes on");
            self.failed = Some(error);
        }
        match self.failed {
            None => self.report.written += self.buffered,
            Some(_) => self.report.lost += self.buffered,
        }
        self.buffered = 0;
        self.buffer.clear();
    }

    /// Completes the file; how many events are in it, and whether it is what was asked for.
    pub fn finish(mut self) -> (RecordingReport, Result<()>) {
        self.drain();
        self.flush();
        self.report.lost += self.missed.get();
        let path = self.path.display();
        let end = match self.failed {
            None => Ok(()),
            Some(error) => Err(anyhow!("--events-out {path} is incomplete: {error}")),
        };
        (self.report, end)
    }
}
