//! What programs log.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Logs to standard error what is at `level` (`error`, `warn`, `info`) or above, or what the
/// variable `RUST_LOG` asks for. To be called once, first.
pub fn log_to_stderr(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        // Where nobody reads what is logged, there is nowhere to say so either.
        .log_internal_errors(false)
        .init();
}
