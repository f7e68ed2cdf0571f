//! What the device has lost, by its own count, for the ledger.

use pollux_dpdk_sys as dpdk;

use super::control::Control;
use super::device::Device;
use crate::ledger::{Cause, Tally};

/// Drivers that have taken a frame already when they find no buffer for it, so that it is lost. To
/// all others `rx_nombuf` counts attempts, as its name says, of which none loses a frame: that
/// waits in the ring, and where the ring is full by then the device counts it as missed.
const LOSE_WITHOUT_MBUF: &[&str] = &["net_pcap", "net_tap"];

/// Further counters of what was lost, in none of the three of all devices: their driver, their name
/// with `*` for the number of a queue, and the cause. What a driver counts beside these is shown
/// (`Control::statistics`), and not in the ledger: nearly always it is a part of the three, and would
/// be there twice. For the same reason a counter gets here by what its driver does, not by its name.
const FURTHER: &[(&str, &str, Cause)] = &[
    // The memory of the physical port was full; `imissed` is queues without descriptors.
    ("mlx5_pci", "rx_discards_phy", Cause::RingFull),
    // Handed over as faulty, and dropped by the driver; `ierrors` is what the device kept.
    ("net_vmxnet3", "rx_q*_drop_total", Cause::DeviceError),
];

/// Why frames were lost that a counter of a driver counts, if they are counted nowhere else.
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

/// How far a counter is in the ledger.
struct Seen {
    cause: Cause,
    lost: u64,
}

impl Seen {
    /// Brings what has been counted since the last time into the ledger. A driver may set its
    /// counters back.
    fn sync(&mut self, now: u64, tally: &mut Tally) {
        let lost = now.saturating_sub(self.lost);
        self.lost = now;
        tally.count_from_wire(lost, 0);
        tally.count_dropped(self.cause, lost);
    }
}

/// The device's counters of what was lost. They are of the port as a whole, so one receive queue
/// brings them in.
pub(super) struct Counters {
    loses_without_mbuf: bool,
    /// Those that all devices have, as in [`losses`](Self::losses).
    common: [Seen; 3],
    /// [`FURTHER`] ones, with the device's numbers of them, and room for what they show.
    further: Vec<Seen>,
    numbers: Vec<u64>,
    values: Vec<u64>,
}

impl Counters {
    /// What has been counted until now is not of this run.
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

    /// Frames that came from the wire and went no further (struct rte_eth_stats).
    fn losses(&self, stats: &dpdk::rte_eth_stats) -> [u64; 3] {
        let without_mbuf = if self.loses_without_mbuf {
            stats.rx_nombuf
        } else {
            0
        };
        [stats.imissed, stats.ierrors, without_mbuf]
    }

    /// Brings what has been counted since the last time into the ledger.
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
            ("net_vmxnet3", "rx_q0_drop_err", None), // is in the total
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
