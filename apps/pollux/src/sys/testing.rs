//! Test support: a synthetic machine.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::Sys;

/// A folder that replaces `/`.
pub(crate) struct Tree(TempDir);

impl Tree {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn sys(&self) -> Sys {
        Sys::new(self.0.path())
    }

    /// Adds a file, and the folders above it.
    pub(crate) fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.sys().path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.sys().path(path)).unwrap();
        self
    }

    /// Adds an entry that no process, not even root, can read as a file.
    pub(crate) fn unreadable(&self, path: &str) -> &Self {
        self.folder(path)
    }

    /// Adds a symbolic link; only the last part of its target matters.
    pub(crate) fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.sys().path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }
}
