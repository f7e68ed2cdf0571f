//! What the device counts: section 10.2.7. Some registers stick at their highest value, so that
//! they are read often enough.

use std::sync::{Mutex, PoisonError};

use super::registers::{
    ALGNERRC, BPRC, BPTC, CRCERRS, DC, GORCH, GORCL, GOTCH, GOTCL, GPRC, GPTC, MPC, MPRC, MPTC,
    RFC, RJC, RLEC, RNBC, ROC, RUC, RXERRC, TPR, TPT, XOFFRXC, XONRXC,
};
use crate::bus::Bus;
use crate::bus::registers::Register;
use crate::driver::Statistics;
use crate::drivers::intel::counters::{Lost, Sums};
use crate::ledger::Cause;

/// Counters of 32 bits.
const SINGLE: &[Register] = &[
    GPRC, BPRC, MPRC, MPC, RNBC, CRCERRS, ALGNERRC, RXERRC, RLEC, RUC, ROC, RFC, RJC, TPR, XONRXC,
    XOFFRXC, GPTC, BPTC, MPTC, TPT, DC,
];

/// Counters of 64 bits. Reading the high half clears both.
const PAIRS: [(Register, Register); 2] = [(GORCL, GORCH), (GOTCL, GOTCH)];

/// Frames that the device lost before any descriptor. Runts are not among them, as they may have
/// been padded and delivered; nor is RNBC, which counts frames that waited.
///
/// The other counters of errors are statistics alone, as each frame is to be lost once: RLEC is of
/// the frames of RUC and ROC; those of ALGNERRC, RXERRC and RJC have 64 bytes and more, and mostly
/// a bad CRC too, so that CRCERRS has them; and what RFC counts is what a collision leaves, shorter
/// than a frame.
pub(super) const LOST: Lost = &[
    // The packet buffer was full, as there were no descriptors.
    (MPC, Cause::RingFull),
    (ROC, Cause::Oversize),
    (CRCERRS, Cause::DeviceError),
];

/// The sums.
pub(super) struct Counters {
    pub(super) single: Sums,
    /// Both halves of a pair belong together.
    pairs: Mutex<[u64; PAIRS.len()]>,
}

impl Counters {
    pub(super) fn new() -> Self {
        let (single, pairs) = (Sums::new(SINGLE), Mutex::default());
        Self { single, pairs }
    }

    /// Forgets what the device has counted so far.
    pub(super) fn clear(&self, bus: &impl Bus) {
        self.single.clear(bus);
        for register in PAIRS.iter().flat_map(|(low, high)| [low, high]) {
            bus.read32(register.at);
        }
    }

    /// All of them, by name.
    pub(super) fn statistics(&self, bus: &impl Bus) -> Statistics {
        let mut all = self.single.statistics(bus);
        let mut sums = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for ((low, high), sum) in PAIRS.iter().zip(sums.iter_mut()) {
            let more = u64::from(bus.read32(low.at)) | u64::from(bus.read32(high.at)) << 32;
            *sum = sum.wrapping_add(if more == u64::MAX { 0 } else { more });
            all.push((low.text.into(), *sum));
        }
        all
    }
}
