//! The machine that a program runs on: its interfaces and devices, the rights of the process, and the
//! ports that can be opened ([`catalogue`]).
//!
//! Everything is read from /proc and /sys below a root directory, which a test or `--root` replaces. All
//! content is untrusted: a file may be missing, unreadable, or hold anything.

pub mod catalogue;
pub mod ethtool;
pub mod net;
pub mod pci;
pub mod process;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Limit on the bytes read of one file; files of the kernel are far smaller.
const LONGEST: u64 = 1 << 20;

/// Reason why a property of the machine is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The kernel does not show it, or does not support it.
    Missing(String),
    /// It exists, but is unreadable or malformed.
    Unreadable(String),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "there is no {path}"),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

/// A view of /proc and /sys.
pub struct Sys {
    root: PathBuf,
}

impl Sys {
    /// A view below `root`; `/` is this machine.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether this is the machine that the program runs on, so that system calls apply to it as
    /// well.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Path below the root of a `/proc/...` or `/sys/...` path.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file, trimmed.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn text(&self, path: &str) -> Result<String, Unread> {
        let mut bytes = Vec::new();
        File::open(self.path(path))
            .and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Unread::Missing(path.into()),
                _ => Unread::Unreadable(format!("{path} cannot be read: {error}")),
            })?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The text of a file as a number, or another type.
    ///
    /// # Errors
    /// As of [`text`](Self::text), and text that is none.
    pub fn parse<T: FromStr>(&self, path: &str) -> Result<T, Unread> {
        let text = self.text(path)?;
        text.parse().map_err(|_| malformed(path, &text))
    }

    /// Names in a folder, shorter ones first, so that `cpu10` follows `cpu9`. Empty if the folder
    /// does not exist.
    #[must_use]
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten();
        let mut names: Vec<_> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        names
    }

    /// The numbers `N` of the entries `prefixN` of a folder, in order.
    #[must_use]
    pub fn numbered(&self, path: &str, prefix: &str) -> Vec<usize> {
        let number = |name: String| name.strip_prefix(prefix)?.parse().ok();
        self.names(path).into_iter().filter_map(number).collect()
    }

    /// Whether there is such a file.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The last component of a symbolic link's target: the name of a driver, or of a group.
    #[must_use]
    pub fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Writes an attribute with one write, as sysfs requires.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).open(self.path(path))?;
        file.write_all(text.as_bytes())
    }
}

/// The error for malformed text. The text is untrusted, so it is printed without terminal control
/// characters.
#[must_use]
pub fn malformed(path: &str, text: &str) -> Unread {
    let shown: String = text.chars().take(60).collect();
    Unread::Unreadable(format!("{path} holds {shown:?}"))
}

/// CPUs in the kernel's list format, as `parse_cpu_list` reads it: `0-3,8`.
#[must_use]
pub fn cpu_list(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |&(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn what_cannot_be_read_is_told_from_what_is_not_there() {
        let tree = Tree::new();
        tree.file("/proc/a", "12\n")
            .file("/proc/b", "\u{1b}[2Jx")
            .unreadable("/proc/c");
        let sys = tree.sys();
        assert_eq!(sys.parse("/proc/a"), Ok(12));
        let missing = sys.parse::<u32>("/proc/none").unwrap_err();
        assert_eq!(missing, Unread::Missing("/proc/none".into()));
        assert!(matches!(
            sys.parse::<u32>("/proc/a/below").unwrap_err(),
            Unread::Missing(_)
        ));
        let malformed = sys.parse::<u32>("/proc/b").unwrap_err().to_string();
        assert_eq!(malformed, r#"/proc/b holds "\u{1b}[2Jx""#);
        let unreadable = sys.text("/proc/c").unwrap_err().to_string();
        assert!(unreadable.starts_with("/proc/c cannot be read: "));
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpu_list(&[]), "");
        assert_eq!(cpu_list(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
    }
}
