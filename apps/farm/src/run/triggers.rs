//! When events are triggered.

use pollux_farm::time::Time;
use pollux_farm::trigger::{Bunches, Poisson, RateError, Regular};

use super::options::TriggerName;

/// Times of triggers since the start.
#[derive(Clone, Debug)]
pub enum Triggers {
    /// As many as the farm takes.
    AsManyAsPossible,
    /// At given times; the first of them is that of the next trigger.
    Timed(Time, Times),
}

/// A source of times.
#[derive(Clone, Debug)]
pub enum Times {
    Regular(Regular),
    Poisson(Poisson),
    Bunches(Bunches),
}

impl Triggers {
    /// Triggers at a mean rate in Hz.
    ///
    /// # Errors
    /// A rate that cannot be.
    pub fn at(kind: TriggerName, rate: f64, seed: u64) -> Result<Self, RateError> {
        let mut times = match kind {
            TriggerName::Regular => Times::Regular(Regular::new(rate)?),
            TriggerName::Poisson => Times::Poisson(Poisson::new(rate, seed)?),
            TriggerName::Bunches => Times::Bunches(Bunches::new(rate, seed)?),
        };
        Ok(Self::Timed(times.next(), times))
    }
}

impl Times {
    /// The time of the next trigger.
    pub fn next(&mut self) -> Time {
        let time = match self {
            Self::Regular(times) => times.next(),
            Self::Poisson(times) => times.next(),
            Self::Bunches(times) => times.next(),
        };
        time.unwrap_or(Time::MAX)
    }
}
