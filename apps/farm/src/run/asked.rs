//! What a command line asks of a run, beside its configuration.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pollux_app::metrics;

use super::kill::Kill;

/// What a command line asks of a run.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The configuration file.
    pub file: Option<PathBuf>,
    pub events: Option<u64>,
    pub duration: Option<Duration>,
    pub seed: u64,
    /// Probability that a message is damaged.
    pub corrupt: f64,
    pub kill: Vec<Kill>,
    /// Microseconds that a node stands still.
    pub suspend: Option<u64>,
    pub metrics: metrics::Options,
    pub http: Option<SocketAddr>,
    pub quiet: bool,
}
