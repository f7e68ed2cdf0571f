//! Files that a program writes: what they are called, and what becomes of those that are there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use pollux_pmd::Registry;

/// What stands for the next free number in the name of a file.
const NEXT: &str = "{n}";

/// What stands for the number of the run.
const RUN: &str = "{run}";

/// What stands for the number of the burst, in the name of a file of which there is one for each.
pub const BURST: &str = "{burst}";

/// The option of every program that writes files; flattened into its command line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Overwrite {
    /// Overwrite output files that are there
    ///
    /// Without it such a file is an error before anything is opened. The letter n in braces in the name
    /// of a file is the next free number: run-0001.json, then run-0002.json. With it the files of an
    /// earlier recording that was divided are taken away before the new one begins.
    #[arg(long)]
    pub force: bool,
}

/// A file to be written, by the name that it will have.
#[derive(Clone, Debug)]
pub struct Output {
    option: &'static str,
    path: PathBuf,
    overwrite: Overwrite,
}

/// Names the files of a run, each given by its option and its path. `{run}` in a path is the number
/// of the run, and `{n}` in the name of a file the next free number: one more than the highest for
/// which there is any of these files, the same for all of them. `{burst}` stays until
/// [`Output::of_burst`] has its number.
///
/// # Errors
/// A file that is there, unless it is to be overwritten; `{run}` or `{burst}` in a run without a
/// number; `{n}` or `{burst}` elsewhere than in the name of the file; `{n}` behind `{burst}`; two options
/// that name one file.
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
    let named: Vec<_> = outputs.iter().flatten().collect();
    for (n, output) in named.iter().enumerate() {
        let same = |other: &&&Output| other.path == output.path && !output.is_special();
        if let Some(other) = named[..n].iter().find(same) {
            bail!("{} and {} name one file", other.name(), output.option);
        }
    }
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

/// Refuses what is a port: `--json PORT` takes what follows for its file, and would do without the port.
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

/// Looks at where `{burst}` stands, and when.
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

/// What is in front of `{n}` in the name of a file, and behind it.
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
        // A folder that cannot be read is told when the file is made.
        let entries = fs::read_dir(folder(path)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let taken = names.filter_map(|name| taken(&name, front, behind)).max();
        highest = highest.max(taken.unwrap_or(0));
    }
    highest
        .checked_add(1)
        .with_context(|| format!("{NEXT}: no number is left behind {highest}"))
}

/// The number that a file of this name has. A report that is not complete has it too, behind a dot,
/// and so has each of the files of a recording that is in several.
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

/// What stands for the number of a file among those that one is divided into, in a pattern.
const PART: &str = "{part}";

/// Whether a name is that of a pattern, in which [`BURST`] and [`PART`] stand for digits.
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

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn shown(option: &str, path: &Path) -> String {
    format!("{option} {}", path.display())
}

/// Whether it is no file on a disk: a device, a pipe, a socket, or what is open already. Nothing is
/// lost by writing there.
fn is_special(path: &Path) -> bool {
    let open = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    open.iter().any(|open| path.starts_with(open))
        || fs::metadata(path).is_ok_and(|found| !found.is_file())
}

impl Output {
    /// Names one file. `{n}` in its name is the next free number.
    ///
    /// # Errors
    /// As [`name_outputs`].
    pub fn new(option: &'static str, path: &Path, overwrite: Overwrite) -> Result<Self> {
        let [output] = name_outputs(&[(option, &Some(path.into()))], None, overwrite)?;
        output.context("a file without a name")
    }

