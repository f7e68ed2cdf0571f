//! A report for machines that is printed, or written to a file: `--json` and `--json FILE`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Failure, Output, Overwrite, ReportFile, print_with};

/// Where a report goes as JSON: the value of an option with `num_args = 0..=1` and
/// `default_missing_value = Json::STDOUT`. Without a file it takes the place of the text on standard
/// output, with one it is written there beside the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(PathBuf);

impl Json {
    /// The value of the option without a file.
    pub const STDOUT: &str = "-";

    /// The file; `None`: it is printed.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        Some(&*self.0).filter(|path| *path != Path::new(Self::STDOUT))
    }
}

impl From<OsString> for Json {
    fn from(text: OsString) -> Self {
        Self(text.into())
    }
}

/// What an option `--json` asks for, made ready.
#[derive(Debug)]
pub struct JsonReport {
    is_printed: bool,
    file: Option<ReportFile>,
}

impl JsonReport {
    /// Makes the file ready, if there is to be one.
    ///
    /// # Errors
    /// A file that is there, unless it is to be overwritten; a path that cannot be written.
    pub fn new(asked: Option<&Json>, overwrite: Overwrite) -> Result<Self, Failure> {
        let output = asked
            .and_then(Json::file)
            .map(|path| Output::new("--json", path, overwrite));
        let output = output.transpose().map_err(Failure::Usage)?;
        Ok(Self {
            is_printed: asked.is_some_and(|asked| asked.file().is_none()),
            file: output.as_ref().map(ReportFile::create).transpose()?,
        })
    }

    /// Whether it takes the place of the text.
    #[must_use]
    pub fn is_printed(&self) -> bool {
        self.is_printed
    }

    /// Prints the report, as JSON where that was asked for and else by `text`, and writes it to its
    /// file.
    ///
    /// # Errors
    /// A disk that is full, say. The file is written even so.
    pub fn tell(
        self,
        report: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let printed = if self.is_printed {
            print_json(report)
        } else {
            print_with(text).map(drop)
        };
        self.file.map_or(Ok(()), |file| file.write(report))?;
        printed
    }
}

/// Prints a report as JSON, as it is written to files.
///
/// # Errors
/// As [`print_with`].
pub fn print_json(report: &impl Serialize) -> anyhow::Result<()> {
    let written = print_with(|out| {
        serde_json::to_writer_pretty(&mut *out, report)?;
        writeln!(out)
    });
    written.map(drop)
}
