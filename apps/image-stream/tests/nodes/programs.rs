//! The programs of a test, and what they leave.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_pmd_testkit::netns::{Cable, Namespace};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Long enough for any machine.
const LONG: Duration = Duration::from_mins(1);

/// Images are late after a time that no busy machine needs.
const DETECTOR: &str = "[detector]\ninterfaces = 2\ntimeout_us = 5000000\n";

/// A busy machine may let a node wait.
const PATIENT: &str = "reply_timeout_s = 40.0";

/// The two ends of a cable, and a folder.
pub(crate) struct Bench {
    cable: Cable,
    pub(crate) folder: tempfile::TempDir,
    /// Programs of other tests would take the CPUs.
    _alone: MutexGuard<'static, ()>,
}

impl Bench {
    /// `None`, and the reason on stdout, where the programs or namespaces cannot be had.
    pub(crate) fn new() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !emulator().exists() {
            println!(
                "skipped: no pollux-emulator beside image-stream: cargo build -p pollux-emulator"
            );
            return None;
        }
        Some(Self {
            cable: Cable::bare(9000)?,
            folder: tempfile::tempdir().unwrap(),
            _alone: alone,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, at: Option<&Namespace>, program: &Path, name: &str, words: &[&str]) -> Node {
        let mut command = match at {
            Some(at) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", at.name()]).arg(program);
                command
            }
            None => Command::new(program),
        };
        let log = self.path(&format!("{name}.log"));
        let child = command
            .args(words)
            .current_dir(self.folder.path())
            .env_remove("RUST_LOG")
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Node { child, log }
    }

    /// The source, at the socket `source`. It sends as many images as a run asks for.
    pub(crate) fn source(&self, more: &[&str]) -> Node {
        self.source_through("af_packet:vb", more)
    }

    pub(crate) fn source_through(&self, port: &str, more: &[&str]) -> Node {
        let words = [
            &["images", port, "--interfaces", "2", "--stack", "3"][..],
            &["--control", "./source", "--report", "source-{n}.json"],
            more,
        ];
        let source = self.start(Some(&self.cable.b), &emulator(), "source", &words.concat());
        self.wait_for("source", source)
    }

    /// The receiver, at the socket `receiver`, with these tables in its configuration.
    pub(crate) fn receiver(&self, tables: &str) -> Node {
        fs::write(self.path("run.toml"), format!("{DETECTOR}{tables}")).unwrap();
        let words = [
            &[
                "--port",
                "af_packet:va",
                "--config",
                "run.toml",
                "--idle",
                "sleep",
            ][..],
            &[
                "--control",
                "./receiver",
                "--transfers",
                ".",
                "--report",
                "receiver-{n}.json",
            ],
        ];
        let receiver = self.start(Some(&self.cable.a), &program(), "receiver", &words.concat());
        self.wait_for("receiver", receiver)
    }

    fn wait_for(&self, socket: &str, mut node: Node) -> Node {
        node.wait_until("it does not listen", |_| {
            UnixStream::connect(self.path(socket)).is_ok()
        });
        node
    }

    /// A manager named so, with these keys of the source and these tables of the receiver.
    pub(crate) fn manager(&self, name: &str, top: &str, source: &str, receiver: &str) -> Node {
        let top = if top.is_empty() { PATIENT } else { top };
        let mut config = format!("{top}\n[source]\nname = \"source\"\ncontrol = \"./source\"\n");
        let _ = write!(config, "{source}\n[[receiver]]\nname = \"receiver\"\n");
        let _ = write!(config, "control = \"./receiver\"\n{receiver}\n");
        fs::write(self.path(&format!("{name}.toml")), config).unwrap();
        let (config, report) = (format!("{name}.toml"), format!("{name}.json"));
        let words = [
            "manage", "--config", &config, "--report", &report, "--force",
        ];
        self.start(None, &program(), name, &words)
    }

    /// A report.
    #[track_caller]
    pub(crate) fn report(&self, name: &str) -> Value {
        let text = fs::read(self.path(name)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// The reply of a node to a request.
    #[track_caller]
    pub(crate) fn ask(&self, node: &str, request: &str) -> Value {
        let mut stream = UnixStream::connect(self.path(node)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let line = format!("{{\"version\":1,\"request\":{request}}}\n");
        stream.write_all(line.as_bytes()).unwrap();
        let replies = BufReader::new(stream).lines().map(|line| line.unwrap());
        let replies = replies.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        let reply = replies.into_iter().find(|line| line["reply"].is_object());
        reply.unwrap()["reply"].clone()
    }

    /// What all programs have said.
    fn logs(&self) -> String {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let logs = paths.filter(|path| path.extension().is_some_and(|end| end == "log"));
        let read = |path: PathBuf| {
            format!(
                "{}:\n{}",
                path.display(),
                fs::read_to_string(&path).unwrap()
            )
        };
        logs.map(read).collect()
    }

    /// State and counts of a node.
    #[track_caller]
    pub(crate) fn status(&self, node: &str) -> Value {
        self.ask(node, "\"status\"")["status"].clone()
    }

    /// Waits until a node is in that state.
    #[track_caller]
    pub(crate) fn until(&self, node: &str, state: &str) {
        let begun = Instant::now();
        while self.status(node)["state"] != state {
            assert!(
                begun.elapsed() < LONG,
                "{node} is not {state}: {}\n{}",
                self.status(node),
                self.logs()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a node has sent, or built, so many images.
    #[track_caller]
    pub(crate) fn until_frames(&self, node: &str, frames: u64) {
        let begun = Instant::now();
        while self.status(node)["counts"]["frames"].as_u64() < Some(frames) {
            assert!(
                begun.elapsed() < LONG,
                "{node}: {}\n{}",
                self.status(node),
                self.logs()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_image-stream").into()
}

/// It is of another package, whose programs are in the same folder.
fn emulator() -> PathBuf {
    program().with_file_name("pollux-emulator")
}

/// A running program. A test that fails leaves none behind.
pub(crate) struct Node {
    child: Child,
    log: PathBuf,
}

impl Node {
    /// What it has said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for something while it runs.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            let runs = self.child.try_wait().unwrap().is_none();
            assert!(runs && begun.elapsed() < LONG, "{what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end with this status; what it has said.
    #[track_caller]
    pub(crate) fn ends(mut self, status: i32) -> String {
        let begun = Instant::now();
        let ended = loop {
            if let Some(ended) = self.child.try_wait().unwrap() {
                break ended;
            }
            assert!(begun.elapsed() < LONG, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(ended.code(), Some(status), "{}", self.log());
        self.log()
    }

    /// Ends it by SIGINT, in order.
    #[track_caller]
    pub(crate) fn interrupt(self) -> String {
        self.signal(Signal::INT);
        self.ends(0)
    }

    /// Ends it without a chance to say anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that was stopped is ended as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
