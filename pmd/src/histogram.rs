//! Latency histograms that a poll loop can write.

use hdrhistogram::Histogram;

/// Longest latency that is told apart, in nanoseconds: one minute. Longer ones count as this.
const LONGEST_NS: u64 = 60_000_000_000;

/// A histogram of times in nanoseconds, exact to one per cent, with all its memory allocated when
/// it is made.
#[derive(Clone, Debug)]
pub struct LatencyHistogram(Option<Histogram<u64>>);

/// What reports print of a histogram, in nanoseconds. All zero if nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Values recorded.
    pub count: u64,
    /// Half of the values are at most this.
    pub p50: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// 99.99 %.
    pub p9999: u64,
    /// The largest value, exactly.
    pub max: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        // The bounds are constants that the constructor accepts, so there always is one.
        Self(Histogram::new_with_bounds(1, LONGEST_NS, 2).ok())
    }

    /// Records a time in nanoseconds. Does not allocate.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(ns);
        }
    }

    /// Adds the values of another histogram.
    pub fn add(&mut self, other: &Self) {
        if let (Some(mine), Some(other)) = (&mut self.0, &other.0) {
            // Same bounds on both sides: the addition cannot fail.
            let _ = mine.add(other);
        }
    }

    /// How many values are above `ns`.
    #[must_use]
    pub fn count_above(&self, ns: u64) -> u64 {
        self.0
            .as_ref()
            .map_or(0, |h| h.len() - h.count_between(0, ns))
    }

    /// What reports print.
    #[must_use]
    pub fn percentiles(&self) -> Percentiles {
        let Some(histogram) = self.0.as_ref().filter(|h| !h.is_empty()) else {
            return Percentiles::default();
        };
        let at = |quantile| histogram.value_at_quantile(quantile).min(histogram.max());
        Percentiles {
            count: histogram.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: histogram.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_ramp() {
        let mut histogram = LatencyHistogram::new();
        assert_eq!(histogram.percentiles(), Percentiles::default());
        (1..=100_000).for_each(|ns| histogram.record(ns));
        histogram.record(u64::MAX);
        let p = histogram.percentiles();
        let near = |value: u64, truth: u64| value.abs_diff(truth) * 100 <= truth;
        assert!(
            near(p.p50, 50_000) && near(p.p99, 99_000) && near(p.p9999, 99_990),
            "{p:?}"
        );
        assert_eq!(p.count, 100_001);
        assert!(p.max >= LONGEST_NS);
        assert_eq!(histogram.count_above(2 * 100_000), 1);
    }
}
