//! Random selection of the fault of each frame.

use pollux_mempool::time::Ns;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Probabilities of the faults of a frame. Faults exclude each other, so their sum is at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultRates {
    /// The frame is never sent.
    pub loss: f64,
    /// The frame is sent later, by [`delay_by`](Self::delay_by).
    pub delay: f64,
    /// Shortest and longest delay, with a uniform distribution between them.
    pub delay_by: (Ns, Ns),
    /// The frame is sent twice.
    pub duplicate: f64,
    /// The frame is sent behind later frames.
    pub reorder: f64,
    /// One byte of the frame is changed.
    pub corrupt: f64,
}

/// Why fault rates cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// A value is no probability.
    #[error("{what} of {value}: must be a probability, 0 to 1")]
    Probability {
        /// Name of the rate.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// The probabilities add up to more than 1.
    #[error(
        "the probabilities of all faults of a frame add up to {0}: a frame has at most one, so \
         their sum must be at most 1"
    )]
    Sum(f64),
    /// A range is empty.
    #[error("delays from {} to {} ns: the shortest is above the longest", .0.0, .1.0)]
    Delay(Ns, Ns),
    /// A bottleneck has no usable rate.
    #[error("a bottleneck of {0} bit/s: the rate must be 10^3 to 10^12 bit/s")]
    Rate(f64),
    /// A bottleneck would mark frames that it has lost.
    #[error(
        "a bottleneck that marks above {0} B of its queue of {1} B: it must mark before it is full"
    )]
    Queue(u64, u64),
}

impl FaultRates {
    /// Checks the rates.
    ///
    /// # Errors
    /// What cannot.
    pub fn check(&self) -> Result<(), FaultError> {
        let all = [
            ("loss", self.loss),
            ("delay", self.delay),
            ("duplication", self.duplicate),
            ("reordering", self.reorder),
            ("corruption", self.corrupt),
        ];
        for (what, value) in all {
            if !(0.0..=1.0).contains(&value) {
                return Err(FaultError::Probability { what, value });
            }
        }
        let sum: f64 = all.iter().map(|(_, value)| value).sum();
        // Decimal fractions that add up to 1 need not do so in binary.
        if sum > 1.0 + 1e-9 {
            return Err(FaultError::Sum(sum));
        }
        let (min, max) = self.delay_by;
        if min > max {
            return Err(FaultError::Delay(min, max));
        }
        Ok(())
    }
}

/// The fault that is applied to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Untouched,
    Lost,
    Delayed(Ns),
    Duplicated,
    Reordered,
    Corrupted,
}

#[derive(Debug)]
pub(crate) struct Dice {
    rates: FaultRates,
    rng: Xoshiro256PlusPlus,
}

impl Dice {
    pub(crate) fn new(rates: FaultRates, seed: u64) -> Self {
        Self {
            rates,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The outcome for the next frame. One random number selects among all faults.
    pub(crate) fn throw(&mut self) -> Outcome {
        let FaultRates {
            loss,
            delay,
            delay_by: (min, max),
            duplicate,
            reorder,
            corrupt,
        } = self.rates;
        let mut left: f64 = self.rng.random();
        let mut applies = |probability: f64| {
            left -= probability;
            left < 0.0
        };
        if applies(loss) {
            Outcome::Lost
        } else if applies(delay) {
            // A constant delay needs no random number.
            Outcome::Delayed(match max - min {
                Ns(0) => min,
                Ns(range) => min + Ns(self.rng.random_range(0..=range)),
            })
        } else if applies(duplicate) {
            Outcome::Duplicated
        } else if applies(reorder) {
            Outcome::Reordered
        } else if applies(corrupt) {
            Outcome::Corrupted
        } else {
            Outcome::Untouched
        }
    }

    /// Index of one of `len` bytes, and the bits of it to flip; `None` for no bytes. One changed
    /// byte always changes an Internet checksum.
    pub(crate) fn wrong_byte(&mut self, len: usize) -> Option<(usize, u8)> {
        (len > 0).then(|| {
            // A frame is far below 4 GiB.
            let at = self.rng.random_range(0..len as u32) as usize;
            (at, self.rng.random_range(1..=u8::MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_named() {
        let ok = FaultRates {
            loss: 0.7,
            delay: 0.1,
            corrupt: 0.2,
            ..FaultRates::default()
        };
        assert_eq!(ok.check(), Ok(()));
        let says = |rates: FaultRates, what: &str| {
            let error = rates.check().map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|e| e.contains(what)), "{error:?}");
        };
        says(FaultRates { loss: -0.1, ..ok }, "loss of -0.1");
        says(
            FaultRates {
                reorder: f64::NAN,
                ..ok
            },
            "reordering of NaN",
        );
        says(
            FaultRates {
                duplicate: 0.1,
                ..ok
            },
            "add up to 1.",
        );
        let backwards = (Ns(2), Ns(1));
        says(
            FaultRates {
                delay_by: backwards,
                ..ok
            },
            "from 2 to 1 ns",
        );
    }
}
