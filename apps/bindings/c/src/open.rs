//! `pollux_port`: an opened port, for as long as the process runs.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pollux_embed::{Account, EmbeddedPort, LedgerView, Owner, PortClock, Process};
use serde::Serialize;

use crate::refused::{Reason, Refused};
use crate::slots::Slots;

/// A port. It is opened by pollux_open, and its memory (some hundred bytes after pollux_close, and after
/// the last of its frames is back) stays to the end of the process, so that later misuse is counted.
#[expect(non_camel_case_types, reason = "the name in C")]
pub struct pollux_port {
    process: Process,
    owner: Owner,
    /// Empty when the port is closed and all its frames are back.
    open: Mutex<Option<Open>>,
    is_closed: AtomicBool,
    /// Frames in the program's hands, as of the last call.
    held: AtomicUsize,
    clock: PortClock,
    ledger: LedgerView,
    refused: Refused,
}

/// What a port has while it is open or its frames are out.
pub(crate) struct Open {
    pub(crate) port: EmbeddedPort,
    pub(crate) slots: Slots,
}

/// The ledger as JSON.
#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    account: Account,
    /// Frames in the program's hands.
    held: usize,
    refused: &'a Refused,
}

/// Keeps every port reachable, for those who look for lost memory.
static PORTS: Mutex<Vec<&'static pollux_port>> = Mutex::new(Vec::new());

impl pollux_port {
    pub(crate) fn new(port: EmbeddedPort) -> &'static Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (ledger, clock) = (port.ledger(), port.clock());
        let slots = Slots::new(number, port.buffers());
        let opened: &_ = Box::leak(Box::new(Self {
            process: Process::current(),
            owner: Owner::new(),
            open: Mutex::new(Some(Open { port, slots })),
            is_closed: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            clock,
            ledger,
            refused: Refused::default(),
        }));
        let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
        ports.push(opened);
        opened
    }

    #[cold]
    pub(crate) fn refuse(&self, reason: Reason) {
        self.refused.count(reason);
    }

    /// The port for a call of its owner. After it was closed, any thread is the owner of its frames.
    #[inline]
    pub(crate) fn claim(&self) -> Result<MutexGuard<'_, Option<Open>>, Reason> {
        let open = self.lock()?;
        if self.is_closed() || self.owner.claim() {
            Ok(open)
        } else {
            Err(Reason::OtherThread)
        }
    }

    /// The port for a call of any thread, if no other is in it. A port that is closed is waited for: calls
    /// of several threads that give its frames back are allowed, and short.
    #[inline]
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Option<Open>>, Reason> {
        if !self.process.is_current() {
            return Err(Reason::Forked);
        }
        match self.open.try_lock() {
            Ok(open) => Ok(open),
            // A call that a panic ended left the port in a valid state.
            Err(TryLockError::Poisoned(error)) => Ok(error.into_inner()),
            Err(TryLockError::WouldBlock) => self.wait_if_closed(),
        }
    }

    /// The port, which another thread is in, if it is closed.
    #[cold]
    fn wait_if_closed(&self) -> Result<MutexGuard<'_, Option<Open>>, Reason> {
        // A thread that knows of the close sees it here.
        if self.is_closed() {
            Ok(self.open.lock().unwrap_or_else(PoisonError::into_inner))
        } else {
            Err(Reason::OtherThread)
        }
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: the lock orders what depends on it.
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Closes the port. Its frames stay valid.
    pub(crate) fn close(&self) -> Result<(), Reason> {
        let mut open = self.lock()?;
        let Some(Open { port, .. }) = open.as_mut().filter(|_| !self.is_closed()) else {
            return Err(Reason::Closed);
        };
        port.sync_counters();
        // A failure to stop in order has its cause in the ledger.
        drop(port.close());
        self.is_closed.store(true, Ordering::Relaxed);
        self.release(&mut open);
        Ok(())
    }

    /// Releases what is left of a closed port when its last frame is back.
    #[inline]
    pub(crate) fn release(&self, open: &mut Option<Open>) {
        if self.is_closed() && open.as_ref().is_some_and(|open| open.slots.held() == 0) {
            *open = None;
        }
    }

    /// Notes how many frames are in the program's hands.
    #[inline]
    pub(crate) fn note(&self, slots: &Slots) {
        // Relaxed: a count, which orders nothing.
        self.held.store(slots.held(), Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> PortClock {
        self.clock
    }

    /// The ledger as JSON; an empty text if it cannot be written, which has no cause. Another thread
    /// than the owner does not enter the port, and so does not get in the owner's way.
    pub(crate) fn json(&self) -> String {
        if self.owner.is_here()
            && let Ok(mut open) = self.lock()
            && let Some(open) = open.as_mut()
        {
            open.port.sync_counters();
        }
        let json = Json {
            account: self.ledger.account(),
            held: self.held.load(Ordering::Relaxed),
            refused: &self.refused,
        };
        serde_json::to_string(&json).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use pollux_embed::Options;

    use super::*;
    use crate::frame::pollux_frame;

    #[test]
    fn a_closed_port_is_waited_for_and_an_open_one_is_not() {
        let options = Options {
            buffers: Some(64),
            data_room: Some(2048),
            ..Options::default()
        };
        let port = EmbeddedPort::open("loopback", &options).unwrap();
        let port = pollux_port::new(port);
        // A frame in the program's hands keeps what the port has.
        let mut frame = pollux_frame::NONE;
        let mut open = port.claim().unwrap();
        let inner = open.as_mut().unwrap();
        inner
            .slots
            .hand_out(inner.port.alloc(60).unwrap(), &mut frame);
        let enter = || port.claim().map(|open| open.is_some());
        let other = std::thread::spawn(enter);
        assert_eq!(other.join().unwrap(), Err(Reason::OtherThread));
        drop(open);

        port.close().unwrap();
        let open = port.claim().unwrap();
        let (sender, entered) = mpsc::channel();
        let other = std::thread::spawn(move || sender.send(enter()));
        let waits = entered.recv_timeout(Duration::from_millis(50));
        assert_eq!(waits, Err(mpsc::RecvTimeoutError::Timeout));
        drop(open);
        assert_eq!(entered.recv(), Ok(Ok(true)));
        other.join().unwrap().unwrap();
    }
}
