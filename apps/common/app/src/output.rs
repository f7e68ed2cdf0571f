//! Output files: their names, placeholders in them, and the handling of existing files.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use pollux_pmd::Registry;

use crate::distinct::{NamedFile, expect_distinct, is_special};

/// Placeholder for the next free number in a file name.
const NEXT: &str = "{n}";

/// The same in the text of a help, where clap has a line break for `{n}`: an escape sequence without an
/// effect lies between, which only a terminal is sent.
pub const NEXT_IN_HELP: &str = "{\u{1b}[0mn}";

/// Placeholder for the number of the run.
const RUN: &str = "{run}";

/// Placeholder for the number of the burst, in the name of a file of which there is one for each
/// burst.
pub const BURST: &str = "{burst}";

/// Overwrite option of every program that writes files. Flatten it into the command line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Overwrite {
    /// Overwrite existing output files
    #[arg(long, long_help = force_help())]
    pub force: bool,
}

fn force_help() -> String {
    format!(
        "Overwrite existing output files\n\nWithout it an existing file is an error before anything is \
         opened. {NEXT_IN_HELP} in the name of a file is the next free number: run-0001.json, then \
         run-0002.json. With it the files of an earlier divided recording are removed before the new one \
         begins."
    )
}

/// An output file with its resolved name.
#[derive(Clone, Debug)]
pub struct Output {
    option: &'static str,
    path: PathBuf,
    overwrite: Overwrite,
}

/// Resolves the names of a run's output files, each given by its option and its path. `{run}` in a
/// path is the number of the run. `{n}` in a file name is the next free number: one more than the
/// highest for which any of these files exists, the same for all of them. `{burst}` stays until
/// [`Output::of_burst`] has its number.
///
/// # Errors
/// A file that is there, unless it is to be overwritten; `{run}` or `{burst}` in a run without a
/// number; `{n}` or `{burst}` elsewhere than in the name of the file; `{n}` behind `{burst}`; two options
/// that name the same file.
pub fn name_outputs<const N: usize>(
    files: &[(&'static str, &Option<PathBuf>); N],
    run: Option<u32>,
    overwrite: Overwrite,
) -> Result<[Option<Output>; N]> {
    let mut outputs = [const { None }; N];
    for (output, (option, path)) in outputs.iter_mut().zip(files) {
        if let Some(path) = path {
            expect_no_port(path).with_context(|| option.to_string())?;
            let path = with_run(path, run)
                .and_then(with_burst)
                .with_context(|| shown(option, path))?;
            *output = Some(Output {
                option,
                path,
                overwrite,
            });
        }
    }
    let number = next_number(outputs.iter().flatten())?;
    for output in outputs.iter_mut().flatten() {
        output.path = numbered(&output.path, number);
        output.expect_free()?;
    }
    let named: Vec<_> = outputs.iter().flatten().map(Output::file).collect();
    expect_distinct(&named)?;
    Ok(outputs)
}

fn with_run(path: &Path, run: Option<u32>) -> Result<PathBuf> {
    let text = path.to_string_lossy();
    let Some(needs) = [RUN, BURST].into_iter().find(|part| text.contains(part)) else {
        return Ok(path.into());
    };
    let run = run.with_context(|| match needs {
        RUN => format!("{RUN} stands for the number of the run: give --run"),
        _ => format!("{BURST} stands for the number of a burst in a numbered run: give --run"),
    })?;
    Ok(text.replace(RUN, &format!("{run:04}")).into())
}

/// Refuses a path that is a port spec: `--json PORT` takes the next argument for its file, and the
/// port would be lost.
fn expect_no_port(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    let driver = text.split_once(':').map(|(driver, _)| driver);
    let is_port = driver.is_some_and(|driver| {
        let registry = Registry::builtin();
        registry.descriptions().any(|known| known.name == driver)
    });
    ensure!(
        !is_port,
        "{text} is a port, not a file: give ports in front of options that may have a file, or ./{text} \
         for a file of that name"
    );
    Ok(())
}

/// Refuses a `{burst}` in a folder name, twice, or in front of `{n}`.
fn with_burst(path: PathBuf) -> Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("")).to_string_lossy();
    ensure!(
        !folder.contains(BURST),
        "{BURST} stands for a number in the name of the file, not in that of its folder"
    );
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some((_, behind)) = name.split_once(BURST) {
        ensure!(!behind.contains(BURST), "{BURST} is there twice");
        ensure!(
            !behind.contains(NEXT),
            "{NEXT} must stand in front of {BURST}: the files of a run have one number"
        );
    }
    Ok(path)
}

