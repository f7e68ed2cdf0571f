//! Points in time, each with its unit and epoch in the type.

use core::ops::{Add, Sub};
use std::time::{SystemTime, UNIX_EPOCH};

/// A point on the clock of the poll loops, in cycles of that clock (the time stamp counter on
/// hardware, simulated cycles in a simulation). The epoch is arbitrary: only differences mean
/// something, and `Clock` in the driver crate turns those into nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Tsc(pub u64);

impl Tsc {
    /// Cycles since `earlier`; zero if `earlier` is later, as two cores' counters may be a few
    /// cycles apart.
    #[must_use]
    #[inline]
    pub fn since(self, earlier: Tsc) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A point in time of the outside world: nanoseconds since the Unix epoch, as a capture file, the
/// kernel or a NIC stamped it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct WireTime(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ns(pub u64);

impl WireTime {
    /// The system's clock now; zero if it stands before 1970.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self(u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    #[inline]
    pub fn since(self, earlier: WireTime) -> Ns {
        Ns(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Ns> for WireTime {
    type Output = WireTime;

    /// Saturates at the end of time (the year 2554).
    #[inline]
    fn add(self, ns: Ns) -> WireTime {
        WireTime(self.0.saturating_add(ns.0))
    }
}

impl Add for Ns {
    type Output = Ns;

    #[inline]
    fn add(self, other: Ns) -> Ns {
        Ns(self.0.saturating_add(other.0))
    }
}

impl Sub for Ns {
    type Output = Ns;

    /// Saturates at zero.
    #[inline]
    fn sub(self, other: Ns) -> Ns {
        Ns(self.0.saturating_sub(other.0))
    }
}
