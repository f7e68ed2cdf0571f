//! What a poll loop does now and then.

use pollux_pmd::mempool::time::{Ns, Tsc};
use pollux_pmd::{Clock, TscClock};

/// Comes up once in a while, by the clock.
pub(crate) struct Ticker {
    clock: TscClock,
    every: u64,
    last: Tsc,
}

impl Ticker {
    /// For counters that live outside the process, which the kernel must be asked for.
    pub(crate) fn for_counters(clock: TscClock) -> Self {
        Self {
            clock,
            every: clock.to_cycles(Ns(100_000_000)),
            last: clock.now(),
        }
    }

    /// Whether it is time again.
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
