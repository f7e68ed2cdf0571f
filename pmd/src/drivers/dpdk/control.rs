//! Device control: queries of a device while its queues are polled.

use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr;
use std::sync::MutexGuard;

use pollux_dpdk_sys as dpdk;

use crate::driver::{Link, Megabits, Statistics};

/// Last observed link state of a device.
#[derive(Default)]
pub(super) struct Seen {
    up: Option<bool>,
    changes: u64,
}

/// The exclusive right to query the device. Concurrent calls for one device may lose counts in
/// drivers whose registers are cleared by reads.
pub(super) struct Control<'a> {
    id: u16,
    seen: MutexGuard<'a, Seen>,
}

impl<'a> Control<'a> {
    pub(super) fn new(id: u16, seen: MutexGuard<'a, Seen>) -> Self {
        Self { id, seen }
    }

    /// Current link state. A change is counted by the first query that observes it.
    pub(super) fn link(&mut self) -> Link {
        let mut link = dpdk::rte_eth_link::default();
        // SAFETY: a device that this process owns.
        let up = unsafe { dpdk::rte_eth_link_get_nowait(self.id, &raw mut link) } == 0
            && link.link_status() != 0;
        let before = self.seen.up.replace(up);
        self.seen.changes += u64::from(before.is_some_and(|before| before != up));
        let speed = Some(link.link_speed)
            .filter(|&speed| up && speed != 0 && speed != dpdk::RTE_ETH_SPEED_NUM_UNKNOWN);
        Link {
            up,
            speed: speed.map(Megabits),
            changes: self.seen.changes,
            ..Link::DOWN
        }
    }

    /// Current value of the device's clock, if it can be read.
    pub(super) fn clock(&self) -> Option<u64> {
        let mut ticks = 0;
        // SAFETY: a device that this process owns.
        (unsafe { dpdk::rte_eth_read_clock(self.id, &raw mut ticks) } == 0).then_some(ticks)
    }

    /// The counters that all devices have.
    pub(super) fn counters(&self) -> Option<dpdk::rte_eth_stats> {
        let mut stats = dpdk::rte_eth_stats::default();
        // SAFETY: a device that this process owns.
        (unsafe { dpdk::rte_eth_stats_get(self.id, &raw mut stats) } == 0).then_some(stats)
    }

    /// Names of all counters, indexed by their numbers.
    fn names(&self) -> Vec<dpdk::rte_eth_xstat_name> {
        // SAFETY: a device that this process owns; DPDK writes at most as many entries as the array
        // has.
        unsafe {
            let n = dpdk::rte_eth_xstats_get_names(self.id, ptr::null_mut(), 0).max(0);
            let mut names = vec![dpdk::rte_eth_xstat_name::default(); n as usize];
            let named = dpdk::rte_eth_xstats_get_names(self.id, names.as_mut_ptr(), n as u32);
            names.truncate(named.clamp(0, n) as usize);
            names
        }
    }

    /// The numbers of the counters that `wanted` selects by name, with its results.
    pub(super) fn find<T>(&self, wanted: impl Fn(&str) -> Option<T>) -> Vec<(u64, T)> {
        let names = self.names();
        let numbered = (0_u64..).zip(&names);
        numbered
            .filter_map(|(number, name)| Some((number, wanted(&text_of(name)?)?)))
            .collect()
    }

    /// Reads the counters with these numbers; returns whether that succeeded.
    pub(super) fn read(&self, numbers: &[u64], values: &mut [u64]) -> bool {
        let n = numbers.len().min(values.len()) as u32;
        // SAFETY: a device that this process owns; `n` numbers, and an array of as many values.
        let read = unsafe {
            dpdk::rte_eth_xstats_get_by_id(self.id, numbers.as_ptr(), values.as_mut_ptr(), n)
        };
        read >= 0 && read as u32 == n
    }

    /// All counters, by DPDK's names.
    pub(super) fn statistics(&self) -> Statistics {
        let names = self.names();
        let mut values = vec![dpdk::rte_eth_xstat::default(); names.len()];
        // SAFETY: a device that this process owns; DPDK writes at most as many entries as the array
        // has.
        let read =
            unsafe { dpdk::rte_eth_xstats_get(self.id, values.as_mut_ptr(), values.len() as u32) };
        values.truncate(read.max(0) as usize);
        let row = |value: dpdk::rte_eth_xstat| {
            let name = text_of(names.get(value.id as usize)?)?;
            Some((Cow::Owned(name), value.value))
        };
        values.into_iter().filter_map(row).collect()
    }
}

/// The text of a name.
fn text_of(name: &dpdk::rte_eth_xstat_name) -> Option<String> {
    let name: [u8; 64] = name.name.map(|c| c as u8);
    let name = CStr::from_bytes_until_nul(&name).ok()?;
    name.to_str().ok().map(str::to_owned)
}
