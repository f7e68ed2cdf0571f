//! Time of a run or of a simulation.

use std::ops::{Add, Sub};

/// A moment, or a duration: whole picoseconds since an arbitrary start.
///
/// A run takes it from a clock, a simulation from its event queue. 64 bits last 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start.
    pub const ZERO: Self = Self(0);
    /// No moment is later.
    pub const MAX: Self = Self(u64::MAX);

    /// So many picoseconds.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// So many nanoseconds, at most [`Self::MAX`].
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1000))
    }

    /// In picoseconds.
    #[must_use]
    pub const fn ps(self) -> u64 {
        self.0
    }
}

impl Add for Time {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Time {
    type Output = Self;

    /// Zero where `other` is later.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
