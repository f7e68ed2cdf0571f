//! Identification of a run.

use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

/// Identification of a run, on its page.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// Name of the machine.
    host: String,
    /// In seconds since 1970-01-01 UTC.
    started_unix_s: f64,
    /// Name of the configuration; null for the built-in one.
    config: Option<String>,
    /// Its number, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u32>,
}

impl About {
    /// A run on this machine.
    #[must_use]
    pub fn new(config: Option<&Path>, started: SystemTime, run: Option<u32>) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
        Self {
            host: host.unwrap_or_default().trim().to_owned(),
            started_unix_s: unix_s(started),
            config: config.map(|path| path.display().to_string()),
            run,
        }
    }
}

/// Seconds since 1970-01-01 UTC.
#[must_use]
pub fn unix_s(at: SystemTime) -> f64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
