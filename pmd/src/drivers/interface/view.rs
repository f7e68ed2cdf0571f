//! The interface as housekeeping sees it.

use std::io;

use super::control::{Control, Interface};
use super::netlink::Netlink;
use crate::driver::{Link, Statistics};
use crate::port::RxState;

/// Asks the kernel for link and counters of an interface, in the network namespace where it was
/// made.
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

    /// The link now.
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

    /// The counters of the interface; none if it is gone.
    pub(in crate::drivers) fn statistics(&self) -> Statistics {
        let report = self.netlink.report(self.index).unwrap_or_default();
        report
            .counters
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect()
    }

    /// One counter of the interface; none if it is gone.
    pub(in crate::drivers) fn counter(&self, name: &str) -> Option<u64> {
        let report = self.netlink.report(self.index)?;
        let found = report.counters.iter().find(|(known, _)| *known == name);
        found.map(|&(_, value)| value)
    }

    /// Files that are attached to a tap with several queues, in all programs; none for other
    /// interfaces, or before Linux 4.17.
    pub(in crate::drivers) fn tap_queues(&self) -> Option<u32> {
        self.netlink.report(self.index)?.tap_queues
    }
}