/// The parts of the file name in front of `{n}` and behind it.
fn around(path: &Path) -> Option<(&str, &str)> {
    path.file_name()?.to_str()?.split_once(NEXT)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    match around(path) {
        Some((front, behind)) => path.with_file_name(format!("{front}{number:04}{behind}")),
        None => path.into(),
    }
}

fn next_number<'a>(outputs: impl Iterator<Item = &'a Output>) -> Result<u32> {
    let mut highest = 0;
    for output in outputs {
        let path = &output.path;
        let Some((front, behind)) = around(path) else {
            let text = path.to_string_lossy();
            ensure!(
                !text.contains(NEXT),
                "{}: {NEXT} stands for a number in the name of the file, not in that of its folder",
                output.name()
            );
            continue;
        };
        ensure!(
            !behind.contains(NEXT),
            "{}: {NEXT} is there twice",
            output.name()
        );
        // An unreadable folder is reported when the file is created.
        let entries = fs::read_dir(folder(path)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let taken = names.filter_map(|name| taken(&name, front, behind)).max();
        highest = highest.max(taken.unwrap_or(0));
    }
    highest
        .checked_add(1)
        .with_context(|| format!("{NEXT}: no number is left behind {highest}"))
}

/// The number in a file of this name. An incomplete report has it too, behind a dot, and so has
/// each part of a divided recording.
fn taken(name: &str, front: &str, behind: &str) -> Option<u32> {
    let name = match name.strip_prefix(front) {
        Some(rest) => rest,
        None => name.strip_prefix('.')?.strip_prefix(front)?,
    };
    let digits = name.find(|c: char| !c.is_ascii_digit());
    let (number, rest) = name.split_at(digits.unwrap_or(name.len()));
    let (behind, _) = behind.split_once(BURST).unwrap_or((behind, ""));
    let ours = rest.starts_with(behind) || rest.starts_with('_');
    ours.then(|| number.parse().ok())?
}

/// Placeholder for the number of a part, in the pattern of a divided file.
const PART: &str = "{part}";

/// Whether a name matches a pattern, in which [`BURST`] and [`PART`] match digits.
fn matches(mut pattern: &str, mut name: &str) -> bool {
    loop {
        let next = [BURST, PART].iter().filter_map(|number| {
            let (front, behind) = pattern.split_once(number)?;
            Some((front.len(), front, behind))
        });
        let Some((_, front, behind)) = next.min() else {
            return name == pattern;
        };
        let Some(rest) = name.strip_prefix(front) else {
            return false;
        };
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
        if number.is_empty() {
            return false;
        }
        (pattern, name) = (behind, rest);
    }
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn shown(option: &str, path: &Path) -> String {
    format!("{option} {}", path.display())
}

impl Output {
    /// Resolves the name of one file. `{n}` in its name is the next free number.
    ///
    /// # Errors
    /// As [`name_outputs`].
    pub fn new(option: &'static str, path: &Path, overwrite: Overwrite) -> Result<Self> {
        let [output] = name_outputs(&[(option, &Some(path.into()))], None, overwrite)?;
        output.context("a file without a name")
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The option and the path, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        shown(self.option, &self.path)
    }

    /// The file, to be compared with others of the run.
    #[must_use]
    pub fn file(&self) -> NamedFile {
        NamedFile::written(self.name(), &self.path)
    }

    /// Whether it is a device, a pipe or the like, which is neither created nor overwritten.
    #[must_use]
    pub fn is_special(&self) -> bool {
        is_special(&self.path)
    }

    /// Whether an existing file is overwritten.
    #[must_use]
    pub fn may_overwrite(&self) -> bool {
        self.overwrite.force || self.is_special()
    }

    /// The file with that suffix in the same folder, with the same overwrite rule: `run.h5` and 2
    /// give `run_00002.h5`.
    #[must_use]
    pub fn part(&self, number: u32) -> Self {
        Self {
            path: part(&self.path, number),
            ..self.clone()
        }
    }

    /// Whether there is a file for each burst.
    #[must_use]
    pub fn is_by_burst(&self) -> bool {
        self.path.to_string_lossy().contains(BURST)
    }

    /// The file of a burst: `run-{burst}.h5` and 2 give `run-00002.h5`. The file itself, if one
    /// file holds all bursts. A run whose bursts are numbered from 1 again counts on here.
    #[must_use]
    pub fn of_burst(&self, burst: u32) -> Self {
        if !self.is_by_burst() {
            return self.clone();
        }
        let path = self.path.to_string_lossy();
        Self {
            path: path.replace(BURST, &format!("{burst:05}")).into(),
            ..self.clone()
        }
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        folder(&self.path)
    }

    /// Refuses an existing file, unless it is to be overwritten. For a file of each burst, the file
    /// of any burst counts.
    ///
    /// # Errors
    /// What is there, and what to do about it.
    pub fn expect_free(&self) -> Result<()> {
        if self.may_overwrite() {
            return Ok(());
        }
        let there = if self.is_by_burst() {
            self.there(false).into_iter().next()
        } else {
            Some(self.path.clone()).filter(|path| fs::symlink_metadata(path).is_ok())
        };
        there.map_or(Ok(()), |path| Err(self.is_there(&path)))
    }

    /// As [`expect_free`](Self::expect_free), for a file that is divided: any of its parts counts.
    ///
    /// # Errors
    /// As there.
    pub fn expect_free_parts(&self) -> Result<()> {
        match self.there(true).first() {
            Some(path) if !self.may_overwrite() => Err(self.is_there(path)),
            _ => Ok(()),
        }
    }

    /// Removes the files that an earlier run has left and that are to be overwritten: of each
    /// burst, and where they are `divided` all parts. They would otherwise lie among those of this
    /// run.
    ///
    /// # Errors
    /// A file that cannot be taken away.
    pub fn clear(&self, divided: bool) -> Result<()> {
        if !self.may_overwrite() || !divided && !self.is_by_burst() {
            return Ok(());
        }
        for path in self.there(divided) {
            fs::remove_file(&path).with_context(|| shown(self.option, &path))?;
        }
        Ok(())
    }

    /// Existing files of any burst, and where they are `divided` all parts, in the order of their
    /// names.
    fn there(&self, divided: bool) -> Vec<PathBuf> {
        let pattern = if divided {
            part_of(&self.path, "_", PART)
        } else {
            self.path.clone()
        };
        let pattern = pattern.file_name().and_then(|name| name.to_str());
        // An unreadable folder is reported when a file is created.
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let fits = |(pattern, name)| matches(pattern, name);
            !is_folder && pattern.zip(name.to_str()).is_some_and(fits)
        });
        let mut files: Vec<_> = ours.map(|entry| entry.path()).collect();
        files.sort();
        files
    }

    /// The error for an existing file.
    #[must_use]
    fn is_there(&self, path: &Path) -> anyhow::Error {
        let text = self.path.to_string_lossy();
        let example = if self.is_by_burst() {
            text.replace(BURST, &format!("{NEXT}-{BURST}")).into()
        } else {
            part_of(&self.path, "-", NEXT)
        };
        anyhow!(
            "{}: the file exists and is not overwritten: give another name, or {} whose {NEXT} is \
             the next free number, or --force to overwrite it",
            shown(self.option, path),
            example.display()
        )
    }

    /// Creates the file; it is written during the run.
    ///
    /// # Errors
    /// A path that cannot be written; a file that is there, unless it is to be overwritten.
    pub fn create(&self) -> Result<File> {
        if self.may_overwrite() {
            return File::create(&self.path).with_context(|| self.name());
        }
        match File::create_new(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(self.is_there(&self.path))
            }
            created => created.with_context(|| self.name()),
        }
    }

    /// Creates the file and writes it as a whole. What was begun is removed where the rest is refused, as
    /// on a full disk.
    ///
    /// # Errors
    /// As [`create`](Self::create); the disk's refusal.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let written = self.create()?.write_all(bytes);
        if written.is_err() && !self.is_special() {
            // The refusal is what is told.
            let _ = fs::remove_file(&self.path);
        }
        written.with_context(|| self.name())
    }
}

/// The name of a part of a divided file: `run.pcapng` and 1 give `run_00001.pcapng`.
#[must_use]
pub fn part(path: &Path, number: u32) -> PathBuf {
    part_of(path, "_", &format!("{number:05}"))
}

fn part_of(path: &Path, joint: &str, what: &str) -> PathBuf {
    let text =
        |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, extension) = (text(path.file_stem()), text(path.extension()));
    let dot = if extension.is_empty() { "" } else { "." };
    path.with_file_name(format!("{stem}{joint}{what}{dot}{extension}"))
}

#[cfg(test)]
mod tests;
