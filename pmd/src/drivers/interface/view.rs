//! Interface state for housekeeping: link and counters.

use std::io;

use super::control::{Control, Interface};
use super::netlink::Netlink;
use crate::driver::{Link, Statistics};
use crate::port::RxState;

/// Reads link and counters of an interface from the kernel, in the network namespace in which this
/// was created.
pub(in crate::drivers) struct View {
    control: Control,
    netlink: Netlink,
    index: i32,
}

impl View {
    pub(in crate::drivers) fn new(interface: &Interface) -> io::Result<Self> {
        Ok(Self {
            control: Control::new()?,
            netlink: Netlink::new()?,
            index: interface.index,
        })
    }

    /// Current link state.
    pub(in crate::drivers) fn link(&self) -> Link {
        let report = self.netlink.report(self.index).unwrap_or_default();
        let state = self.control.state(self.index);
        Link {
            up: state == RxState::Live,
            gone: state == RxState::Gone,
            speed: self.control.speed(self.index),
            changes: report.carrier_changes,
        }
    }

    /// The counters of the interface; empty if it is gone.
    pub(in crate::drivers) fn statistics(&self) -> Statistics {
        let report = self.netlink.report(self.index).unwrap_or_default();
        report
            .counters
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect()
    }

    /// One counter of the interface; `None` if it is gone.
    pub(in crate::drivers) fn counter(&self, name: &str) -> Option<u64> {
        let report = self.netlink.report(self.index)?;
        let found = report.counters.iter().find(|(known, _)| *known == name);
        found.map(|&(_, value)| value)
    }

    /// Number of files that are attached to a multi-queue tap, of all programs; `None` for other
    /// interfaces, or before Linux 4.17.
    pub(in crate::drivers) fn tap_queues(&self) -> Option<u32> {
        self.netlink.report(self.index)?.tap_queues
    }
}
