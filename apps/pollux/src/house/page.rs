//! The metrics of a run: its books, and latencies of frames.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pollux_pmd::LatencyView;
use pollux_program::metrics::{self, Books, Page};

/// Latencies that a run shows, each under a name. More may come while it lasts; the lock is taken
/// by the main thread and by the server, never by a loop.
#[derive(Clone, Default)]
pub(crate) struct Latencies(Arc<Mutex<Vec<(String, LatencyView)>>>);

impl Latencies {
    /// In place of what had this name, if there was such: a page may have no line twice.
    pub(crate) fn add(&self, of: impl Into<String>, view: LatencyView) {
        let of = of.into();
        // What is there is whole, whoever panicked.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(name, _)| *name != of);
        all.push((of, view));
    }

    fn all(&self) -> Vec<(String, LatencyView)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

/// What the page is made from.
pub(super) struct Source {
    pub(super) books: Books,
    pub(super) latencies: Latencies,
}

impl metrics::Source for Source {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.books.measure(page)?;
        let latencies = self.latencies.all();
        if latencies.is_empty() {
            return Ok(());
        }
        let samples = latencies.into_iter().map(|(of, view)| ([("of", of)], view));
        let help = "From the making of a frame to its arrival";
        page.latency("frame_latency_seconds", help, samples)
    }
}
