//! The clock of a run.

use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::{Clock, TscClock};

/// The CPU's, or a simulated card's: the one that frames are stamped by when they arrive.
#[derive(Clone)]
pub enum RunClock {
    Tsc(TscClock),
    #[cfg(feature = "card-sim")]
    Simulated(pollux_cosim::port::SimulatedTime),
}

impl Clock for RunClock {
    #[inline]
    fn now(&self) -> Tsc {
        match self {
            Self::Tsc(clock) => clock.now(),
            #[cfg(feature = "card-sim")]
            Self::Simulated(clock) => clock.now(),
        }
    }

    #[inline]
    fn to_ns(&self, cycles: u64) -> Ns {
        match self {
            Self::Tsc(clock) => clock.to_ns(cycles),
            #[cfg(feature = "card-sim")]
            Self::Simulated(clock) => clock.to_ns(cycles),
        }
    }

    #[inline]
    fn to_cycles(&self, ns: Ns) -> u64 {
        match self {
            Self::Tsc(clock) => clock.to_cycles(ns),
            #[cfg(feature = "card-sim")]
            Self::Simulated(clock) => clock.to_cycles(ns),
        }
    }

    fn rounds(&self, patience: Ns) -> u64 {
        match self {
            Self::Tsc(clock) => clock.rounds(patience),
            #[cfg(feature = "card-sim")]
            Self::Simulated(clock) => clock.rounds(patience),
        }
    }

    #[inline]
    fn relax(&self) {
        match self {
            Self::Tsc(clock) => clock.relax(),
            #[cfg(feature = "card-sim")]
            Self::Simulated(clock) => clock.relax(),
        }
    }
}
