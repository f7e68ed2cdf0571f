//! Log output of the programs.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// Logs to standard error: events at `level` (`error`, `warn`, `info`) and above, or those that the
/// variable `RUST_LOG` selects. Call it once, before anything logs.
pub fn log_to_stderr(level: &str) {
    // Levels by target. Filters by span or field need a compiler of regular expressions, and we have no spans.
    let selected = std::env::var("RUST_LOG")
        .ok()
        .and_then(|said| said.parse().ok());
    let filter: Targets = selected.unwrap_or_else(|| level.parse().unwrap_or_default());
    let output = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        // A write error is ignored: with the log closed there is no channel left to report it on.
        .log_internal_errors(false);
    tracing_subscriber::registry()
        .with(output)
        .with(filter)
        .init();
}
