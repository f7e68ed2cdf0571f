//! Doorbells: notifications from one side of a ring to the other.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

/// Doorbell that is rung when the other side has requested notifications (virtio 1.2 sections
/// 2.7.10 and 2.8.13).
#[derive(Debug, Default)]
pub(crate) enum Doorbell<N = Infallible> {
    /// None: the other side polls.
    #[default]
    None,
    /// An eventfd: vhost's kick or call.
    Event(OwnedFd),
    /// A register of the device.
    Register(N),
}

/// A doorbell register of a device's queue (virtio 1.2 section 4.1.5.2).
pub(crate) trait Notify: Send {
    /// Writes the register, after all earlier writes to memory.
    fn notify(&self);
}

/// For sides that are not a device with registers.
impl Notify for Infallible {
    fn notify(&self) {
        match *self {}
    }
}

impl<N: Notify> Doorbell<N> {
    /// Whether notifications are possible, so that the other side's request needs to be read.
    #[inline(always)]
    pub(super) fn can_ring(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Called after a publication: rings if the other side requests it.
    #[inline(never)]
    pub(super) fn after_publication(&self, listens: impl FnOnce() -> bool) {
        // The one store that must not pass a later load: either this side sees that the other one
        // has requested notifications, or the other side, after the fence of its own that it needs
        // before it sleeps, sees the publication (sections 2.7.13.4.1 and 2.8.21.3).
        fence(SeqCst);
        if !listens() {
            return;
        }
        match self {
            Self::None => {}
            Self::Event(fd) => {
                // The write fails only if the counter is at its maximum, or the file is not an
                // eventfd.
                let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
            }
            Self::Register(register) => register.notify(),
        }
    }
}
