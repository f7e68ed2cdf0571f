//! What loops share: of the standard library, or of loom where it models them.
//!
//! Orderings that decide are written `ordering("show", Release)`. A model can make one of them wrong, and
//! has to fail then: a model that passes with any ordering proves nothing.

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// A cell whose accesses loom can watch.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Reads by a pointer.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Writes by a pointer.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

/// The ordering at a site.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn ordering(_site: &str, correct: Ordering) -> Ordering {
    correct
}

/// The ordering at a site, unless a model makes it wrong.
#[cfg(loom)]
pub(crate) fn ordering(site: &str, correct: Ordering) -> Ordering {
    if mutant::is(site) {
        Ordering::Relaxed
    } else {
        correct
    }
}

/// A fence, unless a model leaves those of this site out.
#[cfg(loom)]
pub(crate) fn fence(order: Ordering) {
    if !mutant::is("fence") {
        loom::sync::atomic::fence(order);
    }
}

/// Which site is wrong on purpose. Of each thread: loom runs all threads of a model on the test's.
#[cfg(loom)]
pub(crate) mod mutant {
    use std::cell::Cell;

    std::thread_local! {
        static ACTIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    #[cfg(test)]
    pub(crate) fn set(site: Option<&'static str>) {
        ACTIVE.set(site);
    }

    pub(crate) fn is(site: &str) -> bool {
        ACTIVE.get() == Some(site)
    }
}

/// Stores with Release, before every load that is SeqCst and comes later. An exchange does both, and costs
/// less than a store and a fence.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn store_and_fence(_site: &str, to: &AtomicU64, value: u64) {
    to.swap(value, Ordering::SeqCst);
}

/// The same for loom, to which an exchange is no fence.
#[cfg(loom)]
pub(crate) fn store_and_fence(site: &str, to: &AtomicU64, value: u64) {
    to.store(value, ordering(site, Ordering::Release));
    fence(Ordering::SeqCst);
}

/// In a loop that waits for another thread, which may wait for this one's CPU.
pub(crate) fn relax() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

/// Runs a model, which has to hold, and to fail with each of the mutants.
#[cfg(all(test, loom))]
pub(crate) fn holds_but_for(mutants: &[&'static str], model: fn()) {
    let explore = || {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    };
    mutant::set(None);
    explore();
    for &site in mutants {
        mutant::set(Some(site));
        let outcome = std::panic::catch_unwind(explore);
        mutant::set(None);
        assert!(outcome.is_err(), "{site}: the model passes with it");
        println!("mutant {site}: found");
    }
}
