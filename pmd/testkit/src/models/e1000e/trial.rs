//! The driver against a device that does what it likes: for tests and fuzzing.

use std::sync::Arc;

use pollux_mempool::Mempool;
use pollux_pmd::drivers::e1000e::open;

use super::Card;
use crate::adversary::{self, Choices, FaultPlan, Outcome, Trial};
use crate::fake::{World, grant};

/// Receives, sends, stops and starts against such a device.
///
/// # Panics
/// If the driver breaks a promise: see [`adversary::run`].
#[must_use]
#[expect(clippy::expect_used, reason = "a test's tool")]
pub fn run(pool: &Mempool, options: &str, plan: impl Into<FaultPlan>, steps: usize) -> Outcome {
    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    let spec = format!("pci:0000:03:00.0,{options}");
    let spec = spec.parse().expect("a spec");
    let arrive = |card: &mut Card, world: &mut World, choices: &mut Choices| {
        let len = match choices.below(8) {
            0..6 => 60 + choices.below(200),
            6 => 1518,
            _ => choices.below(10_000),
        };
        let mut frame = vec![0xa5; len];
        frame.iter_mut().zip(MAC).for_each(|(byte, to)| *byte = to);
        card.receive(world, &frame);
    };
    let trial = Trial {
        model: &|| {
            let mut card = Card::new(MAC);
            card.loopback = true;
            card
        },
        open: &|device| open(Arc::new(device), &spec, grant()),
        arrive: &arrive,
        pool,
        shortest: 1,
    };
    adversary::run(&trial, plan, steps)
}
