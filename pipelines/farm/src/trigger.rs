//! Sources of triggers: iterators of times.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution as _, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::time::Time;

/// Bunch crossings of a turn of the LHC.
pub const CROSSINGS: u32 = 3564;

/// Time between bunch crossings: one over 40.0789 MHz.
pub const CROSSING: Time = Time::from_ps(24_951);

/// Filled bunches of the nominal scheme with 25 ns between bunches.
pub const FILLED: u32 = 2808;

/// Picoseconds of a second.
const SECOND: f64 = 1e12;

/// A rate that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RateError {
    /// Not a positive number, or not finite.
    #[error("rate {0} Hz: it must be above 0 and finite; set `rate`")]
    NotPositive(f64),
    /// More than one trigger a picosecond, or a filled bunch.
    #[error("rate {rate} Hz: this source has at most {most}; set a lower `rate`")]
    TooHigh {
        /// The rate.
        rate: f64,
        /// The highest rate.
        most: f64,
    },
}

fn check(rate: f64, most: f64) -> Result<f64, RateError> {
    if !rate.is_finite() || rate <= 0.0 {
        return Err(RateError::NotPositive(rate));
    }
    if rate > most {
        return Err(RateError::TooHigh { rate, most });
    }
    Ok(rate)
}

/// Triggers at equal distances.
#[derive(Clone, Debug)]
pub struct Regular {
    rate: f64,
    number: u64,
}

impl Regular {
    /// Triggers at a rate in Hz, the first at time 0.
    ///
    /// # Errors
    /// A rate that cannot be.
    pub fn new(rate: f64) -> Result<Self, RateError> {
        let rate = check(rate, SECOND)?;
        Ok(Self { rate, number: 0 })
    }
}

impl Iterator for Regular {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        let time = self.number as f64 * SECOND / self.rate;
        self.number += 1;
        Some(Time::from_ps(time.round() as u64))
    }
}

/// Triggers of a Poisson process: the time between two is exponential.
#[derive(Clone, Debug)]
pub struct Poisson {
    mean_ps: f64,
    time_ps: f64,
    random: Xoshiro256PlusPlus,
}

impl Poisson {
    /// Triggers at a mean rate in Hz.
    ///
    /// # Errors
    /// A rate that cannot be.
    pub fn new(rate: f64, seed: u64) -> Result<Self, RateError> {
        Ok(Self::of_mean(SECOND / check(rate, SECOND)?, seed))
    }

    /// Triggers at a mean distance.
    #[must_use]
    pub fn every(mean: Time, seed: u64) -> Self {
        Self::of_mean(mean.ps() as f64, seed)
    }

    fn of_mean(mean_ps: f64, seed: u64) -> Self {
        Self {
            mean_ps,
            time_ps: 0.0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    fn interval_ps(&mut self) -> f64 {
        let relative: f64 = Exp1.sample(&mut self.random);
        relative * self.mean_ps
    }

    /// Draws a distance between two triggers. The cast saturates.
    pub fn interval(&mut self) -> Time {
        Time::from_ps(self.interval_ps().round() as u64)
    }
}

impl Iterator for Poisson {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        self.time_ps += self.interval_ps();
        Some(Time::from_ps(self.time_ps as u64))
    }
}

/// Triggers at bunch crossings of the LHC: each filled bunch triggers with the same probability.
#[derive(Clone, Debug)]
pub struct Bunches {
    probability: f64,
    crossing: u64,
    random: Xoshiro256PlusPlus,
}

impl Bunches {
    /// Triggers at a mean rate in Hz.
    ///
    /// # Errors
    /// A rate that cannot be.
    pub fn new(rate: f64, seed: u64) -> Result<Self, RateError> {
        let turn = f64::from(CROSSINGS) * CROSSING.ps() as f64 / SECOND;
        let most = f64::from(FILLED) / turn;
        Ok(Self {
            probability: check(rate, most)? / most,
            crossing: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
        })
    }
}

impl Iterator for Bunches {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        loop {
            let crossing = self.crossing;
            self.crossing = crossing.checked_add(1)?;
            let place = (crossing % u64::from(CROSSINGS)) as u32;
            if is_filled(place) && self.random.random_bool(self.probability) {
                return Some(Time::from_ps(crossing.saturating_mul(CROSSING.ps())));
            }
        }
    }
}

/// Whether a bunch crossing of the nominal filling scheme has a bunch (R. Bailey, P. Collier,
/// *Standard Filling Schemes for Various LHC Operation Modes*, LHC Project Note 323, 2003): trains
/// of 72 bunches and 8 empty crossings, three or four of them to a fill of the SPS, with the rise
/// time of the kicker between the fills, and the abort gap at the end.
#[must_use]
pub fn is_filled(crossing: u32) -> bool {
    const TRAIN: u32 = 72 + 8;
    const THREE: u32 = 3 * TRAIN + 30;
    const FOUR: u32 = 4 * TRAIN + 31;
    const QUARTER: u32 = 2 * THREE + FOUR;
    let in_quarter = crossing % QUARTER;
    let last_quarter = crossing / QUARTER == 3;
    let (place, trains) = match in_quarter {
        n if n < 2 * THREE => (n % THREE, 3),
        n => (n - 2 * THREE, if last_quarter { 3 } else { 4 }),
    };
    crossing < CROSSINGS && place < trains * TRAIN && place % TRAIN < 72
}
