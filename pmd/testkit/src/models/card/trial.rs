//! The driver against a card that does what it likes: for tests and fuzzing.

use std::sync::Arc;

use pollux_card_model::{SimulatedCard, WireFrame};
use pollux_mempool::Mempool;
use pollux_pmd::drivers::card::open;

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
    let spec = format!("pci:0000:03:00.0,{options}");
    let spec = spec.parse().expect("a spec");
    let arrive = |card: &mut Card, _: &mut World, choices: &mut Choices| {
        let len = match choices.below(8) {
            0..6 => 60 + choices.below(200),
            6 => 1518,
            _ => choices.below(10_000),
        };
        let frame = WireFrame::good(vec![0xff; len]);
        card.0.put(choices.below(4), frame);
    };
    let trial = Trial {
        model: &Card::new,
        open: &|device| open(Arc::new(device), &spec, grant()),
        arrive: &arrive,
        pool,
        shortest: 1,
    };
    adversary::run(&trial, plan, steps)
}
