//! What the page shows of the past: notes of the counters, and the state in the last seconds.

use std::collections::BTreeMap;

use pollux_app::page::{self, Sampled};
use pollux_na62::l0::L0Stats;
use pollux_pmd::{LatencyMark, LatencyView};
use serde::Serialize;

use crate::counters::Counters;
use crate::report::Quantiles;

/// Read access to the history.
pub type History = page::History<Counters>;

/// The counters at a moment, counted since the start; the difference of two samples belongs to the
/// time between them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Note {
    pub uptime_s: f64,
    /// Built events.
    pub events: u64,
    pub accepted: u64,
    /// Frames from the wire.
    pub frames: u64,
    pub dropped: BTreeMap<&'static str, u64>,
    /// Frames missing by sequence number.
    pub missing: u64,
    pub late_decisions: u64,
    /// Datagrams of each stream.
    pub streams: Vec<u64>,
}

/// Counters at the beginning of a window.
pub struct Mark {
    total: Option<LatencyMark>,
    stats: L0Stats,
}

impl Sampled for Counters {
    type Note = Note;
    type Mark = Mark;

    fn note(&self, uptime_s: f64) -> Note {
        // Before the ledger, whose frames they are a part of: the loop goes on counting.
        let streams = self.streams.counts().map(|(_, n)| n.packets).collect();
        let balance = self.ledgers.ledger.balance();
        let (events, sources) = (&self.stats.events, &self.stats.sources);
        Note {
            uptime_s,
            events: events.built.get(),
            accepted: events.accepted.get(),
            frames: balance.from_wire,
            dropped: balance
                .drops()
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
            missing: sources.iter().map(|source| source.missing.get()).sum(),
            late_decisions: self.answers.late.get(),
            streams,
        }
    }

    fn mark(&self) -> Mark {
        let none = L0Stats::new(self.stats.sources.len());
        Mark {
            total: total(self).map(LatencyView::mark),
            stats: self.stats.since(&none),
        }
    }
}

/// The current state.
#[derive(Debug, Default, Serialize)]
pub struct Now {
    /// Length of the window.
    window_s: f64,
    /// Latency from an event's first frame to the transmission of its decision, of the decisions in
    /// the window.
    latency_ns: Quantiles,
    /// By stream: those of its known faults that were found in the window.
    faults: Vec<Vec<&'static str>>,
}

/// The current state of a run.
pub fn now(history: &History) -> Now {
    let counters = history.counters();
    let now = history.window(|window_s, mark| {
        let total = total(&counters).zip(mark.total.as_ref());
        let latency = total.map(|(view, mark)| view.percentiles_since(mark));
        let stats = &counters.stats;
        let stretch = stats.since(&mark.stats);
        let faults = |stream| {
            let found = stats.faults(stream);
            let lately = stretch.faults(stream);
            let both = found.into_iter().filter(|fault| lately.contains(fault));
            both.collect()
        };
        Now {
            window_s,
            latency_ns: latency.map(Quantiles::from).unwrap_or_default(),
            faults: (0..stats.sources.len()).map(faults).collect(),
        }
    });
    now.unwrap_or_default()
}

/// Latencies of decisions.
fn total(counters: &Counters) -> Option<&LatencyView> {
    let mut stages = counters.latency.iter();
    stages.find_map(|(stage, times)| (stage == "total").then_some(times))
}
