//! The thread of a physical function that has virtual ones (VFs): it sleeps until the device
//! interrupts it, and answers them.
//!
//! A thread, as a VF's driver waits for about a second for each answer and gives up then, for good
//! (Linux's igbvf): a program that looks after its ports may do so more seldom, and a poll loop
//! must not write registers of others in between its bursts. An interrupt, as there is nothing to
//! poll for most of the time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::bus::Interrupts;

/// How long it sleeps at most: a device may lose an interrupt.
const SLEEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// A running thread; stopped when it is dropped.
pub(super) struct Housekeeper {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeper {
    /// Has `work` done at once, and whenever the vector has signalled.
    ///
    /// # Errors
    /// The system has no thread or no descriptor left.
    pub(super) fn start(
        interrupts: Arc<Interrupts>,
        vector: u16,
        mut work: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let stop = Arc::new(eventfd(0, flags)?);
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("igb".into())
            .spawn(move || {
                while {
                    work();
                    sleep(&stopped, interrupts.event(vector))
                } {}
            })?;
        let thread = Some(thread);
        Ok(Self { stop, thread })
    }
}

/// Sleeps until there may be something to do; false if there is to be no more.
fn sleep(stop: &OwnedFd, event: Option<BorrowedFd<'_>>) -> bool {
    let Some(event) = event else {
        return false;
    };
    let mut fds = [stop.as_fd(), event].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut fds, Some(&SLEEP)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => {
            tracing::error!("virtual functions are answered no more: cannot wait: {error}");
            return false;
        }
    }
    // The count is of no interest, and not being ready no mistake.
    let _ = rustix::io::read(event, &mut [0; 8]);
    fds.first().is_none_or(|stop| stop.revents().is_empty())
}

impl Drop for Housekeeper {
    fn drop(&mut self) {
        // It cannot fail: the counter is far from its end.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic there has been told already.
            let _ = thread.join();
        }
    }
}
