//! Retries while the kernel still holds a queue.

use std::io;
use std::time::{Duration, Instant};

/// How long a NIC's queue that was in use is tried again. The kernel frees a queue when the last
/// socket on it is closed, but does so in the background (xp_release_deferred), and after the last
/// frame that was sent from there is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tries again while the kernel says that something is in use, for as long as one who has just
/// stopped may need to be gone.
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
