//! A disk of a test's own that is soon full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Folder, Run, start_by};

/// A file system in memory, which only the program that runs on it sees: it goes with the program, so that
/// a file is copied out before.
pub(crate) struct SmallDisk {
    /// Where it is mounted.
    place: PathBuf,
    mount: String,
}

impl SmallDisk {
    /// A disk of so many bytes, as tmpfs(5) reads them (`300k`). `None`, with a message, where file systems
    /// cannot be mounted.
    pub(crate) fn new(folder: &Folder, size: &str) -> Option<Self> {
        let place = folder.path("disk");
        fs::create_dir_all(&place).unwrap();
        let mount = format!("mount -t tmpfs -o size={size} none {}", place.display());
        let tried = Command::new("unshare")
            .args(["--mount", "sh", "-c", &mount])
            .output();
        if !tried.is_ok_and(|tried| tried.status.success()) {
            println!("skipped: a file system of our own needs root");
            return None;
        }
        Some(Self { place, mount })
    }

    /// Path of a file on it.
    pub(crate) fn arg(&self, name: &str) -> String {
        self.place.join(name).display().to_string()
    }

    /// Runs the trigger to its end, and copies its file of this name.
    pub(crate) fn run(&self, arguments: &[&str], name: &str, copy: &Path) -> Run {
        let (mount, file) = (&self.mount, self.arg(name));
        let copy = copy.display();
        let script = format!("{mount} && {{ \"$@\"; code=$?; cp {file} {copy}; exit $code; }}");
        start_by(
            &["unshare", "--mount", "sh", "-c", &script, "sh"],
            arguments,
        )
        .wait()
    }
}
