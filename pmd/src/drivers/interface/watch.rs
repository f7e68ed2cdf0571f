//! Link state for poll loops.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::control::{Control, Interface};
use crate::port::RxState;

/// Monitors the link of an interface, for all queues of a port.
pub(in crate::drivers) struct Watch {
    control: Control,
    interface: Interface,
    up: AtomicBool,
    gone: AtomicBool,
}

impl Watch {
    pub(in crate::drivers) fn new(control: Control, interface: Interface) -> Self {
        let watch = Self {
            control,
            interface,
            up: AtomicBool::new(true),
            gone: AtomicBool::new(false),
        };
        watch.look();
        watch
    }

    /// Whether the interface exists, is up, and has a carrier.
    pub(in crate::drivers) fn is_up(&self) -> bool {
        self.control.state(self.interface.index) == RxState::Live
    }

    /// See [`Control::enable_hardware_stamps`].
    pub(in crate::drivers) fn enable_hardware_stamps(&self) -> io::Result<()> {
        self.control.enable_hardware_stamps(&self.interface.name)
    }

    /// Current state of the interface; logs a change once for all queues. An interface that was
    /// deleted stays gone, even if a later one has its number.
    pub(in crate::drivers) fn look(&self) -> RxState {
        // Relaxed throughout: it orders nothing, and only selects the queue that logs.
        if self.gone.load(Ordering::Relaxed) {
            return RxState::Gone;
        }
        let (name, state) = (
            &self.interface.name,
            self.control.state(self.interface.index),
        );
        if state == RxState::Gone {
            if !self.gone.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "{name}: the interface has been deleted; no further frames are \
                     received or sent"
                );
            }
            return state;
        }
        let up = state == RxState::Live;
        if self.up.swap(up, Ordering::Relaxed) != up {
            if up {
                tracing::warn!("{name}: the link is up again");
            } else {
                tracing::warn!(
                    "{name}: the link is down; reception continues when it is up again (ip link \
                     set {name} up)"
                );
            }
        }
        state
    }
}
