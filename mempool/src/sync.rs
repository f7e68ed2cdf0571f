//! The one door to atomics: the real ones, or loom's when the crate is built with `--cfg loom`.
//!
//! Decisive orderings are written `ordering("spsc-tail-store", Release)`. In a real build that is the
//! ordering itself, at compile time. Under loom a test can switch one site to a mutant and must
//! then see its model fail: a model that passes with any ordering would prove nothing.

#[cfg(loom)]
pub(crate) use loom::sync::Arc;
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, atomic};

use atomic::Ordering;

/// The ordering at `site`: `correct`, unless a loom test made this site its mutant.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn ordering(_site: &str, correct: Ordering) -> Ordering {
    correct
}

/// The ordering at `site`: `correct`, unless a loom test made this site its mutant.
#[cfg(loom)]
pub(crate) fn ordering(site: &str, correct: Ordering) -> Ordering {
    if mutated(site) {
        Ordering::Relaxed
    } else {
        correct
    }
}

/// Whether a loom test asks for the wrong logic at `site`; never in a real build.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn mutated(_site: &str) -> bool {
    false
}

/// Whether a loom test asks for the wrong logic at `site`; never in a real build.
#[cfg(loom)]
pub(crate) fn mutated(site: &str) -> bool {
    mutant::active().is_some_and(|sites| sites.split('+').any(|active| active == site))
}

/// Busy polls before a waiter suspects that the core it waits for runs another task. A peer that
/// is running needs the time of one copy, far below this (some 5 us).
#[cfg(not(loom))]
const SPINS: u32 = 128;

/// Waits until `ready`: first busy, then by giving the core away, as the peer was preempted in
/// the middle of its own copy and may need this very core to finish.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn wait_until(mut ready: impl FnMut() -> bool) {
    #[cold]
    #[inline(never)]
    fn keep_waiting(mut ready: impl FnMut() -> bool) {
        for _ in 0..SPINS {
            core::hint::spin_loop();
            if ready() {
                return;
            }
        }
        while !ready() {
            std::thread::yield_now();
        }
    }
    if !ready() {
        keep_waiting(ready);
    }
}

/// Waits until `ready`; each poll lets the other threads of the model go on. Two waiters could
/// pass the turn to each other for ever, so the model is explored no further after a few polls
/// (it still runs to its end).
#[cfg(loom)]
pub fn wait_until(mut ready: impl FnMut() -> bool) {
    for polls in 0.. {
        if ready() {
            return;
        }
        if polls == 2 {
            loom::skip_branch();
        }
        loom::thread::yield_now();
    }
}

/// Which site is wrong on purpose. Per thread: loom runs all threads of a model on the thread of
/// the test, so that models may run side by side.
#[cfg(loom)]
pub mod mutant {
    use std::cell::Cell;

    std::thread_local! {
        static ACTIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Makes a site wrong, or several (`a+b`), or none, in the models that this thread runs from
    /// now on.
    pub fn set(sites: Option<&'static str>) {
        ACTIVE.set(sites);
    }

    pub(super) fn active() -> Option<&'static str> {
        ACTIVE.get()
    }
}

/// Loom's atomics, except for one of our own.
#[cfg(loom)]
pub(crate) mod atomic {
    pub(crate) use loom::sync::atomic::{Ordering, fence};

    /// Loom remembers one access for each atomic, and tries another order only for that one. A
    /// thread that loads before it stores (any exchange loop) hides the accesses of the others
    /// behind its own load: orders that can go wrong are never tried. So each access comes with a
    /// relaxed exchange of a second atomic, which orders nothing and hides nothing.
    #[derive(Debug)]
    pub(crate) struct AtomicUsize {
        value: loom::sync::atomic::AtomicUsize,
        access: loom::sync::atomic::AtomicUsize,
    }

    impl AtomicUsize {
        pub(crate) fn new(value: usize) -> Self {
            let [value, access] = [value, 0].map(loom::sync::atomic::AtomicUsize::new);
            Self { value, access }
        }

        fn accessed(&self) -> &loom::sync::atomic::AtomicUsize {
            self.access.swap(0, Ordering::Relaxed);
            &self.value
        }

        pub(crate) fn load(&self, order: Ordering) -> usize {
            self.accessed().load(order)
        }

        pub(crate) fn store(&self, value: usize, order: Ordering) {
            self.accessed().store(value, order);
        }

        pub(crate) fn compare_exchange_weak(
            &self,
            current: usize,
            new: usize,
            success: Ordering,
            failure: Ordering,
        ) -> Result<usize, usize> {
            self.accessed()
                .compare_exchange_weak(current, new, success, failure)
        }

        pub(crate) fn swap(&self, value: usize, order: Ordering) -> usize {
            self.accessed().swap(value, order)
        }

        pub(crate) fn fetch_add(&self, value: usize, order: Ordering) -> usize {
            self.accessed().fetch_add(value, order)
        }

        pub(crate) fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
            self.accessed().fetch_sub(value, order)
        }

        pub(crate) fn with_mut<R>(&mut self, f: impl FnOnce(&mut usize) -> R) -> R {
            self.value.with_mut(f)
        }
    }
}
