//! Rate of a link.

use crate::time::Time;

/// A link of a given rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    gbps: u32,
}

impl Link {
    /// A link of so many Gb/s; of 1 if 0 is given.
    #[must_use]
    pub fn new(gbps: u32) -> Self {
        Self { gbps: gbps.max(1) }
    }

    /// Time that so many bytes occupy it, rounded up to a picosecond.
    #[must_use]
    pub fn time(self, bytes: u64) -> Time {
        Time::from_ps(bytes.saturating_mul(8000).div_ceil(self.gbps.into()))
    }

    /// Time between fragments of so many bytes that load it to this share. The cast saturates.
    #[must_use]
    pub fn interval(self, bytes: u64, load: f64) -> Time {
        Time::from_ps((self.time(bytes).ps() as f64 / load).round() as u64)
    }

    /// Its rate in Gb/s.
    #[must_use]
    pub fn gbps(self) -> f64 {
        self.gbps.into()
    }
}
