//! A device that does what it likes, behind the registers and in the rings: for tests and fuzzing.

use std::sync::Arc;

use pollux_mempool::Mempool;
use pollux_pmd::port::PortError;

use super::{ALL, VirtioNet, bit};
use crate::adversary::{FaultPlan, Outcome, Trial, run};
use crate::fake::grant;

/// Drives a device for so many steps, or until a fuzzer's bytes are at their end. `rings` says what
/// it offers about rings: bit 0 packed, bit 1 in order, bit 2 merged buffers; bit 3 that it does
/// not wait to be told.
#[must_use]
pub fn drive(rings: u8, plan: impl Into<FaultPlan>, steps: usize, pool: &Mempool) -> Outcome {
    let offer = |bit, feature| if rings & bit == 0 { feature } else { 0 };
    let missing = offer(1, bit::PACKED) | offer(2, bit::IN_ORDER) | offer(4, bit::MERGEABLE);
    let trial = Trial {
        model: &|| {
            let mut model = VirtioNet::new(ALL & !missing);
            // What no feature tells of is an MTU that all buffers hold.
            model.mtu = 1500;
            model.polls = rings & 8 != 0;
            model
        },
        open: &|device| {
            let spec = "pci:0000:00:00.0".parse().map_err(PortError::Spec)?;
            pollux_pmd::drivers::virtio::pci::open(Arc::new(device), &spec, grant())
        },
        arrive: &|model, world, choices| {
            // Not checked in this trial.
            model.sent.clear();
            model.violations.clear();
            let frame = vec![0xa5; 60 + choices.below(4000)];
            model.receive(world, choices.below(4) as u16, &frame);
        },
        pool,
        shortest: 1,
    };
    run(&trial, plan, steps)
}
