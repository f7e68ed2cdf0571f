//! The one door to atomics: the real ones, or loom's when the crate is built with `--cfg loom`.
//!
//! Decisive orderings are written `ordering("spsc-tail-store", Release)`. In a real build that is the
//! ordering itself, at compile time. Under loom a test can switch one site to a mutant and must
//! then see its model fail: a model that passes whatever the ordering would prove nothing.

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, atomic};
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
    mutant::active() == Some(site)
}

/// Busy polls before a waiter suspects that the core it waits for runs somebody else. A peer that
/// is running needs the time of one copy, far below this (some 5 us).
#[cfg(not(loom))]
const SPINS: u32 = 128;

/// Waits until `ready`: first busy, then by giving the core away, as the peer was preempted in
/// the middle of its own copy and may need this very core to finish.
#[cfg(not(loom))]
#[inline]
pub(crate) fn wait_until(mut ready: impl FnMut() -> bool) {
    for _ in 0..SPINS {
        if ready() {
            return;
        }
        core::hint::spin_loop();
    }
    while !ready() {
        std::thread::yield_now();
    }
}

/// Waits until `ready`; each poll lets the other threads of the model go on.
#[cfg(loom)]
pub(crate) fn wait_until(mut ready: impl FnMut() -> bool) {
    while !ready() {
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

    /// Makes `site` wrong, or none, in the models that this thread runs from now on.
    pub fn set(site: Option<&'static str>) {
        ACTIVE.set(site);
    }

    pub(super) fn active() -> Option<&'static str> {
        ACTIVE.get()
    }
}
