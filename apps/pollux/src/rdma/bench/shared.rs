//! What the two loops of a measurement know of each other.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};

/// What the loops know of each other.
#[derive(Default)]
pub(super) struct Shared {
    /// The requester posts no more.
    is_over: AtomicBool,
    /// Loops that wait for nothing.
    idle: AtomicU32,
    has_failed: AtomicBool,
    /// Loops that have failed and why, in the order of time.
    failures: Mutex<Vec<String>>,
}

impl Shared {
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn wait_for_nothing(&self) {
        self.idle.fetch_add(1, Ordering::Release);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire) == 2
    }

    /// Whether one of the loops has failed.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub(super) fn fail(&self, role: &str, error: &anyhow::Error) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(format!("{role}: {error:#}"));
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// All failures: that of one end is mostly the cause of the other's.
    pub(super) fn check(&self) -> Result<()> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.is_empty() {
            return Ok(());
        }
        Err(anyhow!(failures.join("; ")))
    }
}
