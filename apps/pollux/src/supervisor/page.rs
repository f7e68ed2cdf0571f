//! Metrics page of a run: its ledger, ports and frame latencies.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pollux_app::metrics::{self, Ledgers, Page};
use pollux_pmd::LatencyView;

/// Named latency histograms of a run. More may be added during the run. The main thread and the
/// server take the lock, a poll loop never does.
#[derive(Clone, Default)]
pub(crate) struct Latencies(Arc<Mutex<Vec<(String, LatencyView)>>>);

impl Latencies {
    /// Replaces a histogram of the same name: a page must not repeat a line.
    pub(crate) fn add(&self, of: impl Into<String>, view: LatencyView) {
        let of = of.into();
        // The list is valid even after a panic of a lock holder.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(name, _)| *name != of);
        all.push((of, view));
    }

    fn all(&self) -> Vec<(String, LatencyView)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

/// Source of the page.
pub(super) struct Source {
    pub(super) ledgers: Ledgers,
    pub(super) latencies: Latencies,
}

impl metrics::Source for Source {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.ledgers.measure(page)?;
        let latencies = self.latencies.all();
        if latencies.is_empty() {
            return Ok(());
        }
        let samples = latencies.into_iter().map(|(of, view)| ([("of", of)], view));
        let help = "From the making of a frame to its arrival";
        page.latency("frame_latency_seconds", help, samples)
    }
}
