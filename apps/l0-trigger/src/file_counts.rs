//! Counters of the events in files.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pollux_output::QueueCounts;
use pollux_pmd::Count;

use crate::report::RecordingReport;

/// Outcomes of the events for a file.
#[derive(Debug, Default)]
pub struct FileCounts {
    /// Events that the loop has passed on, and those that it dropped because the disk was too slow.
    pub queue: Arc<QueueCounts>,
    /// Events in the file.
    pub written: Count,
    /// Events that were passed on, and whose write has failed.
    pub refused: Count,
    /// The existing files that were begun, the current one last.
    files: Mutex<VecDeque<PathBuf>>,
}

impl FileCounts {
    /// Counts while the file is open.
    pub fn so_far(&self) -> RecordingReport {
        RecordingReport {
            written: self.written.get(),
            lost: self.queue.missed.get() + self.refused.get(),
            files: Vec::new(),
        }
    }

    /// Records a new file, and the number of the last files that are kept.
    pub fn begun(&self, file: &Path, there: usize) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push_back(file.into());
        while files.len() > there {
            files.pop_front();
        }
    }

    /// Counts after the end: events that are not in the file are lost.
    pub fn at_end(&self) -> RecordingReport {
        let written = self.written.get();
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = files.iter().map(|file| file.display().to_string());
        RecordingReport {
            written,
            lost: (self.queue.missed.get() + self.queue.handed.get()).saturating_sub(written),
            files: files.collect(),
        }
    }
}

/// Counters of the files of a run.
#[derive(Default)]
pub struct FilesCounts {
    /// Of `--events-out`.
    pub recording: Option<Arc<FileCounts>>,
    /// Of `--record`.
    pub record: Option<Arc<FileCounts>>,
}
