//! Commands of the program, their reports and their processes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Time-outs for a busy machine: nothing is sent again unless it was lost.
pub const PATIENT: &str = "[times]\ntimeout_us = 5_000_000\nsilence_us = 60_000_000\n";

/// As those, with signs of life that are repeated soon: members start in any order.
pub const SLOW: &str = "[times]\ntimeout_us = 500_000\nsilence_us = 20_000_000\n";

/// Time-outs for runs that lose members.
pub const QUICK: &str = "[times]\ntimeout_us = 200_000\nsilence_us = 1_000_000\n";

/// Longest time that a test waits for something.
pub const LONG: Duration = Duration::from_mins(1);

/// A farm has the machine for itself: one at a time.
pub static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

pub fn read(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// A command of the program, with a configuration in a file of its own.
pub fn farm(folder: &Path, config: &str, args: &str) -> Command {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("farm{number}.toml"));
    fs::write(&path, config).unwrap();
    let mut args = args.split_whitespace();
    let mut command = Command::new(env!("CARGO_BIN_EXE_farm"));
    command.args(args.next()).arg("--config").arg(path);
    command.args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process of the program, which does not outlive its test.
pub struct Process(Option<Child>);

impl Process {
    pub fn start(mut command: Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    pub fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    pub fn wait_with_output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn output(config: &str, args: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    farm(folder.path(), config, args).output().unwrap()
}

pub fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits until something is there.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < LONG, "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The child processes of a process (proc(5)), in the order of their start.
pub fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let list = fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// What must hold in every run: all events built and decided, once and in order.
pub fn holds(report: &Value) {
    let events = &report["events"];
    for key in ["built", "decided"] {
        assert_eq!(events[key], events["triggered"], "{key}");
    }
    assert_eq!((number(&events["lost"]), number(&events["twice"])), (0, 0));
    assert_eq!(events["in_order"], true);
    assert_eq!(report["messages"]["left"], 0);
    assert_eq!(report["payload"]["wrong"], 0);
    assert_eq!(report["ledger"]["balanced"], true);
}

/// An address that no server listens on.
pub fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
}

/// The answer of a server, once it listens.
pub fn ask(address: &str, path: &str) -> String {
    let mut stream = wait_for("server", || TcpStream::connect(address).ok());
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
