//! Runs the program, and makes what it runs on.

pub(crate) mod capture;
pub(crate) mod frames;
pub(crate) mod oracle;
pub(crate) mod reassembly;
pub(crate) mod small_disk;
pub(crate) mod wire;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const TRIGGER: &str = env!("CARGO_BIN_EXE_l0-trigger");

/// For runs that are not about their loop: it sleeps while nothing comes, and leaves its CPU to others.
/// Needs a port whose device wakes the loop.
pub(crate) const AT_REST: [&str; 2] = ["--idle", "sleep=1"];

/// No run of these tests lasts so long, unless it hangs.
const PATIENCE: Duration = Duration::from_mins(1);

/// For runs of which the loops spin for long: two at a time would only slow each other down.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number of CPUs that this process may use.
pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// A folder for the files of one test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The same, as an argument.
    pub(crate) fn arg(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().into()
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.arg(name)
    }
}

/// An ended run.
pub(crate) struct Run {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    report: Option<Value>,
}

impl Run {
    /// Checks the exit status.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        let Self {
            status,
            stdout,
            stderr,
            ..
        } = &self;
        assert_eq!(status.code(), Some(code), "{status}\n{stdout}\n{stderr}");
        self
    }

    /// The JSON report of a run that was asked for one; its ledger balances, whatever else is in it.
    #[track_caller]
    pub(crate) fn report(&self) -> &Value {
        let report = self.report.as_ref().expect("no report was written");
        assert_balanced(report);
        report
    }

    /// Checks that this is refused before anything is opened: status 2, nothing on the standard
    /// output, and the thing that is wrong named.
    #[track_caller]
    pub(crate) fn expect_usage(self, named: &[&str]) -> Self {
        let run = self.expect(2);
        assert_eq!(run.stdout, "");
        run.expect_message(named)
    }

    #[track_caller]
    pub(crate) fn expect_message(self, named: &[&str]) -> Self {
        for name in named {
            assert!(
                self.stderr.contains(name),
                "no `{name}` in: {}",
                self.stderr
            );
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

/// The loss ledger adds up, and says so.
#[track_caller]
pub(crate) fn assert_balanced(report: &Value) {
    let ledger = &report["ledger"];
    let dropped: u64 = drops(report).iter().map(|(_, n)| n).sum();
    assert_eq!(
        number(ledger, "from_wire"),
        number(ledger, "delivered") + dropped,
        "{ledger}"
    );
    assert_eq!(ledger["balanced"], true);
}

/// The causes for which frames were dropped, in the order of their names.
#[track_caller]
pub(crate) fn drops(report: &Value) -> Vec<(&str, u64)> {
    let dropped = report["ledger"]["dropped"].as_object().unwrap();
    dropped
        .iter()
        .map(|(cause, n)| (cause.as_str(), n.as_u64().unwrap()))
        .collect()
}

#[track_caller]
pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {value}"))
}

/// The sum of a field over all streams.
#[track_caller]
pub(crate) fn over_streams(report: &Value, key: &str) -> u64 {
    report["streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stream| number(stream, key))
        .sum()
}

/// A running program.
pub(crate) struct Running {
    child: Child,
    folder: Folder,
    started: Instant,
}

/// Starts the trigger, for a JSON report unless the arguments have their own.
pub(crate) fn start<S: AsRef<OsStr>>(arguments: &[S]) -> Running {
    start_by(&[], arguments)
}

/// Starts the trigger by way of another program, which is `by`, with its arguments.
pub(crate) fn start_by<S: AsRef<OsStr>>(by: &[&str], arguments: &[S]) -> Running {
    let folder = Folder::new();
    let mut words = by.iter().copied().chain([TRIGGER]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(arguments);
    if !arguments
        .iter()
        .any(|argument| argument.as_ref() == "--report")
    {
        command.arg("--report").arg(folder.path("report.json"));
    }
    // The output goes to files, so that a full pipe never stops the program.
    let child = command
        .stdin(Stdio::null())
        .stdout(File::create(folder.path("stdout")).unwrap())
        .stderr(File::create(folder.path("stderr")).unwrap())
        .env_remove("RUST_LOG")
        .spawn()
        .unwrap();
    Running {
        child,
        folder,
        started: Instant::now(),
    }
}

/// Runs the trigger to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Run {
    start(arguments).wait()
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path("stderr")).unwrap()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until something has happened, while the program runs.
    #[track_caller]
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        mut has_happened: impl FnMut(&mut Self) -> bool,
    ) {
        while !has_happened(self) {
            assert!(self.is_alive(), "ended before {what}: {}", self.stderr());
            self.be_patient();
        }
    }

    /// Waits until the program has said something on its standard error.
    #[track_caller]
    pub(crate) fn wait_for_message(&mut self, text: &str) {
        self.wait_until(text, |running| running.stderr().contains(text));
    }

    /// The page of metrics of a program that was started with `--metrics 127.0.0.1:0`; none when it
    /// has ended.
    #[track_caller]
    pub(crate) fn metrics(&mut self) -> Option<String> {
        let address = self.address("metrics at http://");
        let page = ask(&address, "/metrics")?;
        page.ends_with("# EOF\n").then_some(page)
    }

    /// Where a server listens, as the program has `said`.
    #[track_caller]
    pub(crate) fn address(&mut self, said: &str) -> String {
        self.wait_for_message(said);
        let stderr = self.stderr();
        let (_, url) = stderr.split_once(said).unwrap();
        url.split('/').next().unwrap().into()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args(["-s", name, &self.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
    }

    #[track_caller]
    fn be_patient(&mut self) {
        if self.started.elapsed() > PATIENCE {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
            panic!("hangs: {}", self.stderr());
        }
        std::thread::sleep(Duration::from_millis(5));
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Run {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            self.be_patient();
        };
        let read = |name| fs::read_to_string(self.folder.path(name)).unwrap();
        let report = fs::read_to_string(self.folder.path("report.json")).ok();
        Run {
            status,
            stdout: read("stdout"),
            stderr: read("stderr"),
            report: report.map(|json| serde_json::from_str(&json).unwrap()),
        }
    }
}

impl Drop for Running {
    /// A test that fails leaves no program behind.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What a server answers to a GET, with its head; nothing when it does not.
pub(crate) fn ask(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

pub(crate) fn pcap_port(path: impl AsRef<Path>) -> String {
    format!("pcap:rx={}", path.as_ref().display())
}
