//! Values that belong to the process which made them, and not to its forked children.
//!
//! The memory of a pool is shared with a child that is forked, and its free list is not: a buffer that
//! the child frees would be freed in the parent's memory. A child therefore uses and drops nothing of
//! its parent's ports.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of forks between the first process of the family and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Identity of a process among its forked relatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The calling process. The first call registers a handler of forks.
    #[must_use]
    pub fn current() -> Self {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // SAFETY: the handler is a function of this library, which the C library forgets if the
            // library is unloaded. It increments an atomic, which a forked child may do.
            unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether the calling process is this one.
    #[must_use]
    #[inline]
    pub fn is_current(self) -> bool {
        // Relaxed: the child that writes it has one thread.
        FORKS.load(Ordering::Relaxed) == self.0
    }
}

unsafe extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A value of the process that made it. In a forked child it is out of reach, and never dropped.
#[derive(Debug)]
pub struct OwnProcess<T> {
    /// Empty only while it is dropped.
    value: Option<T>,
    process: Process,
}

impl<T> OwnProcess<T> {
    /// A value of this process.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            value: Some(value),
            process: Process::current(),
        }
    }

    /// The value; `None` in a forked child.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.process.is_current())
    }

    /// The value, to be changed; `None` in a forked child.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.process.is_current())
    }
}

impl<T> Drop for OwnProcess<T> {
    fn drop(&mut self) {
        if !self.process.is_current() {
            std::mem::forget(self.value.take());
        }
    }
}
