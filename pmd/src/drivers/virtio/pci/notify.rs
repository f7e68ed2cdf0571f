//! The registers by which a device is told of its queues: virtio 1.2 sections 4.1.4.4 and 4.1.5.2.

use super::window::Window;
use crate::bus::Bus;
use crate::drivers::virtio::Notify;

/// Bytes of a register.
const LEN: usize = 2;

/// The window that they lie in.
pub(super) struct NotifyWindow<B> {
    window: Window<B>,
    /// Bytes between those of two queues; 0 if all have the same.
    multiplier: u32,
}

impl<B: Bus> NotifyWindow<B> {
    pub(super) fn new(window: Window<B>, multiplier: u32) -> Self {
        Self { window, multiplier }
    }

    /// The register of a queue whose place is `offset` multipliers into the window; `None` if
    /// there can be none.
    pub(super) fn register(&self, queue: u16, offset: u16) -> Option<NotifyRegister<B>> {
        let at = u64::from(offset) * u64::from(self.multiplier);
        let (bus, at) = self.window.place(usize::try_from(at).ok()?, LEN)?;
        at.is_multiple_of(LEN).then(|| NotifyRegister {
            bus: bus.clone(),
            at,
            queue,
        })
    }
}

/// The register of one queue.
pub(super) struct NotifyRegister<B> {
    bus: B,
    at: usize,
    queue: u16,
}

impl<B: Bus> Notify for NotifyRegister<B> {
    #[inline]
    fn notify(&self) {
        self.bus.write16(self.at, self.queue);
    }
}
