//! How one side tells the other that there is something in the ring.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

/// What is rung when the other side has asked for it (virtio 1.2 sections 2.7.10 and 2.8.13).
#[derive(Debug, Default)]
pub(crate) enum Doorbell<N = Infallible> {
    /// Nobody listens: the other side polls.
    #[default]
    None,
    /// An eventfd: vhost's kick or call.
    Event(OwnedFd),
    /// A register of the device.
    Register(N),
}

/// A register that is written to tell a device of a queue (virtio 1.2 section 4.1.5.2).
pub(crate) trait Notify: Send {
    /// Writes it, after all that was written to memory before.
    fn notify(&self);
}

/// There is none: the other side is no device with registers.
impl Notify for Infallible {
    fn notify(&self) {
        match *self {}
    }
}

impl<N: Notify> Doorbell<N> {
    /// Whether it makes sense to look at what the other side wants.
    #[inline(always)]
    pub(super) fn can_ring(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// After a publication: rings if the other side asks for it.
    #[inline(never)]
    pub(super) fn after_publication(&self, listens: impl FnOnce() -> bool) {
        // The one store that must not pass a later load: either we see that the other side has
        // begun to listen, or it sees, after the fence of its own that it needs before it sleeps,
        // what was published (sections 2.7.13.4.1 and 2.8.21.3).
        fence(SeqCst);
        if !listens() {
            return;
        }
        match self {
            Self::None => {}
            Self::Event(fd) => {
                // An eventfd refuses only when it has counted to 2^64, or is none.
                let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
            }
            Self::Register(register) => register.notify(),
        }
    }
}
