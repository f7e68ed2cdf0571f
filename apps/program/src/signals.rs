//! How programs are told from outside to stop, or to read their configuration again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pollux_pmd::lcore::StopFlag;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// A second signal has asked for a quick end.
static HURRIED: AtomicBool = AtomicBool::new(false);

/// How long the end of a hurried program waits for anything that does not move.
const HURRY: Duration = Duration::from_millis(500);

/// A flag that SIGINT and SIGTERM set, so that loops come to their end in order. A second signal
/// hurries that end ([`patience`]); files and reports are still completed as far as they can be. A
/// third one ends the program at once, with status 1 and without a report. Signals that come so close
/// together that the system passes on one of them count as one.
///
/// # Errors
/// The system's refusal to have signals handled.
pub fn stop_on_signals() -> io::Result<StopFlag> {
    let (stop, asks) = (StopFlag::new(), [SIGINT, SIGTERM]);
    for signal in asks {
        flag::register(signal, stop.shared())?;
    }
    let mut signals = Signals::new(asks)?;
    let count = move || {
        for (n, _) in (1..).zip(signals.forever()) {
            match n {
                1 => {}
                // Relaxed: nothing comes with it but the wish.
                2 => HURRIED.store(true, Ordering::Relaxed),
                _ => low_level::exit(1),
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(count)?;
    Ok(stop)
}

/// How long the end of the program waits for something that does not move: as long as it says, or
/// half a second once a second signal has come.
#[must_use]
pub fn patience(usually: Duration) -> Duration {
    if HURRIED.load(Ordering::Relaxed) {
        usually.min(HURRY)
    } else {
        usually
    }
}

/// Whether a program was asked to read its configuration again.
#[derive(Clone, Debug, Default)]
pub struct Reload(Arc<AtomicBool>);

impl Reload {
    /// Asks for it, as the signal does.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

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
