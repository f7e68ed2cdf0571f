//! Doorbell registers: virtio 1.2 sections 4.1.4.4 and 4.1.5.2.

use super::window::Window;
use crate::bus::Bus;
use crate::drivers::virtio::Notify;

/// Size of a register.
const LEN: usize = 2;

/// The window of the registers.
pub(super) struct NotifyWindow<B> {
    window: Window<B>,
    /// Distance between the registers of two queues in bytes; 0 if all queues share one.
    multiplier: u32,
}

impl<B: Bus> NotifyWindow<B> {
    pub(super) fn new(window: Window<B>, multiplier: u32) -> Self {
        Self { window, multiplier }
    }

    /// The register of a queue at `offset` multipliers into the window; `None` if it is outside.
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
