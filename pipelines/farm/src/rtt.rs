//! Time-outs that follow the round-trip times that were observed (RFC 6298).
//!
//! A farm has many samples in one round trip. Fed one by one, they would make it forget within
//! microseconds that a loop stood still (RFC 7323, appendix G). Of the samples of one time-out the
//! largest counts, and one that exceeds the estimate counts at once.

use crate::time::Time;

/// Most doublings of a time-out, if it is not told otherwise.
const MOST_DOUBLINGS: u32 = 6;

/// A smoothed round-trip time, its deviation, and the time-out that follows.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    /// The time-out is never shorter.
    least: Time,
    smoothed: Time,
    deviation: Time,
    /// Largest sample since the last update.
    largest: Time,
    /// When the estimate is updated next.
    update: Time,
    /// Smoothed round-trip time and four deviations, at least `least`.
    estimate: Time,
    doublings: u32,
    most_doublings: u32,
    /// The last doubling.
    doubled: Time,
}

impl Rtt {
    /// No sample yet; the time-out is `least`.
    #[must_use]
    pub fn new(least: Time) -> Self {
        Self {
            least,
            smoothed: Time::ZERO,
            deviation: Time::ZERO,
            largest: Time::ZERO,
            update: Time::ZERO,
            estimate: least,
            doublings: 0,
            most_doublings: MOST_DOUBLINGS,
            doubled: Time::ZERO,
        }
    }

    /// A time-out that stays as it is.
    #[must_use]
    pub fn constant(time: Time) -> Self {
        Self {
            update: Time::MAX,
            ..Self::new(time)
        }
    }

    /// The time-out doubles so many times at most.
    #[must_use]
    pub fn doubling(self, most: u32) -> Self {
        Self {
            most_doublings: most.min(MOST_DOUBLINGS),
            ..self
        }
    }

    fn is_constant(&self) -> bool {
        self.update == Time::MAX
    }

    /// Takes a round trip of a message that was sent once, or whose answer names the repetition
    /// (Karn's rule).
    #[inline]
    pub fn sample(&mut self, rtt: Time, now: Time) {
        if self.is_constant() {
            return;
        }
        self.doublings = 0;
        self.largest = self.largest.max(rtt);
        if now >= self.update || rtt > self.estimate {
            self.take(now);
        }
    }

    fn take(&mut self, now: Time) {
        let sample = std::mem::take(&mut self.largest).ps();
        let (smoothed, deviation) = (self.smoothed.ps(), self.deviation.ps());
        let (smoothed, deviation) = if smoothed == 0 {
            (sample, sample / 2)
        } else {
            let difference = smoothed.abs_diff(sample);
            (
                smoothed - smoothed / 8 + sample / 8,
                deviation - deviation / 4 + difference / 4,
            )
        };
        self.smoothed = Time::from_ps(smoothed);
        self.deviation = Time::from_ps(deviation);
        let estimate = smoothed.saturating_add(deviation.saturating_mul(4));
        self.estimate = self.least.max(Time::from_ps(estimate));
        self.update = now + self.estimate;
    }

    /// Smoothed round-trip time and four deviations, at least the least time-out.
    #[must_use]
    pub fn estimate(&self) -> Time {
        self.estimate
    }

    /// Time-out of what is sent, or was sent and is awaited.
    #[must_use]
    #[inline]
    pub fn timeout(&self) -> Time {
        Time::from_ps(self.estimate.ps().saturating_mul(self.periods()))
    }

    /// How many estimates long a time-out is.
    #[must_use]
    pub fn periods(&self) -> u64 {
        1 << self.doublings
    }

    /// What was sent at `sent` was not answered in time: the time-out doubles, once for all that
    /// was sent before it doubled.
    pub fn expired(&mut self, sent: Time, now: Time) {
        if !self.is_constant() && (self.doublings == 0 || sent >= self.doubled) {
            self.doublings = (self.doublings + 1).min(self.most_doublings);
            self.doubled = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Time = Time::from_ns(1000);

    fn us(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    /// RFC 6298, 2.2 and 2.3, with samples a time-out apart.
    #[test]
    fn estimates_follow_the_rfc() {
        let mut rtt = Rtt::new(LEAST);
        assert_eq!(rtt.timeout(), LEAST);
        rtt.sample(us(80), Time::ZERO);
        assert_eq!(rtt.estimate(), us(80 + 4 * 40));
        rtt.sample(us(160), us(1000));
        // RTTVAR = 3/4 40 + 1/4 80, SRTT = 7/8 80 + 1/8 160.
        assert_eq!(rtt.estimate(), us(90 + 4 * 50));
    }

    #[test]
    fn a_long_round_trip_counts_at_once_and_is_not_forgotten_at_once() {
        let mut rtt = Rtt::new(us(100));
        for n in 0..1000 {
            rtt.sample(us(10), us(n));
        }
        assert_eq!(rtt.timeout(), us(100));
        rtt.sample(us(5000), us(6000));
        assert!(rtt.timeout() > us(5000));
        for n in 0..1000 {
            rtt.sample(us(10), us(6000 + n));
        }
        assert!(rtt.timeout() > us(5000));
        for n in 0..1000 {
            rtt.sample(us(10), us(10_000 + 1000 * n));
        }
        assert_eq!(rtt.timeout(), us(100));
    }

    #[test]
    fn time_outs_double_once_for_what_was_sent_together() {
        let mut rtt = Rtt::new(us(100));
        for _ in 0..50 {
            rtt.expired(us(0), us(100));
        }
        assert_eq!(rtt.timeout(), us(200));
        rtt.expired(us(100), us(300));
        assert_eq!((rtt.timeout(), rtt.periods()), (us(400), 4));
        for n in 1..100 {
            rtt.expired(us(1000 * n), us(1000 * n + 500));
        }
        assert_eq!(rtt.timeout(), us(6400));
        rtt.sample(us(10), us(200_000));
        assert_eq!(rtt.timeout(), us(100));
    }

    #[test]
    fn constant_time_outs_stay() {
        let mut rtt = Rtt::constant(us(100));
        rtt.sample(us(5000), us(5000));
        rtt.expired(us(0), us(6000));
        assert_eq!((rtt.timeout(), rtt.periods()), (us(100), 1));
    }
}
