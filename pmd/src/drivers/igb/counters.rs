//! What the device counts. Its registers are set to zero when they are read, so that they are added
//! up here.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::registers::{MPC, STATISTICS};
use crate::bus::Bus;
use crate::bus::registers::Register;
use crate::driver::Statistics;

/// The sums, in the order of [`STATISTICS`]. Any thread may read registers into them: what a
/// register has is added by the one who takes it.
pub(super) struct Counters(Box<[AtomicU64]>);

impl Counters {
    pub(super) fn new() -> Self {
        Self(STATISTICS.iter().map(|_| AtomicU64::new(0)).collect())
    }

    /// Forgets what the device has counted for whoever had it before.
    pub(super) fn clear(bus: &impl Bus) {
        for register in STATISTICS {
            bus.read32(register.at);
        }
    }

    /// All of them, by name.
    pub(super) fn statistics(&self, bus: &impl Bus) -> Statistics {
        let all = STATISTICS.iter().zip(&self.0);
        all.map(|(register, sum)| (register.text.into(), take(bus, register, sum)))
            .collect()
    }

    /// Frames that found the packet buffer full.
    pub(super) fn missed(&self, bus: &impl Bus) -> u64 {
        let mut all = STATISTICS.iter().zip(&self.0);
        all.find(|(register, _)| register.at == MPC.at)
            .map_or(0, |(register, sum)| take(bus, register, sum))
    }
}

/// Adds what a register has to its sum, which it returns.
fn take(bus: &impl Bus, register: &Register, sum: &AtomicU64) -> u64 {
    let more = match bus.read32(register.at) {
        // A device that is gone.
        u32::MAX => 0,
        more => u64::from(more),
    };
    sum.fetch_add(more, Relaxed) + more
}
