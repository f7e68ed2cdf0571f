//! How a process of a run is, and how it ended.

use std::fmt::{self, Display};
use std::fs;

use serde::Serialize;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As it should.
    Ended,
    /// By a signal that was not ours.
    Killed(i32),
    /// It stood still at the end of the run, and was killed.
    Stopped,
    /// The same, and it had never opened its port.
    Unopened,
    /// By itself, before the end.
    Exited(i32),
}

/// A process in the report.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessReport {
    pub pid: u32,
    /// Its members.
    pub members: String,
    /// How it ended.
    pub end: String,
    /// Whether its members were lost in the run.
    pub lost: bool,
}

impl Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("ended"),
            Self::Killed(signal) => write!(f, "was killed by signal {signal}"),
            Self::Stopped => f.write_str("stood still and was killed"),
            Self::Unopened => f.write_str("never opened its port and was killed"),
            Self::Exited(status) => write!(f, "ended with status {status}"),
        }
    }
}

/// Whether a process is stopped by a signal (proc(5), the state of `/proc/PID/stat`).
pub fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in brackets before it may have any character.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| state.starts_with(['T', 't']))
}