    /// Its name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The option and the path, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        shown(self.option, &self.path)
    }

    /// Whether it is a device, a pipe or the like, which is neither created nor overwritten.
    #[must_use]
    pub fn is_special(&self) -> bool {
        is_special(&self.path)
    }

    /// Whether what is there is to be overwritten.
    #[must_use]
    pub fn may_overwrite(&self) -> bool {
        self.overwrite.force || self.is_special()
    }

    /// The file beside it with that suffix, by the same rule: `run.h5` and 2 give `run_00002.h5`.
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

    /// The file of a burst: `run-{burst}.h5` and 2 give `run-00002.h5`. The file itself, if there is
    /// one for all.
    #[must_use]
    pub fn of_burst(&self, burst: u16) -> Self {
        if !self.is_by_burst() {
            return self.clone();
        }
        let path = self.path.to_string_lossy();
        Self {
            path: path.replace(BURST, &format!("{burst:05}")).into(),
            ..self.clone()
        }
    }

    /// The folder that it is in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        folder(&self.path)
    }

    /// Refuses a file that is there, unless it is to be overwritten: of a file for each burst, that of
    /// any burst.
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

    /// As [`expect_free`](Self::expect_free), of a file that is to be divided: any of its parts.
    ///
    /// # Errors
    /// As there.
    pub fn expect_free_parts(&self) -> Result<()> {
        match self.there(true).first() {
            Some(path) if !self.may_overwrite() => Err(self.is_there(path)),
            _ => Ok(()),
        }
    }

    /// Takes away what an earlier run has left of files that are to be overwritten: of each burst, and
    /// where they are `divided` all parts. Else they would lie among those of this run.
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

    /// The files that are there of any burst, and where they are `divided` all parts, in the order of
    /// their names.
    fn there(&self, divided: bool) -> Vec<PathBuf> {
        let pattern = if divided {
            part_of(&self.path, "_", PART)
        } else {
            self.path.clone()
        };
        let pattern = pattern.file_name().and_then(|name| name.to_str());
        // A folder that cannot be read is told when a file is made.
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

    /// What is said of a file that is there.
    #[must_use]
    fn is_there(&self, path: &Path) -> anyhow::Error {
        let text = self.path.to_string_lossy();
        let example = if self.is_by_burst() {
            text.replace(BURST, &format!("{NEXT}-{BURST}")).into()
        } else {
            part_of(&self.path, "-", NEXT)
        };
        anyhow!(
            "{}: the file is there, and is not overwritten: give another name, or {} whose {NEXT} is \
             the next free number, or --force to overwrite it",
            shown(self.option, path),
            example.display()
        )
    }

    /// Creates the file, to be written as the run goes on.
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
}

