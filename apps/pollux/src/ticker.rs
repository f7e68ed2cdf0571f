//! Periodic timer of a poll loop.

use pollux_pmd::mempool::time::{Ns, Tsc};
use pollux_pmd::{Clock, TscClock};

/// Timer that is due at regular intervals, by the clock.
pub(crate) struct Ticker {
    clock: TscClock,
    every: u64,
    last: Tsc,
}

impl Ticker {
    /// Interval for counters that require a system call.
    pub(crate) fn for_counters(clock: TscClock) -> Self {
        Self {
            clock,
            every: clock.to_cycles(Ns(100_000_000)),
            last: clock.now(),
        }
    }

    /// Whether the timer is due.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        let now = self.clock.now();
        let due = now.since(self.last) >= self.every;
        if due {
            self.last = now;
        }
        due
    }
}
