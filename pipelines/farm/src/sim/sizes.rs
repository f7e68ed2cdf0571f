//! Sizes of fragments.

use rand::SeedableRng as _;
use rand_distr::{Distribution as _, Exp1, LogNormal};
use rand_xoshiro::SplitMix64;

use crate::sim::settings::{Key, Kind};

/// Distribution of the sizes of fragments, of a given mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All are equal.
    Fixed,
    /// Exponential.
    Exponential,
    /// Log-normal, with a standard deviation equal to the mean (CMS TDR 6.2, section 5: fragments of
    /// the front-end drivers).
    LogNormal,
}

impl Shape {
    /// Their names, for [`named`](Self::named).
    pub const NAMES: &[&str] = &["fixed", "exponential", "lognormal"];

    /// The parameter of a scenario that names it.
    pub(super) const fn key(default: &'static str) -> Key {
        Key {
            name: "sizes",
            kind: Kind::Word(Self::NAMES),
            default,
            text: "distribution of the sizes of fragments; log-normal with sigma = mean",
        }
    }

    /// The distribution of a name; of all equal sizes for another one.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "exponential" => Self::Exponential,
            "lognormal" => Self::LogNormal,
            _ => Self::Fixed,
        }
    }
}

/// Sizes of fragments. The size of a fragment is a function of the seed, the event and the source
/// alone: all policies carry the same events.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    seed: u64,
    mean: f64,
    law: Law,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Fixed,
    Exponential,
    LogNormal(LogNormal<f64>),
}

impl Sizes {
    /// Sizes with this mean, in bytes, of `pack` fragments sent as one.
    ///
    /// The sum of log-normal sizes is taken as log-normal with the sum's mean and variance (L. F.
    /// Fenton, IRE Trans. Commun. Syst. 8 (1960) 57), and so is the sum of exponential ones where
    /// several are packed.
    #[must_use]
    pub fn new(shape: Shape, mean: u64, pack: u64, seed: u64) -> Self {
        let pack = pack.max(1);
        // Variance of a variable whose logarithm is normal: mean^2 (exp(sigma^2) - 1).
        let sigma = (1.0 + 1.0 / pack as f64).ln().sqrt();
        let normal = LogNormal::new(-sigma * sigma / 2.0, sigma);
        let law = match (shape, normal) {
            (Shape::Exponential, _) if pack == 1 => Law::Exponential,
            (Shape::Exponential | Shape::LogNormal, Ok(normal)) => Law::LogNormal(normal),
            // No other deviation than a finite one can come of the above.
            (Shape::Fixed, _) | (_, Err(_)) => Law::Fixed,
        };
        let mean = (mean * pack) as f64;
        Self { seed, mean, law }
    }

    /// Bytes of a fragment: one at least.
    #[must_use]
    pub fn of(&self, event: u32, source: u16) -> u32 {
        let relative = match self.law {
            Law::Fixed => 1.0,
            Law::Exponential => Exp1.sample(&mut self.stream(event, source)),
            Law::LogNormal(normal) => normal.sample(&mut self.stream(event, source)),
        };
        // The cast saturates.
        ((self.mean * relative).round() as u32).max(1)
    }

    /// A random number below `limit`, which must not be 0, for a fragment.
    #[must_use]
    pub fn pick(&self, event: u32, source: u16, limit: u16) -> u16 {
        use rand::RngExt as _;
        // Another stream than that of the sizes.
        SplitMix64::seed_from_u64(!self.key(event, source)).random_range(0..limit)
    }

    fn stream(&self, event: u32, source: u16) -> SplitMix64 {
        SplitMix64::seed_from_u64(self.key(event, source))
    }

    /// Keys are far apart: streams with neighbouring keys would be shifted copies of each other.
    fn key(&self, event: u32, source: u16) -> u64 {
        use rand::Rng as _;
        let number = u64::from(event) << 16 | u64::from(source);
        SplitMix64::seed_from_u64(
            self.seed.rotate_left(32) ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93),
        )
        .next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation of many sizes.
    fn moments(sizes: &Sizes) -> (f64, f64) {
        const N: u32 = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for event in 0..N {
            let size = f64::from(sizes.of(event, (event % 7) as u16));
            sum += size;
            squares += size * size;
        }
        let mean = sum / f64::from(N);
        (mean, (squares / f64::from(N) - mean * mean).sqrt())
    }

    #[test]
    fn sizes_have_the_mean_and_the_deviation_of_their_law() {
        for (shape, pack, deviation) in [
            (Shape::Fixed, 1, 0.0),
            (Shape::Exponential, 1, 1.0),
            (Shape::LogNormal, 1, 1.0),
            (Shape::LogNormal, 100, 0.1),
            (Shape::Exponential, 25, 0.2),
        ] {
            let (mean, sigma) = moments(&Sizes::new(shape, 1000, pack, 5));
            let expected = 1000.0 * pack as f64;
            assert!(
                (mean / expected - 1.0).abs() < 0.02,
                "{shape:?} {pack}: {mean}"
            );
            assert!(
                (sigma / expected - deviation).abs() < 0.06,
                "{shape:?} {pack}: {sigma}"
            );
        }
    }

    #[test]
    fn picks_are_even() {
        let sizes = Sizes::new(Shape::Fixed, 1, 1, 3);
        let mut counts = [0u32; 8];
        for event in 0..8000 {
            counts[usize::from(sizes.pick(event / 4, (event % 4) as u16, 8))] += 1;
        }
        // Chi squared with 7 degrees of freedom: above 24.3 once in a thousand.
        let chi: f64 = counts
            .iter()
            .map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi < 24.3, "{counts:?}");
    }
}
