//! Damage of messages on purpose.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Inverts a random bit of some messages.
#[derive(Clone, Debug)]
pub struct Damage {
    probability: f64,
    random: Xoshiro256PlusPlus,
    damaged: u64,
}

/// A probability that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("messages are damaged with a probability of 0 to 1, not {0}")]
pub struct ProbabilityError(f64);

impl Damage {
    /// Damages each message with a probability.
    ///
    /// # Errors
    /// A number that is no probability.
    pub fn new(probability: f64, seed: u64) -> Result<Self, ProbabilityError> {
        if !(0.0..=1.0).contains(&probability) {
            return Err(ProbabilityError(probability));
        }
        Ok(Self {
            probability,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            damaged: 0,
        })
    }

    /// Messages that were damaged.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Damages a message, or leaves it.
    pub(super) fn apply(&mut self, message: &mut [u8]) {
        if self.probability == 0.0 || message.is_empty() {
            return;
        }
        if self.random.random_bool(self.probability) {
            let bit = self.random.random_range(0..message.len() * 8);
            message[bit / 8] ^= 1 << (bit % 8);
            self.damaged += 1;
        }
    }
}
