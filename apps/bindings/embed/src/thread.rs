//! The thread that may use a port.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Identity of a running thread. A new thread may have that of one that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(usize);

impl ThreadId {
    /// That of the calling thread; costs the address of a variable, and no call of the kernel.
    #[must_use]
    #[inline]
    pub fn current() -> Self {
        thread_local!(static HERE: u8 = const { 0 });
        Self(HERE.with(|here| std::ptr::from_ref(here).addr()))
    }
}

/// The thread that owns a port: the first that claims it.
#[derive(Debug, Default)]
pub struct Owner(AtomicUsize);

impl Owner {
    /// No owner yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Claims the port for the calling thread; returns whether the thread is the owner.
    #[inline]
    pub fn claim(&self) -> bool {
        let ThreadId(here) = ThreadId::current();
        // Relaxed: the identity alone is compared, and a thread sees its own store.
        let owner = self.0.load(Ordering::Relaxed);
        owner == here || (owner == 0 && self.take(here))
    }

    /// Whether the calling thread is the owner.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ThreadId::current().0
    }

    #[cold]
    fn take(&self, here: usize) -> bool {
        let (order, zero) = (Ordering::Relaxed, 0);
        self.0.compare_exchange(zero, here, order, order).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thread_is_the_owner() {
        let owner = Owner::new();
        assert!(!owner.is_here() && owner.claim() && owner.claim() && owner.is_here());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| owner.claim() || owner.is_here());
            assert!(!other.join().unwrap());
        });
        assert!(owner.claim());
    }
}
