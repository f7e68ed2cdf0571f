//! Loss counters of the device, for the ledger.

use pollux_dpdk_sys as dpdk;

use super::control::Control;
use super::device::Device;
use crate::ledger::{Cause, Tally};

/// Drivers that have already taken a frame when they find no buffer for it, so that it is lost. For
/// all other drivers `rx_nombuf` counts attempts, as its name says, none of which loses a frame:
/// the frame waits in the ring, and if the ring becomes full the device counts frames as missed.
const LOSE_WITHOUT_MBUF: &[&str] = &["net_pcap", "net_tap"];

/// Additional loss counters, which are not part of the three of all devices: their driver, their
/// name with `*` for the number of a queue, and the cause. Other counters of a driver are shown
/// (`Control::statistics`), and are not in the ledger: nearly always they are a part of the three,
/// and would be counted twice. For the same reason a counter is listed here by what its driver
/// does, not by its name.
const FURTHER: &[(&str, &str, Cause)] = &[
    // The memory of the physical port was full; `imissed` counts queues without descriptors.
    ("mlx5_pci", "rx_discards_phy", Cause::RingFull),
    // Passed on as faulty, and dropped by the driver; `ierrors` counts frames that the device kept.
    ("net_vmxnet3", "rx_q*_drop_total", Cause::DeviceError),
];

/// Drop cause of a driver's counter, if its frames are counted nowhere else.
fn further(driver: &str, name: &str) -> Option<Cause> {
    let is = |pattern: &str| match pattern.split_once('*') {
        None => name == pattern,
        Some((front, back)) => name
            .strip_prefix(front)
            .and_then(|rest| rest.strip_suffix(back))
            .is_some_and(|queue| queue.parse::<u16>().is_ok()),
    };
    let mut rules = FURTHER.iter();
    rules
        .find(|rule| rule.0 == driver && is(rule.1))
        .map(|rule| rule.2)
}

/// The part of a counter that the ledger already has.
struct Seen {
    cause: Cause,
    lost: u64,
}

impl Seen {
    /// Adds the increase since the last call to the ledger. A driver may reset its counters.
    fn sync(&mut self, now: u64, tally: &mut Tally) {
        let lost = now.saturating_sub(self.lost);
        self.lost = now;
        tally.count_from_wire(lost, 0);
        tally.count_dropped(self.cause, lost);
    }
}

/// Loss counters of the device. They belong to the port as a whole, so one receive queue reports
/// them.
pub(super) struct Counters {
    loses_without_mbuf: bool,
    /// The counters of all devices, as in [`losses`](Self::losses).
    common: [Seen; 3],
    /// [`FURTHER`] counters, with their numbers in the device, and an array for their values.
    further: Vec<Seen>,
    numbers: Vec<u64>,
    values: Vec<u64>,
}

impl Counters {
    /// Counts from now on: earlier losses do not belong to this run.
    pub(super) fn new(device: &Device) -> Self {
        let control = device.control();
        let found = control.find(|name| further(device.driver(), name));
        let seen = |cause| Seen { cause, lost: 0 };
        let mut counters = Self {
            loses_without_mbuf: LOSE_WITHOUT_MBUF.contains(&device.driver()),
            common: [Cause::RingFull, Cause::DeviceError, Cause::NoMbuf].map(seen),
            further: found.iter().map(|&(_, cause)| seen(cause)).collect(),
            numbers: found.iter().map(|&(number, _)| number).collect(),
            values: vec![0; found.len()],
        };
        counters.sync(&control, &mut Tally::new());
        counters
    }

    /// Frames that arrived from the wire and were lost (struct rte_eth_stats).
    fn losses(&self, stats: &dpdk::rte_eth_stats) -> [u64; 3] {
        let without_mbuf = if self.loses_without_mbuf {
            stats.rx_nombuf
        } else {
            0
        };
        [stats.imissed, stats.ierrors, without_mbuf]
    }

    /// Adds the increase since the last call to the ledger.
    pub(super) fn sync(&mut self, control: &Control<'_>, tally: &mut Tally) {
        if let Some(stats) = control.counters() {
            let losses = self.losses(&stats);
            for (seen, now) in self.common.iter_mut().zip(losses) {
                seen.sync(now, tally);
            }
        }
        if !self.numbers.is_empty() && control.read(&self.numbers, &mut self.values) {
            for (seen, &now) in self.further.iter_mut().zip(&self.values) {
                seen.sync(now, tally);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_loss_is_known_by_its_driver_and_its_name() {
        for (driver, name, cause) in [
            ("net_vmxnet3", "rx_q0_drop_total", Some(Cause::DeviceError)),
            ("net_vmxnet3", "rx_q15_drop_total", Some(Cause::DeviceError)),
            ("net_vmxnet3", "rx_q0_drop_err", None), // part of the total
            ("net_vmxnet3", "rx_q_drop_total", None),
            ("net_vmxnet3", "tx_q0_drop_total", None),
            ("net_null", "rx_q0_drop_total", None),
            ("mlx5_pci", "rx_discards_phy", Some(Cause::RingFull)),
            ("mlx5_pci", "tx_discards_phy", None),
        ] {
            assert_eq!(further(driver, name), cause, "{driver} {name}");
        }
    }

    #[test]
    fn a_loss_is_in_the_ledger_once() {
        let mut tally = Tally::new();
        let mut seen = Seen {
            cause: Cause::DeviceError,
            lost: 5,
        };
        for now in [5, 7, 7, 0, 1] {
            seen.sync(now, &mut tally);
        }
        let balance = tally.view().balance();
        assert_eq!(balance.from_wire, 3);
        assert_eq!(balance.dropped_for(Cause::DeviceError), 3);
    }
}
