//! Options of the event builder.

use pollux_mempool::time::Ns;

use crate::sources::SourceSet;

/// Most open events.
const MAX_OPEN: usize = 1 << 20;

/// Most sources, whatever set of sources is chosen.
const MAX_SOURCES: usize = u16::MAX as usize;

/// Options of the builder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BuilderOptions {
    /// Number of sources.
    pub sources: usize,
    /// How long an event waits for its sources: from its first fragment on, and again from when
    /// most sources have contributed.
    pub deadline: Ns,
    /// How far a key may be ahead of the last one of its source, beyond the time that has passed,
    /// and of the other sources. No less than what passes in a deadline.
    pub horizon: u64,
    /// Keys in a nanosecond: of time stamps the rate of the clock, of event numbers the highest rate
    /// of events.
    pub keys_per_ns: f64,
    /// Most events that may be open at once.
    pub max_open: usize,
    /// The number of the last burst, which the first one follows.
    pub last_burst: u16,
}

impl BuilderOptions {
    pub(super) fn check<S: SourceSet>(&self) -> Result<(), BuilderError> {
        let most = S::MAX.min(MAX_SOURCES);
        if !(1..=most).contains(&self.sources) {
            return Err(BuilderError::Sources(self.sources, most));
        }
        if self.deadline.0 == 0 || self.last_burst == 0 {
            return Err(BuilderError::Zero);
        }
        let passed = self.deadline.0 as f64 * self.keys_per_ns;
        if !(self.keys_per_ns > 0.0 && passed.is_finite()) {
            return Err(BuilderError::Rate(self.keys_per_ns));
        }
        if self.horizon < (passed as u64).max(1) {
            return Err(BuilderError::Horizon(self.horizon, passed as u64));
        }
        if !(2..=MAX_OPEN).contains(&self.max_open) {
            return Err(BuilderError::Open(self.max_open));
        }
        Ok(())
    }
}

/// Why a builder could not be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuilderError {
    /// The number of sources is wrong.
    #[error("{0} sources: it must be 1 to {1}, which the set of sources has")]
    Sources(usize, usize),
    /// A deadline or number of bursts of zero.
    #[error("the deadline and the last burst of a builder must be at least 1")]
    Zero,
    /// The rate of keys is wrong.
    #[error("{0} keys in a nanosecond: it must be above 0, and finite in a deadline")]
    Rate(f64),
    /// The horizon is below what passes in a deadline.
    #[error(
        "a horizon of {0} keys: it must be 1 or more, and no less than the {1} keys of a deadline, \
         or sources that are apart by less than a deadline would differ"
    )]
    Horizon(u64, u64),
    /// The number of open events is wrong.
    #[error("{0} open events: it must be 2 to {MAX_OPEN}")]
    Open(usize),
}
