//! When one file is full and the next begins.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::units::{bytes, seconds};

/// The options of what is written to several files, one after the other; flattened into a command
/// line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct RotationOptions {
    /// Begin a new file when one has this size: 500k, 100MB, 4GB
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Files")]
    file_size: Option<u64>,

    /// Begin a new file when one is so old: a number of seconds, or a time like 10min
    #[arg(long, value_name = "TIME", value_parser = seconds, help_heading = "Files")]
    file_seconds: Option<Duration>,

    /// Keep only the last N files
    #[arg(long, value_name = "N", help_heading = "Files", value_parser = clap::value_parser!(u32).range(1..))]
    ring: Option<u32>,
}

impl RotationOptions {
    /// What is asked for.
    ///
    /// # Errors
    /// Files are to be taken away, and none is ever full.
    pub fn rotation(&self) -> Result<Rotation> {
        ensure!(
            self.ring.is_none() || self.file_size.is_some() || self.file_seconds.is_some(),
            "--ring needs --file-size or --file-seconds: when is a file full?"
        );
        Ok(Rotation {
            size: self.file_size,
            age: self.file_seconds,
            keep: self.ring.map(|n| n as usize),
        })
    }
}

/// When to begin a new file, and how many to keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotation {
    /// Bytes of a file.
    pub size: Option<u64>,
    /// Age of a file.
    pub age: Option<Duration>,
    /// Files to keep; none: all.
    pub keep: Option<usize>,
}

impl Rotation {
    /// Whether there is to be more than one file.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.size.is_some() || self.age.is_some()
    }

    /// Takes away the oldest of the files, the present one last, if there are too many.
    pub fn trim(&self, names: &mut VecDeque<PathBuf>) {
        if self.keep.is_some_and(|keep| names.len() > keep) {
            let oldest = names.pop_front();
            // Whoever took it away already has done what is to be done.
            let _ = oldest.map(fs::remove_file);
        }
    }
}
