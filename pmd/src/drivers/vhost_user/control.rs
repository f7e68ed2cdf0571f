//! Handle of a port's control thread, shared by its queues.

use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use super::connection::Stop;

/// A running control thread; stopped when it is dropped.
pub(super) struct Control {
    stop: Stop,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Control {
    pub(super) fn new(stop: Stop, thread: JoinHandle<()>) -> Self {
        Self {
            stop,
            thread: Mutex::new(Some(thread)),
        }
    }

    /// No thread: the caller runs the sessions.
    #[cfg(any(test, fuzzing))]
    pub(super) fn none() -> std::io::Result<Self> {
        Ok(Self {
            stop: Stop::new()?,
            thread: Mutex::new(None),
        })
    }

    /// Ends the current session, if any, and the thread. The rings are then out of their slots.
    pub(super) fn stop(&self) {
        self.stop.raise();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // A panic there has already been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop();
    }
}
