//! Threads that write what the loops hand over: a disk holds up its thread, never the run.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use pollux_pmd::{Count, lcore};

use crate::report::RecordingReport;

/// How long the end of a run waits for a disk that takes nothing.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How long a thread sleeps when there is nothing to write.
const NAP: Duration = Duration::from_millis(1);

/// What became of the events that are to be in a file.
#[derive(Debug, Default)]
pub struct FileCounts {
    /// Events that the loop has handed over.
    pub handed: Count,
    /// Events that it found no room for, as the disk was too slow.
    pub missed: Count,
    /// Events that are in the file.
    pub written: Count,
    /// Events that were handed over, and that the disk has refused.
    pub refused: Count,
    /// The files that were begun and are still there, the present one last.
    files: Mutex<VecDeque<PathBuf>>,
}

impl FileCounts {
    /// While more may come.
    pub fn so_far(&self) -> RecordingReport {
        RecordingReport {
            written: self.written.get(),
            lost: self.missed.get() + self.refused.get(),
            files: Vec::new(),
        }
    }

    /// A file has been begun, and at most so many of the last ones are there.
    pub fn begun(&self, file: &Path, there: usize) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push_back(file.into());
        while files.len() > there {
            files.pop_front();
        }
    }

    /// When no more comes, and nothing more is written: what is not in the file is lost.
    pub fn at_end(&self) -> RecordingReport {
        let written = self.written.get();
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = files.iter().map(|file| file.display().to_string());
        RecordingReport {
            written,
            lost: (self.missed.get() + self.handed.get()).saturating_sub(written),
            files: files.collect(),
        }
    }
}

/// Writes one file.
pub trait Scribe: Send + 'static {
    /// Writes some of what was handed over; whether there was anything.
    fn work(&mut self) -> bool;

    /// Completes the file, when nothing more comes and [`work`](Self::work) finds nothing.
    fn finish(self) -> Result<()>;
}

/// A thread that writes.
pub struct Writing {
    /// The option that names the file, and its path.
    file: String,
    thread: JoinHandle<Result<()>>,
    done: Arc<AtomicBool>,
    counts: Arc<FileCounts>,
}

/// Starts to write `file`, on none of the CPUs in `loops`.
pub fn start<S: Scribe>(
    mut scribe: S,
    file: String,
    counts: Arc<FileCounts>,
    loops: &[usize],
) -> Result<Writing> {
    let done = Arc::<AtomicBool>::default();
    let (loops, is_done) = (loops.to_vec(), Arc::clone(&done));
    let body = move || {
        lcore::keep_off(&loops);
        loop {
            let done = is_done.load(Ordering::Acquire);
            if !scribe.work() {
                if done {
                    return scribe.finish();
                }
                std::thread::sleep(NAP);
            }
        }
    };
    let thread = std::thread::Builder::new()
        .name("recording".into())
        .spawn(body)
        .context("cannot start the thread that records")?;
    Ok(Writing {
        file,
        thread,
        done,
        counts,
    })
}

impl Writing {
    /// Has what is left written, once the loops have ended, and the file completed. A disk that
    /// takes nothing for as long as `patience`, or for less when the program is told to hurry, is left
    /// alone, and its thread to the end of the program: it may be in a system call that does not
    /// return.
    pub fn finish(self, patience: Duration) -> (RecordingReport, Result<()>) {
        // Release pairs with the acquire of the thread: all that was handed over is seen.
        self.done.store(true, Ordering::Release);
        let written = || self.counts.written.get();
        let mut progress = (written(), Instant::now());
        while !self.thread.is_finished() {
            if written() != progress.0 {
                progress = (written(), Instant::now());
            }
            let patience = pollux_program::patience(patience);
            if progress.1.elapsed() >= patience {
                let (file, seconds) = (&self.file, patience.as_secs_f64());
                let hangs = anyhow!(
                    "{file} is incomplete: the disk has taken nothing for {seconds} s, and is not waited for"
                );
                return (self.counts.at_end(), Err(hangs));
            }
            std::thread::sleep(NAP);
        }
        let panicked = |_| {
            Err(anyhow!(
                "{}: the thread that records has panicked",
                self.file
            ))
        };
        let end = self.thread.join().unwrap_or_else(panicked);
        (self.counts.at_end(), end)
    }
}
