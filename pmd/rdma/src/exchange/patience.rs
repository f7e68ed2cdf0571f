//! Deadlines, and ends before them.

use std::time::{Duration, Instant};

use pollux_pmd::lcore::StopFlag;

use super::ExchangeError;

/// How often a flag is looked at while a peer is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// The longest time: a program may mean "for ever" by [`Duration::MAX`], which no clock holds.
const LONGEST: Duration = Duration::from_hours(24 * 365 * 100);

/// How long an exchange may take: a [`Duration`], or one that a flag ends early.
#[derive(Clone, Debug)]
pub struct Patience {
    time: Duration,
    stop: Option<StopFlag>,
}

impl Patience {
    /// So long, or until the flag is set: the exchange then fails with [`ExchangeError::Stopped`].
    #[must_use]
    pub fn until(stop: &StopFlag, time: Duration) -> Self {
        let stop = Some(stop.clone());
        Self { time, stop }
    }
}

impl From<Duration> for Patience {
    fn from(time: Duration) -> Self {
        Self { time, stop: None }
    }
}

/// The time of the clock so long from now.
pub(super) fn after(time: Duration) -> Instant {
    Instant::now() + time.min(LONGEST)
}

/// The end of a patience.
#[derive(Clone, Debug)]
pub(super) struct Deadline {
    at: Instant,
    stop: Option<StopFlag>,
}

impl Deadline {
    pub(super) fn new(patience: Patience) -> Self {
        let Patience { time, stop } = patience;
        let at = after(time);
        Self { at, stop }
    }

    /// Another deadline, so long from now, with the same flag.
    pub(super) fn again(&self, time: Duration) -> Self {
        let (at, stop) = (after(time), self.stop.clone());
        Self { at, stop }
    }

    /// The time left, which is not zero.
    ///
    /// # Errors
    /// There is none, or the flag is set.
    pub(super) fn left(&self, step: &'static str) -> Result<Duration, ExchangeError> {
        if self.stop.as_ref().is_some_and(StopFlag::is_set) {
            return Err(ExchangeError::Stopped { step });
        }
        let left = self.at.checked_duration_since(Instant::now());
        left.filter(|left| !left.is_zero())
            .ok_or(ExchangeError::Deadline { step })
    }

    /// The time for one wait of several: the time left, or less if there is a flag to look at.
    ///
    /// # Errors
    /// As [`left`](Self::left).
    pub(super) fn nap(&self, step: &'static str) -> Result<Duration, ExchangeError> {
        let left = self.left(step)?;
        let longest = self.stop.as_ref().map_or(left, |_| LOOK);
        Ok(left.min(longest))
    }
}
