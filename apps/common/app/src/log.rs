//! Log output of the programs.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Logs to standard error: events at `level` (`error`, `warn`, `info`) and above, or those that the
/// variable `RUST_LOG` selects. Call it once, before anything logs.
pub fn log_to_stderr(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        // A write error is ignored: with the log closed there is no channel left to report it on.
        .log_internal_errors(false)
        .init();
}
