//! Counters with one plain writer, or several writers with locked instructions, and any number of
//! readers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter without locked instructions. Only one thread may write it at a time; a second writer
/// would make it lose counts (and nothing worse), so the types that contain it give the right to
/// write to one owner.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds `n`: a plain load and store.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Ordering::Relaxed);
    }

    /// Adds `n` with a locked instruction, for counters with several writers; all writers must use
    /// it. For rare events.
    #[inline]
    pub fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Replaces the value.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The current value.
    #[must_use]
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
