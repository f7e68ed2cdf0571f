//! Shares and means with their statistical errors.

use serde::{Serialize, Serializer};

/// A share of counted objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// The objects that are part of the share.
    pub part: u64,
    /// All objects.
    pub all: u64,
}

impl Rate {
    /// `part` of `all` objects.
    #[must_use]
    pub fn new(part: u64, all: u64) -> Self {
        Self { part, all }
    }

    /// Counts one more object.
    pub fn count(&mut self, is_part: bool) {
        self.part += u64::from(is_part);
        self.all += 1;
    }

    /// The share; `None` if no object was counted.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self.all > 0).then(|| self.part as f64 / self.all as f64)
    }

    /// Its statistical error: half of the interval of Wilson (1927) at one standard deviation,
    /// which also holds for shares of 0 and 1.
    #[must_use]
    pub fn error(self) -> Option<f64> {
        let (p, n) = (self.value()?, self.all as f64);
        Some((p * (1.0 - p) / n + 0.25 / (n * n)).sqrt() / (1.0 + 1.0 / n))
    }
}

/// Serialises the share alone.
impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(to)
    }
}

/// Mean and spread of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    n: f64,
    sum: f64,
    square: f64,
}

impl Moments {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        self.n += 1.0;
        self.sum += value;
        self.square += value * value;
    }

    /// The mean; `None` without a number.
    #[must_use]
    pub fn mean(self) -> Option<f64> {
        (self.n > 0.0).then(|| self.sum / self.n)
    }

    /// Root mean square of the numbers.
    #[must_use]
    pub fn rms(self) -> Option<f64> {
        (self.n > 0.0).then(|| (self.square / self.n).sqrt())
    }

    /// Statistical error of [`rms`](Self::rms) and of [`deviation`](Self::deviation), for numbers
    /// that are nearly Gaussian.
    #[must_use]
    pub fn rms_error(self) -> Option<f64> {
        Some(self.rms()? / (2.0 * self.n).sqrt())
    }

    /// Standard deviation of the numbers.
    #[must_use]
    pub fn deviation(self) -> Option<f64> {
        let (mean, rms) = (self.mean()?, self.rms()?);
        Some((rms * rms - mean * mean).max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_wilson() {
        let near = |rate: Rate, value: f64, error: f64| {
            let off = |is: Option<f64>, expected: f64| (is.unwrap_or(-1.0) - expected).abs();
            off(rate.value(), value) < 1e-9 && off(rate.error(), error) < 1e-6
        };
        assert!(near(Rate::new(50, 100), 0.5, 0.049_752));
        // The binomial formula would give an error of 0.
        assert!(near(Rate::new(0, 100), 0.0, 0.004_950));
        assert!(near(Rate::new(100, 100), 1.0, 0.004_950));
        assert_eq!(
            (Rate::default().value(), Rate::default().error()),
            (None, None)
        );
    }

    #[test]
    fn moments_are_those_of_the_numbers() {
        let mut moments = Moments::default();
        assert_eq!((moments.mean(), moments.rms()), (None, None));
        for value in [1.0, 3.0, 5.0] {
            moments.add(value);
        }
        let near = |is: Option<f64>, expected: f64| (is.unwrap_or(-1.0) - expected).abs() < 1e-9;
        assert!(near(moments.mean(), 3.0) && near(moments.deviation(), (8.0_f64 / 3.0).sqrt()));
        assert!(near(moments.rms(), (35.0_f64 / 3.0).sqrt()));
    }
}
