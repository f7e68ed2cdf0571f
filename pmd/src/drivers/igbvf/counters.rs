//! Statistics registers. They are not reset when the function changes its owner, and have 32 bits,
//! so the differences between reads are added up here.

use std::sync::{Mutex, PoisonError};

use super::registers::STATISTICS;
use crate::bus::Bus;
use crate::driver::Statistics;

/// A register's value at the last look, and its sum.
#[derive(Clone, Copy, Default)]
struct Sum {
    last: u32,
    sum: u64,
}

/// The sums, in the order of [`STATISTICS`].
pub(super) struct Counters(Mutex<Vec<Sum>>);

impl Counters {
    pub(super) fn new() -> Self {
        Self(Mutex::new(vec![Sum::default(); STATISTICS.len()]))
    }

    /// Counts from here.
    pub(super) fn begin(&self, bus: &impl Bus) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (register, sum) in STATISTICS.iter().zip(sums.iter_mut()) {
            sum.last = bus.read32(register.at);
        }
    }

    /// All of them, by name.
    pub(super) fn statistics(&self, bus: &impl Bus) -> Statistics {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Statistics::new();
        for (register, sum) in STATISTICS.iter().zip(sums.iter_mut()) {
            let now = bus.read32(register.at);
            // A device that is gone counts no more.
            if now != u32::MAX {
                sum.sum += u64::from(now.wrapping_sub(sum.last));
                sum.last = now;
            }
            all.push((register.text.into(), sum.sum));
        }
        all
    }
}
