//! The link as the poll loops see it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Control, Interface};

/// Watches the link of an interface, for all queues of a port.
pub(in crate::drivers) struct Watch {
    control: Control,
    interface: Interface,
    up: AtomicBool,
}

impl Watch {
    pub(in crate::drivers) fn new(control: Control, interface: Interface) -> Self {
        let watch = Self {
            control,
            interface,
            up: AtomicBool::new(true),
        };
        watch.look();
        watch
    }

    /// Whether the interface is there, switched on, and has a carrier.
    pub(in crate::drivers) fn is_up(&self) -> bool {
        self.control.is_up(self.interface.index)
    }

    /// See [`Control::enable_hardware_stamps`].
    pub(in crate::drivers) fn enable_hardware_stamps(&self) -> io::Result<()> {
        self.control.enable_hardware_stamps(&self.interface.name)
    }

    /// As `is_up`, and tells the log of a change, once for all queues.
    pub(in crate::drivers) fn look(&self) -> bool {
        let up = self.is_up();
        // Relaxed: it orders nothing, it only finds the one that tells.
        if self.up.swap(up, Ordering::Relaxed) != up {
            let name = &self.interface.name;
            if up {
                tracing::warn!("{name}: the link is up again");
            } else if self.control.request_by_index(self.interface.index).is_err() {
                tracing::warn!("{name}: the interface has been deleted; nothing comes any more");
            } else {
                tracing::warn!(
                    "{name}: the link is down; receiving goes on when it is up again \
                     (ip link set {name} up)"
                );
            }
        }
        up
    }
}
