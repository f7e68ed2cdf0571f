//! Test support: a synthetic machine.

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::must_use_candidate
)]

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use crate::Sys;

/// A folder that replaces `/`.
pub struct Tree(TempDir);

impl Tree {
    /// An empty one.
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The view of it.
    pub fn sys(&self) -> Sys {
        Sys::new(self.0.path())
    }

    /// Adds a file, and the folders above it.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.sys().path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Adds a folder, and those above it.
    pub fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.sys().path(path)).unwrap();
        self
    }

    /// Adds an entry that no process, not even root, can read as a file.
    pub fn unreadable(&self, path: &str) -> &Self {
        self.folder(path)
    }

    /// Adds a symbolic link; only the last part of its target matters.
    pub fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.sys().path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}
