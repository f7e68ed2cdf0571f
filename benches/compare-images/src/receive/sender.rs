//! The sender, on a core of its own.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, park, spawn};

use anyhow::Result;

use super::packets::{BURST, WINDOW};

/// What sender and receiver know of each other.
#[derive(Default)]
pub(super) struct Shared {
    /// Packets that are to be sent, since the start.
    target: AtomicU64,
    /// Packets that were received.
    pub(super) received: AtomicU64,
    stop: AtomicBool,
}

/// A way to send packets.
pub(super) trait Transmit: Send + 'static {
    /// Sends `count` packets from number `first` on, at most [`BURST`].
    fn send(&mut self, first: u64, count: usize) -> Result<()>;
}

/// The thread of a sender, which waits between two turns.
pub(super) struct Sender {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Sender {
    /// Starts it on a core.
    pub(super) fn start(transmit: impl Transmit, core: usize) -> Self {
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = spawn(move || {
            core_affinity::set_for_current(core_affinity::CoreId { id: core });
            run(transmit, &of_thread)
        });
        Self {
            shared,
            thread: Some(thread),
        }
    }

    /// Has it send so many packets more.
    pub(super) fn send(&self, packets: u64) {
        self.shared.target.fetch_add(packets, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// What it shares with the receiver.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Why it ended, if it has.
    pub(super) fn failure(&mut self) -> String {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => match thread.join() {
                Ok(Err(why)) => format!(", since the sender ended: {why}"),
                _ => ", since the sender ended".into(),
            },
            None => String::new(),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Its failure has been reported by the turn that missed its packets.
            let _ = thread.join();
        }
    }
}

fn run(mut transmit: impl Transmit, shared: &Shared) -> Result<()> {
    let mut sent = 0;
    while !shared.stop.load(Ordering::Acquire) {
        let left = shared.target.load(Ordering::Acquire) - sent;
        let count = left.min(BURST as u64);
        if count == 0 {
            park();
        } else if sent + count > shared.received.load(Ordering::Acquire) + WINDOW {
            spin_loop();
        } else {
            transmit.send(sent, count as usize)?;
            sent += count;
        }
    }
    Ok(())
}
