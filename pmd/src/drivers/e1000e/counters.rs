//! What the device counts: section 10.2.7. Its registers are set to zero when they are read, and
//! some stick at their highest value, so that they are read often enough and added up here.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use super::registers::{
    ALGNERRC, BPRC, BPTC, CRCERRS, DC, GORCH, GORCL, GOTCH, GOTCL, GPRC, GPTC, MPC, MPRC, MPTC,
    RFC, RJC, RLEC, RNBC, ROC, RUC, RXERRC, TPR, TPT, XOFFRXC, XONRXC,
};
use crate::bus::Bus;
use crate::bus::registers::Register;
use crate::driver::Statistics;
use crate::ledger::{Cause, Tally};

/// Counters of 32 bits.
const SINGLE: [Register; 21] = [
    GPRC, BPRC, MPRC, MPC, RNBC, CRCERRS, ALGNERRC, RXERRC, RLEC, RUC, ROC, RFC, RJC, TPR, XONRXC,
    XOFFRXC, GPTC, BPTC, MPTC, TPT, DC,
];

/// Counters of 64 bits. Reading the high half clears both.
const PAIRS: [(Register, Register); 2] = [(GORCL, GORCH), (GOTCL, GOTCH)];

/// Frames that the device lost before any descriptor, by counter. Runts are not among them, as
/// they may have been padded and delivered; nor is RNBC, which counts frames that waited.
const LOST: [(Register, Cause); 3] = [
    // The packet buffer was full, as there were no descriptors.
    (MPC, Cause::RingFull),
    (ROC, Cause::Oversize),
    (CRCERRS, Cause::DeviceError),
];

fn index_of(register: Register) -> Option<usize> {
    SINGLE.iter().position(|one| one.at == register.at)
}

/// The sums. Any thread may read registers into them: each is taken over by one.
#[derive(Default)]
pub(super) struct Counters {
    single: [AtomicU64; SINGLE.len()],
    /// Both halves of a pair belong together.
    pairs: Mutex<[u64; PAIRS.len()]>,
}

impl Counters {
    /// Forgets what the device has counted so far.
    pub(super) fn clear(bus: &impl Bus) {
        let pairs = PAIRS.iter().flat_map(|(low, high)| [low, high]);
        for register in SINGLE.iter().chain(pairs) {
            bus.read32(register.at);
        }
    }

    /// Reads a register of [`SINGLE`] into its sum, which it returns.
    fn take(&self, bus: &impl Bus, index: usize) -> u64 {
        let more = match bus.read32(SINGLE[index].at) {
            // A counter that sticks, or a device that is gone: nothing is known.
            u32::MAX => 0,
            more => u64::from(more),
        };
        self.single[index].fetch_add(more, Relaxed) + more
    }

    /// All of them, by name.
    pub(super) fn statistics(&self, bus: &impl Bus) -> Statistics {
        let single = SINGLE.iter().enumerate();
        let mut all: Statistics = single
            .map(|(index, register)| (register.text.into(), self.take(bus, index)))
            .collect();
        let mut sums = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for ((low, high), sum) in PAIRS.iter().zip(sums.iter_mut()) {
            let more = u64::from(bus.read32(low.at)) | u64::from(bus.read32(high.at)) << 32;
            *sum = sum.wrapping_add(if more == u64::MAX { 0 } else { more });
            all.push((low.text.into(), *sum));
        }
        all
    }
}

/// Takes what the device has lost into the ledger. One queue of a port does it for all.
pub(super) struct Losses {
    told: [u64; LOST.len()],
}

impl Losses {
    /// Those that come from here on: the sums outlive the ledgers of the port's earlier starts.
    pub(super) fn after(counters: &Counters) -> Self {
        let sum = |index: usize| counters.single[index].load(Relaxed);
        Self {
            told: LOST.map(|(register, _)| index_of(register).map_or(0, sum)),
        }
    }

    /// Counts the frames that were lost since the last time, as from the wire and as dropped.
    pub(super) fn tell(&mut self, counters: &Counters, bus: &impl Bus, tally: &mut Tally) {
        for ((register, cause), told) in LOST.iter().zip(&mut self.told) {
            let Some(index) = index_of(*register) else {
                continue;
            };
            let sum = counters.take(bus, index);
            let lost = sum.wrapping_sub(*told);
            if lost > 0 {
                *told = sum;
                tally.count_from_wire(lost, 0);
                tally.count_dropped(*cause, lost);
            }
        }
    }
}
