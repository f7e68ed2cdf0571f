//! How programs are told from outside to stop, or to read their configuration again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_pmd::lcore::StopFlag;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
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

/// Whether a program was asked to read its configuration again.
#[derive(Clone, Debug, Default)]
pub struct Reload(Arc<AtomicBool>);

impl Reload {
    /// Whether it was asked since the last call.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        // Relaxed: nothing comes with it but the wish.
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// SIGHUP, as services are told to read their configuration again. Without this it ends a program.
///
/// # Errors
/// The system's refusal to have the signal handled.
pub fn reload_on_hangup() -> io::Result<Reload> {
    let reload = Reload::default();
    flag::register(SIGHUP, Arc::clone(&reload.0))?;
    Ok(reload)
}
