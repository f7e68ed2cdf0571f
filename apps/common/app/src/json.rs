//! Machine-readable report: `--json` prints it, `--json FILE` writes it to a file.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Output, ReportFile, print_with};

/// Destination of a report as JSON: the value of an option with `num_args = 0..=1` and
/// `default_missing_value = Json::STDOUT`. Without a file, JSON replaces the text on standard
/// output. With a file, it is written there in addition to the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(PathBuf);

impl Json {
    /// Value of the option without a file.
    pub const STDOUT: &str = "-";

    /// The file that the option names.
    #[must_use]
    pub fn file_of(asked: Option<&Self>) -> Option<PathBuf> {
        asked
            .map(|json| json.0.clone())
            .filter(|path| path != Path::new(Self::STDOUT))
    }

    /// Whether the report is printed as JSON.
    #[must_use]
    pub fn is_printed(asked: Option<&Self>) -> bool {
        asked.is_some() && Self::file_of(asked).is_none()
    }
}

impl From<OsString> for Json {
    fn from(text: OsString) -> Self {
        Self(text.into())
    }
}

/// Prepared destinations of a report: files as JSON, and standard output as JSON or as text.
#[derive(Debug)]
pub struct Reports {
    prints_json: bool,
    files: Vec<ReportFile>,
}

impl Reports {
    /// Prepares the files.
    ///
    /// # Errors
    /// A file that is there, unless it is to be overwritten; a path that cannot be written.
    pub fn new<'a>(
        prints_json: bool,
        outputs: impl IntoIterator<Item = &'a Output>,
    ) -> anyhow::Result<Self> {
        let files = outputs.into_iter().map(ReportFile::create);
        Ok(Self {
            prints_json,
            files: files.collect::<Result<_, _>>()?,
        })
    }

    /// Prints the report: as JSON if that was requested, else with `text`.
    ///
    /// # Errors
    /// As [`print_with`].
    pub fn print(
        &self,
        report: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let printed = print_with(|out| {
            if self.prints_json {
                serde_json::to_writer_pretty(&mut *out, report)?;
                writeln!(out)
            } else {
                text(out)
            }
        });
        printed.map(drop)
    }

    /// Writes the report to its files.
    ///
    /// # Errors
    /// As [`ReportFile::write`].
    pub fn write(self, report: &impl Serialize) -> anyhow::Result<()> {
        self.files
            .into_iter()
            .try_for_each(|file| file.write(report))
    }

    /// Prints the report and writes it to its files.
    ///
    /// # Errors
    /// As [`print`](Self::print) and [`write`](Self::write); the files are written even so.
    pub fn tell(
        self,
        report: &impl Serialize,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let printed = self.print(report, text);
        self.write(report)?;
        printed
    }
}
