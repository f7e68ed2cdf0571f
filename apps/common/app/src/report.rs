//! JSON report file of a run.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use pollux_pmd::{Balance, Cause};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, PersistError};

use crate::Output;

/// Report file of `--report FILE`. It is prepared before the run, so that an unwritable path is
/// reported before the run and not after it.
///
/// Until the report is complete it has a temporary name in the same folder
/// (`.run.json.XXXXXX.tmp`), which is removed if the run leaves no report. A file under the final
/// name is therefore always complete.
#[derive(Debug)]
pub struct ReportFile {
    output: Output,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A device, a pipe or the like.
    Special(File),
    Disk(NamedTempFile),
}

impl ReportFile {
    /// Prepares the file.
    ///
    /// # Errors
    /// A path that cannot be written; a file that is there, unless it is to be overwritten.
    pub fn create(output: &Output) -> anyhow::Result<Self> {
        output.expect_free()?;
        let place = Place::of(output).with_context(|| output.name())?;
        let output = output.clone();
        Ok(Self { output, place })
    }

    /// Writes the report as JSON and syncs it to the disk.
    ///
    /// # Errors
    /// A disk that is full, say; or a file of that name that has come during the run: the report
    /// keeps its other name then, which the error tells.
    pub fn write(self, report: &impl Serialize) -> anyhow::Result<()> {
        let Self { output, place } = self;
        let json = serde_json::to_string_pretty(report)
            .map(|json| json + "\n")
            .with_context(|| output.name())?;
        match place {
            Place::Special(mut file) => file.write_all(json.as_bytes()),
            Place::Disk(mut file) => {
                let written = file.write_all(json.as_bytes());
                let synced = written.and_then(|()| file.as_file().sync_all());
                synced.with_context(|| output.name())?;
                return rename(file, &output);
            }
        }
        .with_context(|| output.name())
    }
}

impl Place {
    fn of(output: &Output) -> io::Result<Self> {
        if output.is_special() {
            return File::create(output.path()).map(Self::Special);
        }
        let name = output.path().file_name().unwrap_or_default();
        let prefix = format!(".{}.", name.to_string_lossy());
        // As for any other file: the process's umask applies to this mode.
        let mode = Permissions::from_mode(0o666);
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(&prefix).suffix(".tmp").permissions(mode);
        builder.tempfile_in(output.folder()).map(Self::Disk)
    }
}

/// Checks that a file could be written or created, without touching it. Only a write detects a full
/// disk.
///
/// # Errors
/// The error that an open for writing would return.
pub fn can_be_written(path: &Path) -> io::Result<()> {
    let writable = |path: &Path, rights: Access| {
        // With the effective user's rights, as for an open.
        Ok(accessat(CWD, path, rights, AtFlags::EACCESS)?)
    };
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => writable(path, Access::WRITE_OK),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            let folder = folder.unwrap_or(Path::new("."));
            writable(folder, Access::WRITE_OK | Access::EXEC_OK)?;
            if folder.is_dir() && path.file_name().is_some() {
                Ok(())
            } else {
                Err(io::ErrorKind::NotADirectory.into())
            }
        }
        Err(error) => Err(error),
    }
}

/// Renames the file to its final name.
fn rename(file: NamedTempFile, output: &Output) -> anyhow::Result<()> {
    let path = output.path();
    let renamed = if output.may_overwrite() {
        // The target of a link is overwritten, and not the link.
        file.persist(path.canonicalize().as_deref().unwrap_or(path))
    } else {
        file.persist_noclobber(path)
    };
    if let Err(PersistError { error, file }) = renamed {
        let kept = file.into_temp_path().keep();
        let kept = kept.with_context(|| output.name())?;
        let kept = format!("{}: the report is in {}", output.name(), kept.display());
        return Err(anyhow::Error::new(error).context(kept));
    }
    // Syncs the name too; not every file system supports it.
    let _ = File::open(output.folder()).and_then(|folder| folder.sync_all());
    Ok(())
}

/// The cause of most drops of a run, with their number, without those that tell nothing of its configuration: what was
/// still queued at the end, what was lost on purpose, and frames that are no datagrams for this host. A recording has
/// no frames of other hosts, so that the last count there too.
#[must_use]
pub fn main_loss(balance: &Balance, recorded: bool) -> Option<(Cause, u64)> {
    let drops = balance.drops().filter(|&(cause, _)| match cause {
        Cause::Aborted | Cause::Impaired => false,
        Cause::Unsupported | Cause::NotForUs => recorded,
        _ => true,
    });
    drops.max_by_key(|&(_, frames)| frames)
}

/// Loss ledger in a report. Causes with no drops are left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LedgerReport {
    /// Frames that reached the ports.
    pub from_wire: u64,
    /// Frames that reached their consumers.
    pub delivered: u64,
    /// Lost frames by cause.
    pub dropped: BTreeMap<String, u64>,
    /// `from_wire` is the sum of all others.
    pub balanced: bool,
}

impl From<Balance> for LedgerReport {
    fn from(balance: Balance) -> Self {
        Self {
            from_wire: balance.from_wire,
            delivered: balance.delivered,
            dropped: balance
                .drops()
                .map(|(cause, n)| (cause.name().to_owned(), n))
                .collect(),
            balanced: balance.is_balanced(),
        }
    }
}

