//! A counter that one thread writes, or several by locked instructions, and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts without a locked instruction. Only one thread may write it at a time; a second writer
/// would make it lose counts (and nothing worse), so the types around it give the right to write
/// to one owner.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds `n`: a plain load and store.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Ordering::Relaxed);
    }

    /// Adds `n` where several threads do, and only so: a locked instruction, for what is rare.
    #[inline]
    pub fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Replaces the value.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The value now.
    #[must_use]
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
