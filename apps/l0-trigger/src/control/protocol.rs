//! The messages of the control socket (docs/formats/control.md).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Version of the protocol.
pub(super) const VERSION: u32 = 1;

/// Maximum length of a line, in bytes.
pub const LINE: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) version: u32,
    pub(super) command: Command,
    pub(super) run: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Command {
    Status,
    Start,
    Stop,
    Reload,
    Quit,
}

/// The answer to every line.
#[derive(Serialize)]
pub(super) struct Answer {
    pub(super) version: u32,
    pub(super) ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) state: Phase,
    pub(super) run: Option<u32>,
    /// Time since all resources of the run were opened.
    pub(super) uptime_s: Option<f64>,
    pub(super) events: Option<Events>,
    pub(super) last: Option<Last>,
}

/// Events of the current run so far.
#[derive(Serialize)]
pub(super) struct Events {
    pub(super) built: u64,
    pub(super) accepted: u64,
    pub(super) rejected: u64,
}

/// Result of the last run.
#[derive(Clone, Serialize)]
pub(super) struct Last {
    pub(super) run: u32,
    pub(super) ok: bool,
    /// As in its report; null for a failed run.
    pub(super) end: Option<&'static str>,
    pub(super) error: Option<String>,
    /// Null without a report, for example of a run that could not begin.
    pub(super) report: Option<PathBuf>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    #[default]
    Idle,
    /// Ports are being opened.
    Starting,
    Running,
    /// The run is stopping, and its files are being completed.
    Stopping,
}
