//! File writer threads: a slow disk blocks its thread, never the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use pollux_pmd::lcore;

use crate::file_counts::FileCounts;
use crate::report::RecordingReport;

/// Maximum time that the end of a run waits for a disk that makes no progress.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Sleep time of a thread without data.
const NAP: Duration = Duration::from_millis(1);

/// Writes one file.
pub trait FileWriter: Send + 'static {
    /// Writes some of the queued data; returns whether there was any.
    fn work(&mut self) -> bool;

    /// Completes the file, when no more data arrives and [`work`](Self::work) finds none.
    fn finish(self) -> Result<()>;
}

/// A writer thread.
pub struct Writing {
    /// The option that names the file, and its path.
    file: String,
    thread: JoinHandle<Result<()>>,
    done: Arc<AtomicBool>,
    counts: Arc<FileCounts>,
}

/// Starts to write `file`, on none of the CPUs in `loops`.
pub fn start<W: FileWriter>(
    mut writer: W,
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
            if !writer.work() {
                if done {
                    return writer.finish();
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
    /// Writes the remaining data after the loops have ended, and completes the file. A disk without
    /// progress for `patience`, or for less after a second signal, is abandoned with its thread,
    /// which may be in a system call that does not return.
    pub fn finish(self, patience: Duration) -> (RecordingReport, Result<()>) {
        // Release pairs with the acquire of the thread, which then sees all queued data.
        self.done.store(true, Ordering::Release);
        let written = || self.counts.written.get();
        let mut progress = (written(), Instant::now());
        while !self.thread.is_finished() {
            if written() != progress.0 {
                progress = (written(), Instant::now());
            }
            let patience = pollux_app::patience(patience);
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
