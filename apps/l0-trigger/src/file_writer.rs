//! Threads that write files: a slow disk blocks its thread, never the run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use pollux_output::{Task, TaskThread};

use crate::file_counts::FileCounts;
use crate::report::RecordingReport;

/// Maximum time that the end of a run waits for a disk that makes no progress.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A file that a thread writes.
pub struct Writing {
    /// The option that names the file, and its path.
    file: String,
    thread: TaskThread<Result<()>>,
    counts: Arc<FileCounts>,
}

impl Writing {
    /// Starts to write `file`, on none of the CPUs in `loops`.
    pub fn start<W: Task<End = Result<()>>>(
        writer: W,
        file: String,
        counts: Arc<FileCounts>,
        loops: &[usize],
    ) -> Result<Self> {
        let thread = TaskThread::start(writer, "recording", loops);
        Ok(Self {
            file,
            thread: thread.context("cannot start the thread that records")?,
            counts,
        })
    }

    /// Writes the remaining data after the loops have ended, and completes the file. A disk without
    /// progress for `patience`, or for less after a second signal, is abandoned with its thread,
    /// which may be in a system call that does not return.
    pub fn finish(self, patience: Duration) -> (RecordingReport, Result<()>) {
        self.thread.end(None);
        let Self {
            file,
            thread,
            counts,
        } = self;
        let written = || counts.written.get();
        let mut progress = (written(), Instant::now());
        let mut waited = patience;
        let end = thread.wait(|| {
            if written() != progress.0 {
                progress = (written(), Instant::now());
            }
            waited = pollux_app::patience(patience);
            progress.1.elapsed() < waited
        });
        let end = match end {
            None => {
                let seconds = waited.as_secs_f64();
                Err(anyhow!(
                    "{file} is incomplete: the disk has taken nothing for {seconds} s, and is not waited for"
                ))
            }
            Some(Err(_)) => Err(anyhow!("{file}: the thread that records has panicked")),
            Some(Ok(end)) => end,
        };
        (counts.at_end(), end)
    }
}
