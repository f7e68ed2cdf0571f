//! `image-stream manage` with nodes over Unix sockets: the program itself, and nodes on threads of the
//! test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod nodes;
mod runs;
mod trouble;

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Long enough for any machine.
const LONG: Duration = Duration::from_mins(1);

/// Sockets, configuration and report of a test.
struct Bench {
    folder: tempfile::TempDir,
}

/// How the manager ended.
struct Ended {
    status: Option<i32>,
    /// Standard error.
    messages: String,
    report: Option<Value>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the manager of a source and receivers. Names of nodes are those of their sockets,
    /// or TCP addresses.
    fn manage(&self, top: &str, source: &str, receivers: &[(&str, &str)]) -> Manager<'_> {
        let control = |name: &str| {
            let path = self.path(name).display().to_string();
            let control = if name.contains(':') { name } else { &path };
            format!("name = \"{name}\"\ncontrol = \"{control}\"\n")
        };
        let mut config = format!("{top}\n[source]\n{}{source}\n", control("source"));
        for (name, rest) in receivers {
            let _ = write!(config, "[[receiver]]\n{}{rest}\n", control(name));
        }
        let file = self.path("manage.toml");
        fs::write(&file, config).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_image-stream"))
            .args(["manage", "--config", file.to_str().unwrap()])
            .args(["--report", self.path("report.json").to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Manager { child, bench: self }
    }
}

/// The running program.
struct Manager<'a> {
    child: Child,
    bench: &'a Bench,
}

impl Manager<'_> {
    fn interrupt(&self) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().unwrap();
        assert!(sent.success());
    }

    fn wait(mut self) -> Ended {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < LONG, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut messages = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut messages).unwrap();
        Ended {
            status: status.code(),
            messages,
            report: read(&self.bench.path("report.json")),
        }
    }
}

/// A test that fails leaves no program behind.
impl Drop for Manager<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

impl Ended {
    /// The report of a program that ended with this status.
    #[track_caller]
    fn report(self, status: i32) -> Value {
        assert_eq!(self.status, Some(status), "{}", self.messages);
        self.report.expect("a report")
    }

    /// Nothing was started: there are messages, and no report.
    #[track_caller]
    fn refused(self, status: i32, said: &[&str]) {
        assert_eq!(self.status, Some(status), "{}", self.messages);
        for said in said {
            assert!(self.messages.contains(said), "{said}: {}", self.messages);
        }
        assert!(self.report.is_none());
    }
}

/// Waits until it is so.
#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
