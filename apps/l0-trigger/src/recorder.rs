//! The event file: records that the trigger loop taps off, written outside of it.

use std::fs::File;
use std::io::{BufWriter, Error, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use pollux_pmd::event::{EventConsumer, EventRecord};

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

/// Writes event records to a file. A disk that fails ends the recording, never the trigger.
pub struct Recorder {
    queue: EventConsumer,
    path: PathBuf,
    out: BufWriter<File>,
    written: u64,
    failed: Option<Error>,
}

impl Recorder {
    /// Creates the file; records will be taken from `queue`.
    pub fn create(path: &Path, queue: EventConsumer) -> Result<Self> {
        let create = || {
            let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
            out.write_all(&header())?;
            out.flush()?;
            Ok::<_, Error>(out)
        };
        let out = create().with_context(|| format!("--events-out {}", path.display()))?;
        Ok(Self {
            queue,
            path: path.to_owned(),
            out,
            written: 0,
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
            records[..n].iter().for_each(|record| self.write(record));
        }
    }

    fn write(&mut self, record: &EventRecord) {
        if self.failed.is_some() {
            return;
        }
        match self.out.write_all(&record.to_bytes()) {
            Ok(()) => self.written += 1,
            Err(error) => {
                let path = self.path.display();
                tracing::error!("{path}: {error}: no more events are recorded, the run goes on");
                self.failed = Some(error);
            }
        }
    }

    /// Completes the file; how many events are in it.
    pub fn finish(mut self) -> Result<u64> {
        self.drain();
        let end = self.failed.take().map_or_else(|| self.out.flush(), Err);
        // What could not be written stays in the buffer; it must not be tried again on drop.
        let (_file, _unwritten) = self.out.into_parts();
        let path = self.path.display();
        end.map_err(|error| anyhow!("--events-out {path} is incomplete: {error}"))?;
        Ok(self.written)
    }
}
