//! Times of a stage, as a page draws them.

use pollux_pmd::{LatencyView, Percentiles};
use serde::Serialize;

/// Quantiles of times, in ns.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// Number of times.
    pub count: u64,
    /// Median.
    pub p50: u64,
    /// 99 % are at most this.
    pub p99: u64,
    /// 99.9 % are at most this.
    pub p999: u64,
    /// 99.99 % are at most this.
    pub p9999: u64,
    /// The longest.
    pub max: u64,
}

impl From<Percentiles> for Times {
    fn from(of: Percentiles) -> Self {
        Self {
            count: of.count,
            p50: of.p50,
            p99: of.p99,
            p999: of.p999,
            p9999: of.p9999,
            max: of.max,
        }
    }
}

/// Times of a stage: their quantiles, and the number of times below each power of two of nanoseconds,
/// without those below the previous power.
#[derive(Clone, Debug, Serialize)]
pub struct Histogram {
    stage: String,
    times: Times,
    octaves: Vec<(u64, u64)>,
}

impl Histogram {
    /// The times of a stage so far.
    #[must_use]
    pub fn of(stage: &str, times: &LatencyView) -> Self {
        Self {
            stage: stage.into(),
            times: times.percentiles().into(),
            octaves: times.octaves().collect(),
        }
    }
}
