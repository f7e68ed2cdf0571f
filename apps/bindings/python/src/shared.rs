//! What a port and its batches share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use pollux_embed::{EmbedError, EmbeddedPort, LedgerView, OwnProcess, Owner};

/// A port, behind a lock that no call waits for.
pub(crate) struct Shared {
    spec: String,
    port: OwnProcess<Mutex<EmbeddedPort>>,
    owner: Owner,
    is_stopped: AtomicBool,
    is_closed: AtomicBool,
    ledger: LedgerView,
}

impl Shared {
    pub(crate) fn new(port: EmbeddedPort) -> Self {
        Self {
            spec: port.spec().into(),
            ledger: port.ledger(),
            port: OwnProcess::new(Mutex::new(port)),
            owner: Owner::new(),
            is_stopped: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(crate) fn spec(&self) -> &str {
        &self.spec
    }

    pub(crate) fn ledger(&self) -> &LedgerView {
        &self.ledger
    }

    /// Ends the iterations over the port, on any thread.
    pub(crate) fn stop(&self) {
        // Relaxed: the flag alone is read.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Closes the port, unless a thread is in it.
    pub(crate) fn close(&self) -> Result<(), EmbedError> {
        let mut port = self.lock()?;
        self.is_closed.store(true, Ordering::Relaxed);
        self.stop();
        port.sync_counters();
        port.close()
    }

    /// The open port, for the thread that owns it.
    pub(crate) fn claim(&self) -> Result<MutexGuard<'_, EmbeddedPort>, EmbedError> {
        let port = self.lock()?;
        self.check_open()?;
        if self.owner.claim() {
            Ok(port)
        } else {
            Err(EmbedError::OtherThread {
                port: self.spec.clone(),
            })
        }
    }

    /// Whether the port is open.
    pub(crate) fn check_open(&self) -> Result<(), EmbedError> {
        if self.is_closed() {
            let port = self.spec.clone();
            return Err(EmbedError::Closed { port });
        }
        Ok(())
    }

    /// The port, if it belongs to this process and no thread is in it.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, EmbeddedPort>, EmbedError> {
        let port = || self.spec.clone();
        let own = self.port.get();
        let own = own.ok_or_else(|| EmbedError::Forked { port: port() })?;
        match own.try_lock() {
            Ok(guard) => Ok(guard),
            // A call that has ended by a panic left the port in a valid state.
            Err(TryLockError::Poisoned(error)) => Ok(error.into_inner()),
            Err(TryLockError::WouldBlock) => Err(EmbedError::OtherThread { port: port() }),
        }
    }
}
