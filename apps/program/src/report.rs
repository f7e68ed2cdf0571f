//! The report for machines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use pollux_pmd::Balance;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use serde::Serialize;

/// Where `--report FILE` goes. It is created before the run, so that a path which cannot be
/// written is told before it and not after.
#[derive(Debug)]
pub struct ReportFile {
    /// The option and the path.
    name: String,
    file: File,
}

impl ReportFile {
    /// Creates the file.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        Self::create_as("--report", path)
    }

    /// Creates the file of another option than `--report`.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn create_as(option: &str, path: &Path) -> anyhow::Result<Self> {
        let name = format!("{option} {}", path.display());
        match File::create(path) {
            Ok(file) => Ok(Self { name, file }),
            Err(error) => Err(anyhow::Error::new(error).context(name)),
        }
    }

    /// Writes the report as JSON.
    ///
    /// # Errors
    /// A disk that is full, say.
    pub fn write(mut self, report: &impl Serialize) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(report).map_err(io::Error::from);
        json.and_then(|json| writeln!(self.file, "{json}"))
            .context(self.name)
    }
}

/// Checks that a file could be written, or created, without touching it. A disk that is full is found
/// by writing alone.
///
/// # Errors
/// What the system would say to whoever opened it.
pub fn can_be_written(path: &Path) -> io::Result<()> {
    let writable = |path: &Path, rights: Access| {
        // As whoever opens it: with the effective user's rights.
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

/// The loss ledger in a report. Causes that dropped nothing are not there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LedgerReport {
    /// Frames that reached the ports.
    pub from_wire: u64,
    /// Frames that reached their consumers.
    pub delivered: u64,
    /// Lost frames by cause.
    pub dropped: BTreeMap<&'static str, u64>,
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
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
            balanced: balance.is_balanced(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
        let error = ReportFile::create(Path::new("/nowhere/r.json")).unwrap_err();
        assert_eq!(error.to_string(), "--report /nowhere/r.json");
        let full = ReportFile::create(Path::new("/dev/full")).unwrap();
        let error = full.write(&LedgerReport::default()).unwrap_err();
        assert_eq!(error.to_string(), "--report /dev/full");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        let file = ReportFile::create(&path).unwrap();
        file.write(&LedgerReport::default()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with("}\n"), "{text}");
    }
}
