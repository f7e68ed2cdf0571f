//! Signals that stop a program or make it read its configuration again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pollux_pmd::lcore::StopFlag;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// Set by a second signal: the program must end quickly.
static HURRIED: AtomicBool = AtomicBool::new(false);

/// Longest wait for a component without progress, once a second signal has arrived.
const HURRY: Duration = Duration::from_millis(500);

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set, so that loops end in order. SIGHUP is what a
/// terminal sends when it is closed; a process that was started to ignore it (`nohup`) goes on doing so.
/// A second signal shortens the waits of that end ([`patience`]); files and reports are still completed as far as possible.
/// A third signal ends the program at once, with status 1 and without a report. Signals that follow
/// each other so closely that the system delivers one of them count as one.
///
/// # Errors
/// The system's refusal to have signals handled.
pub fn stop_on_signals() -> io::Result<StopFlag> {
    let hangup = Some(SIGHUP).filter(|_| !ignores_hangup());
    stop_on(
        &[SIGINT, SIGTERM]
            .into_iter()
            .chain(hangup)
            .collect::<Vec<_>>(),
    )
}

/// As [`stop_on_signals`], but SIGHUP, the usual request to a service to read its configuration again,
/// requests a reload.
///
/// # Errors
/// The system's refusal to have signals handled.
pub fn stop_or_reload_on_signals() -> io::Result<(StopFlag, Reload)> {
    let reload = Reload::default();
    flag::register(SIGHUP, Arc::clone(&reload.0))?;
    Ok((stop_on(&[SIGINT, SIGTERM])?, reload))
}

/// Whether the process ignores SIGHUP.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    ignored.is_some_and(|set| set & 1 << (SIGHUP - 1) != 0)
}

fn stop_on(numbers: &[i32]) -> io::Result<StopFlag> {
    let stop = StopFlag::new();
    for &signal in numbers {
        flag::register(signal, stop.shared())?;
    }
    let mut signals = Signals::new(numbers)?;
    let count = move || {
        for (n, _) in (1..).zip(signals.forever()) {
            match n {
                1 => {}
                // Relaxed: the flag publishes no other data.
                2 => HURRIED.store(true, Ordering::Relaxed),
                _ => low_level::exit(1),
            }
        }
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(count)?;
    Ok(stop)
}

/// Time limit of a wait for a component without progress at the end of a program: the given one, or
/// half a second after a second signal.
#[must_use]
pub fn patience(usually: Duration) -> Duration {
    if HURRIED.load(Ordering::Relaxed) {
        usually.min(HURRY)
    } else {
        usually
    }
}

/// Whether a reload of the configuration was requested.
#[derive(Clone, Debug, Default)]
pub struct Reload(Arc<AtomicBool>);

impl Reload {
    /// Requests a reload, as the signal does.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a reload was requested since the last call.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        // Relaxed: the flag publishes no other data.
        self.0.swap(false, Ordering::Relaxed)
    }
}
