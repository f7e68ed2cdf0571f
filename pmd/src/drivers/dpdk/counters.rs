//! What the device has lost, by its own count, for the ledger.

use dpdk_sys as dpdk;

use super::control::Control;
use super::device::Device;
use crate::ledger::{Cause, Tally};

/// Drivers that have taken a frame already when they find no buffer for it, so that it is lost. To
/// all others `rx_nombuf` counts attempts, as its name says, of which none loses a frame: that
/// waits in the ring, and where the ring is full by then the device counts it as missed.
const LOSE_WITHOUT_MBUF: &[&str] = &["net_pcap", "net_tap"];

/// How far the device's counters are in the ledger. They are of the port as a whole, so one receive
/// queue brings them in. Of a device's further counters (`Control::statistics`) those of losses are
/// parts of these, so nothing is taken from there.
pub(super) struct Counters {
    loses_without_mbuf: bool,
    seen: [u64; 3],
}

impl Counters {
    /// What has been counted until now is not of this run.
    pub(super) fn new(device: &Device) -> Self {
        let mut counters = Self {
            loses_without_mbuf: LOSE_WITHOUT_MBUF.contains(&device.driver()),
            seen: [0; 3],
        };
        if let Some(stats) = device.control().counters() {
            counters.seen = counters.losses(&stats).map(|(_, lost)| lost);
        }
        counters
    }

    /// Frames that came from the wire and went no further (struct rte_eth_stats).
    fn losses(&self, stats: &dpdk::rte_eth_stats) -> [(Cause, u64); 3] {
        let without_mbuf = if self.loses_without_mbuf {
            stats.rx_nombuf
        } else {
            0
        };
        [
            (Cause::RingFull, stats.imissed),
            (Cause::DeviceError, stats.ierrors),
            (Cause::NoMbuf, without_mbuf),
        ]
    }

    /// Brings what has been counted since the last time into the ledger.
    pub(super) fn sync(&mut self, control: &Control<'_>, tally: &mut Tally) {
        let Some(stats) = control.counters() else {
            return;
        };
        for ((cause, now), seen) in self.losses(&stats).into_iter().zip(&mut self.seen) {
            // A driver may set its counters back.
            let lost = now.saturating_sub(*seen);
            *seen = now;
            tally.count_from_wire(lost, 0);
            tally.count_dropped(cause, lost);
        }
    }
}
