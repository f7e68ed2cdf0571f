//! What the device has lost, by its own count, for the ledger.

use std::sync::Arc;

use super::device::Device;
use crate::ledger::{Cause, Tally};

/// The device's counters, and how far they are in the ledger. They are of the port as a whole, so
/// one receive queue brings them in.
pub(super) struct Counters {
    device: Arc<Device>,
    seen: [u64; 3],
}

impl Counters {
    /// What has been counted until now is not of this run.
    pub(super) fn new(device: Arc<Device>) -> Self {
        let mut counters = Self {
            device,
            seen: [0; 3],
        };
        counters.seen = counters.read().map_or([0; 3], |now| now.map(|(_, n)| n));
        counters
    }

    /// Frames that came from the wire and went no further (struct rte_eth_stats).
    fn read(&self) -> Option<[(Cause, u64); 3]> {
        let stats = self.device.counters()?;
        Some([
            (Cause::RingFull, stats.imissed),
            (Cause::DeviceError, stats.ierrors),
            (Cause::NoMbuf, stats.rx_nombuf),
        ])
    }

    /// Brings what has been counted since the last time into the ledger.
    pub(super) fn sync(&mut self, tally: &mut Tally) {
        let Some(now) = self.read() else { return };
        for ((cause, now), seen) in now.into_iter().zip(&mut self.seen) {
            // A driver may set its counters back.
            let lost = now.saturating_sub(*seen);
            *seen = now;
            tally.count_from_wire(lost, 0);
            tally.count_dropped(cause, lost);
        }
    }
}
