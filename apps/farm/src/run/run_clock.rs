//! The clock of a run.

use pollux_farm::time::Time;
use pollux_mempool::time::Tsc;
use pollux_pmd::{Clock as _, TscClock};

/// Time since the start of a run.
#[derive(Clone, Copy)]
pub struct RunClock {
    clock: TscClock,
    start: Tsc,
}

impl RunClock {
    /// A run starts.
    pub fn start() -> Self {
        let clock = TscClock::get();
        let start = clock.now();
        Self { clock, start }
    }

    /// The time now.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_ns(self.clock.to_ns(self.clock.now().since(self.start)).0)
    }
}
