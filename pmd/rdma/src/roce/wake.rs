//! Wakes a program that sleeps until there is an event.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// An event descriptor, written only while the program sleeps.
pub(super) struct Wake {
    event: OwnedFd,
    is_asleep: AtomicBool,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self {
            event: eventfd(0, flags)?,
            is_asleep: AtomicBool::new(false),
        })
    }

    /// Wakes the program if it sleeps. After an event was written; enters the kernel only then.
    #[inline]
    pub(super) fn wake(&self) {
        // Pairs with the fence in `sleep`: either the program sees the event, or this its flag.
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed) {
            self.write();
        }
    }

    #[cold]
    fn write(&self) {
        self.is_asleep.store(false, Ordering::Relaxed);
        // Refused only if it is readable already.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    /// Sleeps until [`wake`](Self::wake), unless `is_ready` says that there is something already; for
    /// `timeout` at most.
    pub(super) fn sleep(&self, timeout: Option<Duration>, is_ready: impl FnOnce() -> bool) {
        self.is_asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence in `wake`.
        fence(Ordering::SeqCst);
        if !is_ready() {
            let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
            let mut fds = [PollFd::new(&self.event, PollFlags::IN)];
            // An interruption is a wake-up that finds nothing.
            let _ = poll(&mut fds, timeout.as_ref());
        }
        self.is_asleep.store(false, Ordering::Relaxed);
        // Refused if it was not written.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }
}