impl LedgerReport {
    /// Adds the ledger of another process.
    pub fn add(&mut self, other: &Self) {
        self.from_wire += other.from_wire;
        self.delivered += other.delivered;
        for (cause, frames) in &other.dropped {
            *self.dropped.entry(cause.clone()).or_default() += frames;
        }
        self.balanced &= other.balanced;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Overwrite;
    use std::fs;

    fn output(path: &Path, force: bool) -> anyhow::Result<Output> {
        Output::new("--report", path, Overwrite { force })
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        names
            .map(|name| name.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn what_others_send_and_what_was_meant_is_no_loss_of_a_run() {
        let main = |drops: &[(Cause, u64)], recorded| {
            let mut tally = pollux_pmd::Tally::new();
            for &(cause, frames) in drops {
                tally.count_dropped(cause, frames);
            }
            main_loss(&tally.view().balance(), recorded)
        };
        let others = [
            (Cause::NotForUs, 9),
            (Cause::Unsupported, 8),
            (Cause::Aborted, 20),
            (Cause::Impaired, 30),
        ];
        assert_eq!(main(&others, false), None);
        assert_eq!(main(&others, true), Some((Cause::NotForUs, 9)));
        let with_own = [&others[..], &[(Cause::DemuxMiss, 2), (Cause::Late, 1)]].concat();
        assert_eq!(main(&with_own, false), Some((Cause::DemuxMiss, 2)));
        assert_eq!(main(&[], true), None);
    }

    #[test]
    fn what_could_be_written_is_known_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        can_be_written(&path("new.json")).unwrap();
        assert!(!path("new.json").exists());
        std::fs::write(path("old.json"), "old").unwrap();
        can_be_written(&path("old.json")).unwrap();
        assert_eq!(std::fs::read_to_string(path("old.json")).unwrap(), "old");
        can_be_written(Path::new("Cargo.toml")).unwrap();
        for (name, kind) in [
            ("", io::ErrorKind::IsADirectory),
            ("none/new.json", io::ErrorKind::NotFound),
            ("old.json/new.json", io::ErrorKind::NotADirectory),
        ] {
            let error = can_be_written(&path(name)).unwrap_err();
            assert_eq!(error.kind(), kind, "{name}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named() {
        let nowhere = output(Path::new("/nowhere/r.json"), false).unwrap();
        let error = ReportFile::create(&nowhere).unwrap_err();
        assert_eq!(error.to_string(), "--report /nowhere/r.json");
        let full = output(Path::new("/dev/full"), false).unwrap();
        let full = ReportFile::create(&full).unwrap();
        let error = full.write(&LedgerReport::default()).unwrap_err();
        assert_eq!(error.to_string(), "--report /dev/full");
    }

    /// A cause declared by a driver or stage has a key of its name, as any other.
    #[test]
    fn a_declared_cause_is_reported() {
        let own = pollux_pmd::Cause::declare("of-a-stage", "for a reason of its own").unwrap();
        let mut tally = pollux_pmd::Tally::new();
        tally.count_from_wire(5, 320);
        tally.count_dropped(own, 2);
        tally.count_dropped(pollux_pmd::Cause::Late, 3);
        let report = LedgerReport::from(tally.view().balance());
        let expected = [("late".into(), 3), ("of-a-stage".into(), 2)].into();
        assert_eq!((&report.dropped, report.balanced), (&expected, true));
        // Another process has one of the causes, and does not balance.
        let mut sum = report.clone();
        sum.add(&LedgerReport {
            from_wire: 4,
            delivered: 2,
            dropped: [("late".into(), 1)].into(),
            balanced: false,
        });
        assert_eq!(sum.from_wire, report.from_wire + 4);
        assert_eq!(sum.delivered, report.delivered + 2);
        assert_eq!((sum.dropped["late"], sum.dropped["of-a-stage"]), (4, 2));
        assert!(!sum.balanced);
    }

    /// Another reader sees no report, or the complete one.
    #[test]
    fn a_report_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        let report = || ReportFile::create(&output(&path, false).unwrap()).unwrap();
        let file = report();
        assert!(!path.exists());
        assert!(names(folder.path())[0].starts_with(".r.json."));
        file.write(&LedgerReport::default()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("}\n"), "{text}");
        assert_eq!(names(folder.path()), ["r.json"]);
        let plain = folder.path().join("plain");
        File::create(&plain).unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
        // A run without a report leaves no file.
        fs::remove_file(&path).unwrap();
        drop(report());
        assert_eq!(names(folder.path()), ["plain"]);
    }

    #[test]
    fn a_file_that_comes_during_the_run_is_kept_beside_the_report() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        let file = ReportFile::create(&output(&path, false).unwrap()).unwrap();
        fs::write(&path, "another").unwrap();
        let message = file.write(&LedgerReport::default()).unwrap_err();
        let message = message.to_string();
        let (_, kept) = message.split_once("the report is in ").unwrap();
        assert!(fs::read_to_string(kept).unwrap().contains("balanced"));
        assert_eq!(fs::read(&path).unwrap(), b"another");
        // Through a link, with --force.
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let file = ReportFile::create(&output(&link, true).unwrap()).unwrap();
        file.write(&LedgerReport::default()).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("balanced"));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
