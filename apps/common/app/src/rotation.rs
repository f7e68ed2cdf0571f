//! File rotation: limits on size and age of a file, and on the number of files.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::units::{bytes, seconds};

/// Options of output that is split into consecutive files. Flatten them into a command line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct RotationOptions {
    /// Begin a new file at this size: 500k, 100MB, 4GB. A file may become longer by what is written at
    /// once
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Files")]
    file_size: Option<u64>,

    /// Begin a new file at this age: a number of seconds, or a time like 10min
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "Files")]
    file_seconds: Option<Duration>,

    /// Keep only the last N files
    #[arg(long, value_name = "N", help_heading = "Files", value_parser = clap::value_parser!(u32).range(1..))]
    ring: Option<u32>,
}

impl RotationOptions {
    /// The rotation that the options request.
    ///
    /// # Errors
    /// Files are to be removed, but no limit begins a new one.
    pub fn rotation(&self) -> Result<Rotation> {
        ensure!(
            self.ring.is_none() || self.file_size.is_some() || self.file_seconds.is_some(),
            "--ring needs --file-size or --file-seconds, which limit a file"
        );
        Ok(Rotation {
            size: self.file_size,
            age: self.file_seconds,
            keep: self.ring.map(|n| n as usize),
        })
    }
}

/// Limits at which a new file begins, and the number of files to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotation {
    /// Size limit of a file, in bytes.
    pub size: Option<u64>,
    /// Age limit of a file.
    pub age: Option<Duration>,
    /// Number of files to keep; `None` keeps all.
    pub keep: Option<usize>,
}

impl Rotation {
    /// Whether several files can result.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.size.is_some() || self.age.is_some()
    }

    /// Removes the oldest files if there are too many. The present file is the last of `files`.
    pub fn trim(&self, names: &mut VecDeque<PathBuf>) {
        if self.keep.is_some_and(|keep| names.len() > keep) {
            let oldest = names.pop_front();
            // The file may have been removed by another process: the result is the same.
            let _ = oldest.map(fs::remove_file);
        }
    }
}