/// The name of a file among those that one is divided into: `run.pcapng` and 1 give
/// `run_00001.pcapng`.
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write as _;

    const KEEP: Overwrite = Overwrite { force: false };
    const FORCE: Overwrite = Overwrite { force: true };

    fn told<T>(result: Result<T>) -> String {
        format!("{:#}", result.err().unwrap())
    }

    #[test]
    fn a_file_that_is_there_is_refused_unless_it_is_forced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        let free = Output::new("--report", &path, KEEP).unwrap();
        fs::write(&path, "a run").unwrap();
        let text = told(Output::new("--report", &path, KEEP));
        for part in ["--report", "run.json", "run-{n}.json", "--force"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        // Nor when it has come since.
        assert!(free.create().unwrap_err().to_string().contains("--force"));
        assert_eq!(fs::read(&path).unwrap(), b"a run");
        let forced = Output::new("--report", &path, FORCE).unwrap();
        forced.create().unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        // A link that leads nowhere is there.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/nowhere", &link).unwrap();
        assert!(Output::new("--report", &link, KEEP).is_err());
    }

    #[test]
    fn what_is_no_file_is_always_written_to() {
        for path in ["/dev/null", "/dev/stdout", "/dev/full", "/proc/self/fd/1"] {
            let output = Output::new("--report", Path::new(path), KEEP).unwrap();
            assert!(output.is_special() && output.may_overwrite(), "{path}");
        }
        let null = Some("/dev/null".into());
        let two = [("--report", &null), ("--record", &null)];
        assert!(name_outputs(&two, None, KEEP).unwrap()[1].is_some());
    }

    #[test]
    fn files_of_a_run_have_one_number_behind_all_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let report = Some(path("run-{n}.json"));
        let record = Some(path("r{run}-{n}.h5"));
        let files = [("--report", &report), ("--record", &record)];
        let names = || {
            let outputs = name_outputs(&files, Some(7), KEEP).unwrap();
            outputs.map(|output| {
                let path = output.unwrap().path;
                path.file_name().unwrap().to_str().unwrap().to_owned()
            })
        };
        assert_eq!(names(), ["run-0001.json", "r0007-0001.h5"]);
        for (there, next) in [
            ("run-0001.json", "run-0002.json"),
            // One that is missing in between is not used again.
            ("r0007-0004.h5", "run-0005.json"),
            // A recording of several files, of which the run was killed.
            ("r0007-0006_00002.h5", "run-0007.json"),
            // A report that is not complete.
            (".run-0007.json.Xy12ab.tmp", "run-0008.json"),
            ("run-12000.json", "run-12001.json"),
            // Others' files.
            ("run-99999x.json", "run-12001.json"),
            ("ran-99999.json", "run-12001.json"),
            ("run-.json", "run-12001.json"),
        ] {
            fs::write(path(there), "").unwrap();
            assert_eq!(names()[0], next, "after {there}");
        }
        fs::write(path("run-4294967295.json"), "").unwrap();
        assert!(told(name_outputs(&files, Some(7), KEEP)).contains("no number is left"));
    }

    #[test]
    fn names_that_cannot_be_are_explained() {
        let of = |name: &str| told(Output::new("--record", Path::new(name), KEEP));
        assert!(of("r-{run}.h5").contains("give --run"));
        assert!(of("r-{burst}.h5").contains("give --run"));
        assert!(of("pcap:rx=run.pcapng").contains("is a port, not a file"));
        assert!(Output::new("--record", Path::new("./pcap:rx=run.h5"), KEEP).is_ok());
        let of_run = |name: &str| {
            let outputs = name_outputs(&[("--record", &Some(name.into()))], Some(2), KEEP);
            told(outputs)
        };
        assert!(of_run("{burst}/r.h5").contains("not in that of its folder"));
        assert!(of_run("{burst}-{burst}.h5").contains("twice"));
        assert!(of_run("{burst}-{n}.h5").contains("in front of {burst}"));
        assert!(of("{n}/r.h5").contains("not in that of its folder"));
        assert!(of("{n}-{n}.h5").contains("twice"));
        let run = Some("no-run".into());
        let same = [("--record", &run), ("--report", &run)];
        assert!(told(name_outputs(&same, None, KEEP)).contains("--record no-run and --report"));
        let [run] = name_outputs(&[("--record", &Some("{run}/x".into()))], Some(2), KEEP).unwrap();
        assert_eq!(run.unwrap().path(), Path::new("0002/x"));
    }

    #[test]
    fn bursts_have_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("r{run}-{n}-{burst}.h5"));
        let of = |run| {
            let [output] = name_outputs(&[("--record", &path)], Some(run), KEEP).unwrap();
            output.unwrap()
        };
        let name = |output: &Output| {
            let name = output.path().file_name().unwrap();
            name.to_str().unwrap().to_owned()
        };
        let first = of(7);
        assert!(first.is_by_burst() && !first.of_burst(1).is_by_burst());
        assert_eq!(name(&first.of_burst(12)), "r0007-0001-00012.h5");
        assert_eq!(
            name(&first.of_burst(12).part(3)),
            "r0007-0001-00012_00003.h5"
        );
        fs::write(first.of_burst(3).path(), "a burst").unwrap();
        assert_eq!(name(&of(7).of_burst(1)), "r0007-0002-00001.h5");
        // The first of them is looked for at once.
        let path = Some(folder.path().join("x-{burst}.h5"));
        fs::write(folder.path().join("x-00001.h5"), "a burst").unwrap();
        let text = told(name_outputs(&[("--record", &path)], Some(1), KEEP));
        assert!(
            text.contains("x-00001.h5") && text.contains("--force"),
            "{text}"
        );
        assert!(text.contains("x-{n}-{burst}.h5"), "{text}");
    }

    /// The first part may have been taken away, by a ring.
    #[test]
    fn no_part_of_an_earlier_run_is_left_among_those_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let there = |name: &str| folder.path().join(name).exists();
        for (name, divided, earlier) in [
            ("run.h5", true, "run_00011.h5"),
            ("r-{burst}.h5", false, "r-00003.h5"),
            ("q-{burst}.h5", true, "q-00003_00002.h5"),
        ] {
            let path = Some(folder.path().join(name));
            for other in ["run_a.h5", "run_1.h5x", "r-.h5", "q-3.h5x", "run.txt"] {
                fs::write(folder.path().join(other), "").unwrap();
            }
            let named = |force| {
                let [output] = name_outputs(&[("--record", &path)], Some(1), Overwrite { force })?;
                let output = output.unwrap();
                if divided {
                    output.expect_free_parts()?;
                }
                output.clear(divided).map(|()| output)
            };
            named(false).unwrap();
            fs::write(folder.path().join(earlier), "an earlier run").unwrap();
            let text = told(named(false));
            assert!(text.contains(earlier) && there(earlier), "{text}");
            named(true).unwrap();
            assert!(!there(earlier), "{earlier}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
        }
    }

    #[test]
    fn parts_are_numbered() {
        let of = |path: &str| part(Path::new(path), 7).display().to_string();
        assert_eq!(of("/data/run.pcapng"), "/data/run_00007.pcapng");
        assert_eq!(of("run"), "run_00007");
        assert_eq!(of("run.1.pcapng"), "run.1_00007.pcapng");
    }
}
