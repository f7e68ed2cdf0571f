//! The other programs of the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::support::text;

/// Another program of the workspace, never older than its sources. Where the whole workspace is
/// tested, it has been built beside this one. Otherwise it is built here, which takes its time: of
/// another choice of packages cargo compiles the dependencies anew, since they get other features.
pub(crate) fn program(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_pollux")).parent().unwrap();
    let program = folder.join(name);
    let built = fs::metadata(&program).and_then(|file| file.modified());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["apps", "pipelines", "pmd", "mempool"];
    let mut sources = folders.map(|part| newest_source(&root.join(part))).to_vec();
    // What is built of others, and how.
    sources.extend(["Cargo.lock", "Cargo.toml"].map(|file| written(&root.join(file))));
    if built.is_ok_and(|built| sources.iter().all(|&source| source <= built)) {
        return program;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", name, "--bin", name]);
    cargo.arg("--target-dir").arg(folder.parent().unwrap());
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    program
}

/// When the last of the sources of libraries and programs below a folder was written.
fn newest_source(folder: &Path) -> SystemTime {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let times = entries.map(|entry| {
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            let other = ["tests", "examples", "benches", "fuzz", "target"];
            let other = other.iter().any(|part| name == *part);
            return if other {
                SystemTime::UNIX_EPOCH
            } else {
                newest_source(&entry.path())
            };
        }
        written(&entry.path())
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

fn written(file: &Path) -> SystemTime {
    fs::metadata(file).unwrap().modified().unwrap()
}
