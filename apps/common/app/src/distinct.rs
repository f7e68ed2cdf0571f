//! Files of a run that must be different ones: what is written, and what is read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Result, bail};
use pollux_pmd::PortSpec;

/// Links that are followed to a file that does not exist yet; the kernel follows 40.
const MAX_LINKS: usize = 40;

/// A file that a program reads or writes.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// The option and the path, for messages.
    name: String,
    path: PathBuf,
    is_written: bool,
}

impl NamedFile {
    /// A file that is read, by the option that names it.
    #[must_use]
    pub fn read(option: &str, path: &Path) -> Self {
        Self {
            name: format!("{option} {}", path.display()),
            path: path.to_owned(),
            is_written: false,
        }
    }

    /// A file that is written, by its name in messages.
    #[must_use]
    pub fn written(name: String, path: &Path) -> Self {
        Self {
            name,
            path: path.to_owned(),
            is_written: true,
        }
    }

    /// The recordings that a port reads and writes.
    #[must_use]
    pub fn of_port(spec: &str) -> Vec<Self> {
        let parsed = spec.parse::<PortSpec>().ok();
        let parsed = parsed.filter(|spec| spec.driver() == "pcap");
        let Some(parsed) = parsed else {
            return Vec::new();
        };
        let file = |key, is_written| {
            let path = parsed.option(key)?;
            Some(Self {
                name: format!("port {spec}"),
                path: path.into(),
                is_written,
            })
        };
        let files = [file("rx", false), file("tx", true)];
        files.into_iter().flatten().collect()
    }
}

/// What a file is, by whatever name.
#[derive(PartialEq, Eq)]
enum Identity {
    /// Device and inode of a file that exists.
    Existing(u64, u64),
    /// Path of a file that does not: of its folder without links, and its name.
    New(PathBuf),
}

impl Identity {
    /// `None` of a device, a pipe or a folder, which several outputs may share or which none replaces.
    fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            _ if is_special(path) => None,
            Ok(found) => Some(Self::Existing(found.dev(), found.ino())),
            Err(_) => Some(Self::New(target(path))),
        }
    }
}

/// Whether the path is no file on a disk: a device, a pipe, a socket, or a descriptor that is open
/// already. Writing there overwrites nothing.
pub(crate) fn is_special(path: &Path) -> bool {
    let open = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"];
    open.iter().any(|open| path.starts_with(open))
        || fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// The file that is created under a path, behind links that lead nowhere yet.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    let path = absolute(&path).unwrap_or(path);
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match folder.zip(path.file_name()) {
        Some((folder, name)) => folder.join(name),
        None => path,
    }
}

/// Refuses a file that is written and that another of these options names too: by the same path, by
/// another one, or by a link.
///
/// # Errors
/// Both options, and what to do.
pub fn expect_distinct(files: &[NamedFile]) -> Result<()> {
    let identities: Vec<_> = files.iter().map(|file| Identity::of(&file.path)).collect();
    for (n, file) in files.iter().enumerate() {
        let same = |&other: &usize| identities[n].is_some() && identities[other] == identities[n];
        for other in (0..n).filter(same).map(|other| &files[other]) {
            match (other.is_written, file.is_written) {
                (true, true) => bail!(
                    "{} and {} name the same file: give each a file of its own",
                    other.name,
                    file.name
                ),
                (true, false) => return Err(overwritten(other, file)),
                (false, true) => return Err(overwritten(file, other)),
                (false, false) => {}
            }
        }
    }
    Ok(())
}

fn overwritten(written: &NamedFile, read: &NamedFile) -> anyhow::Error {
    anyhow::anyhow!(
        "{} would overwrite {}, which is read: give another name",
        written.name,
        read.name
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::{Output, Overwrite};

    fn written(path: &Path) -> NamedFile {
        let output = Output::new("--out", path, Overwrite { force: true });
        output.unwrap().file()
    }

    #[test]
    fn a_file_is_the_same_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("old"), "old").unwrap();
        fs::hard_link(path("old"), path("hard")).unwrap();
        symlink("old", path("soft")).unwrap();
        symlink("new", path("nowhere")).unwrap();
        symlink("nowhere", path("farther")).unwrap();
        symlink(".", path("folder")).unwrap();
        let same = [
            ("old", "old"),
            ("old", "./old"),
            ("old", "hard"),
            ("old", "soft"),
            ("old", "folder/old"),
            ("new", "new"),
            ("new", "folder/new"),
            ("new", "nowhere"),
            ("nowhere", "farther"),
        ];
        for (one, other) in same {
            let (one, other) = (path(one), path(other));
            let both = [written(&one), written(&other)];
            let error = expect_distinct(&both).unwrap_err().to_string();
            assert!(error.contains("name the same file"), "{error}");
            let input = NamedFile::read("--config", &one);
            for files in [[input.clone(), written(&other)], [written(&other), input]] {
                let error = expect_distinct(&files).unwrap_err().to_string();
                let expected = format!(
                    "--out {} would overwrite --config {}",
                    other.display(),
                    one.display()
                );
                assert!(error.starts_with(&expected), "{error}");
            }
        }
        let read = NamedFile::read("--mask", &path("old"));
        expect_distinct(&[read.clone(), read.clone(), written(&path("new"))]).unwrap();
        expect_distinct(&[written(&path("new")), written(&path("newer"))]).unwrap();
        let null = Path::new("/dev/null");
        expect_distinct(&[written(null), written(null), NamedFile::read("--raw", null)]).unwrap();
        let port = format!("pcap:rx={},pace=fast", path("hard").display());
        let files = [NamedFile::of_port(&port), vec![written(&path("old"))]].concat();
        let error = expect_distinct(&files).unwrap_err().to_string();
        assert!(error.contains("port pcap:rx="), "{error}");
        assert!(NamedFile::of_port("loopback").is_empty());
    }
}
