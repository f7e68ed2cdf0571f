//! What befalls the next frame.

use pollux_mempool::time::Ns;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Probabilities of what befalls a frame. They exclude each other, so their sum is at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairments {
    /// It is never sent.
    pub loss: f64,
    /// It is sent later, by [`delay_by`](Self::delay_by).
    pub delay: f64,
    /// Shortest and longest delay; evenly distributed between them.
    pub delay_by: (Ns, Ns),
    /// It is sent twice.
    pub duplicate: f64,
    /// It is sent behind later frames.
    pub reorder: f64,
    /// One byte of it is changed.
    pub corrupt: f64,
}

/// Why impairments cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImpairError {
    /// No probability.
    #[error("{what} of {value}: must be a probability, 0 to 1")]
    Probability {
        /// Which one.
        what: &'static str,
        /// What it was to be.
        value: f64,
    },
    /// Together they are more than all frames.
    #[error(
        "the probabilities of all that befalls a frame add up to {0}: at most one thing befalls \
         each, so their sum must be at most 1"
    )]
    Sum(f64),
    /// No range.
    #[error("delays from {} to {} ns: the shortest is above the longest", .0.0, .1.0)]
    Delay(Ns, Ns),
}

impl Impairments {
    /// Checks that they can be.
    ///
    /// # Errors
    /// What cannot.
    pub fn check(&self) -> Result<(), ImpairError> {
        let all = [
            ("loss", self.loss),
            ("delay", self.delay),
            ("duplication", self.duplicate),
            ("reordering", self.reorder),
            ("corruption", self.corrupt),
        ];
        for (what, value) in all {
            if !(0.0..=1.0).contains(&value) {
                return Err(ImpairError::Probability { what, value });
            }
        }
        let sum: f64 = all.iter().map(|(_, value)| value).sum();
        // Decimal fractions that add up to 1 may not quite do so in binary.
        if sum > 1.0 + 1e-9 {
            return Err(ImpairError::Sum(sum));
        }
        let (min, max) = self.delay_by;
        if min > max {
            return Err(ImpairError::Delay(min, max));
        }
        Ok(())
    }
}

/// What befalls a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Untouched,
    Lost,
    Delayed(Ns),
    Duplicated,
    Reordered,
    Corrupted,
}

#[derive(Debug)]
pub(crate) struct Dice {
    impairments: Impairments,
    rng: Xoshiro256PlusPlus,
}

impl Dice {
    pub(crate) fn new(impairments: Impairments, seed: u64) -> Self {
        Self {
            impairments,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// The fate of the next frame. One throw decides between all.
    pub(crate) fn throw(&mut self) -> Fate {
        let Impairments {
            loss,
            delay,
            delay_by: (min, max),
            duplicate,
            reorder,
            corrupt,
        } = self.impairments;
        let mut left: f64 = self.rng.random();
        let mut befalls = |probability: f64| {
            left -= probability;
            left < 0.0
        };
        if befalls(loss) {
            Fate::Lost
        } else if befalls(delay) {
            // A delay without choice costs no throw.
            Fate::Delayed(match max - min {
                Ns(0) => min,
                Ns(range) => min + Ns(self.rng.random_range(0..=range)),
            })
        } else if befalls(duplicate) {
            Fate::Duplicated
        } else if befalls(reorder) {
            Fate::Reordered
        } else if befalls(corrupt) {
            Fate::Corrupted
        } else {
            Fate::Untouched
        }
    }

    /// One of `len` bytes, and which of its bits change; `None` of none. One changed byte never
    /// keeps an Internet checksum.
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
        let ok = Impairments {
            loss: 0.7,
            delay: 0.1,
            corrupt: 0.2,
            ..Impairments::default()
        };
        assert_eq!(ok.check(), Ok(()));
        let says = |impairments: Impairments, what: &str| {
            let error = impairments.check().map_err(|error| error.to_string());
            assert!(error.as_ref().is_err_and(|e| e.contains(what)), "{error:?}");
        };
        says(Impairments { loss: -0.1, ..ok }, "loss of -0.1");
        says(
            Impairments {
                reorder: f64::NAN,
                ..ok
            },
            "reordering of NaN",
        );
        says(
            Impairments {
                duplicate: 0.1,
                ..ok
            },
            "add up to 1.",
        );
        let backwards = (Ns(2), Ns(1));
        says(
            Impairments {
                delay_by: backwards,
                ..ok
            },
            "from 2 to 1 ns",
        );
    }
}
