//! Retries while the kernel still holds a queue.

use std::io;
use std::time::{Duration, Instant};

/// Time for which a busy queue of the NIC is retried. The kernel frees a queue when the last socket
/// on it is closed, but does so in the background (xp_release_deferred), and after the last frame
/// sent from there has completed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Retries while the kernel reports a resource as busy, for as long as a program that has just
/// stopped may need to release it.
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && began.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}
