//! The clock of a run: that of its ports.

use std::time::SystemTime;

use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::{Clock, Registry, TscClock};

/// The CPU's clock, or that of a simulated card: the clock that stamps arriving frames.
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

impl RunClock {
    /// The time of day at a moment of this clock, in ns since the Unix epoch.
    pub fn unix_ns(&self, moment: Tsc) -> i64 {
        let age = self.to_ns(self.now().since(moment));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        (now as i64).saturating_sub_unsigned(age.0)
    }
}

/// The possible clocks of a run.
pub struct Clocks {
    #[cfg(feature = "card-sim")]
    simulated: RunClock,
}

impl Clocks {
    /// Adds the simulated card to the drivers, if it is built in.
    #[cfg_attr(not(feature = "card-sim"), expect(unused_variables))]
    pub fn new(ports: &mut Registry) -> Self {
        Self {
            #[cfg(feature = "card-sim")]
            simulated: RunClock::Simulated(pollux_cosim::port::register(ports)),
        }
    }

    /// The clock of the simulated card, or of the CPU.
    #[cfg_attr(
        not(feature = "card-sim"),
        expect(unused_variables, clippy::unused_self)
    )]
    pub fn choose(self, is_simulated: bool) -> RunClock {
        #[cfg(feature = "card-sim")]
        if is_simulated {
            return self.simulated;
        }
        RunClock::Tsc(TscClock::get())
    }
}
