//! How programs are stopped from outside.

use std::io;

use pollux_pmd::lcore::StopFlag;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A flag that SIGINT and SIGTERM set, so that loops come to their end in order. A second signal
/// ends a program that does not.
///
/// # Errors
/// The system's refusal to have signals handled.
pub fn stop_on_signals() -> io::Result<StopFlag> {
    let stop = StopFlag::new();
    for signal in [SIGINT, SIGTERM] {
        // In this order: only the second signal finds the flag set.
        flag::register_conditional_shutdown(signal, 1, stop.shared())?;
        flag::register(signal, stop.shared())?;
    }
    Ok(stop)
}
