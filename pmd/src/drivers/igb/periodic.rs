//! A thread that repeats work at a period.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A running thread; stopped when it is dropped.
pub(super) struct Periodic {
    /// Its drop ends the thread.
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Periodic {
    /// Starts a thread that does `work` once each period.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(
        period: Duration,
        mut work: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(0);
        let thread = std::thread::Builder::new()
            .name("igb-counters".into())
            .spawn(move || {
                while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                    work();
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_is_done_again_and_again_until_the_end() {
        let (done, seen) = channel();
        let periodic = Periodic::start(Duration::from_micros(100), move || done.send(()).unwrap());
        for _ in 0..3 {
            seen.recv().unwrap();
        }
        drop(periodic);
        // The thread has ended, and its end of the channel with it.
        while seen.try_recv().is_ok() {}
        assert!(seen.recv().is_err());
    }
}
