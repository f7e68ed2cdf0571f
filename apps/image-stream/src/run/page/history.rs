//! What the page shows of the past: notes of the counters, and times of the last seconds.

use std::collections::BTreeMap;

use pollux_app::page::{self, Sampled, Times};
use pollux_pmd::{LatencyMark, LatencyView};
use serde::Serialize;

use crate::run::counters::Counters;

/// Read access to the history.
pub type History = page::History<Counters>;

/// The counters at a moment, counted since the start.
#[derive(Clone, Debug, Serialize)]
pub struct Note {
    uptime_s: f64,
    /// Images at the end of the chain and dark ones.
    images: u64,
    kept: u64,
    vetoed: u64,
    overrun: u64,
    lost: u64,
    complete: u64,
    partial: u64,
    empty: u64,
    discarded: u64,
    peaks: u64,
    /// Packets that are in no image.
    missing: u64,
    /// Frames from the wire.
    frames: u64,
    dropped: BTreeMap<&'static str, u64>,
}

impl Sampled for Counters {
    type Note = Note;
    type Mark = Option<LatencyMark>;

    fn note(&self, uptime_s: f64) -> Note {
        let balance = self.books.ledger.balance();
        let (images, frames) = (&self.images, &self.frames);
        Note {
            uptime_s,
            images: images.ended() + images.dark.get(),
            kept: images.kept.get(),
            vetoed: images.vetoed.get(),
            overrun: self.overrun(),
            lost: self.lost(),
            complete: frames.complete.get(),
            partial: frames.partial.get(),
            empty: frames.empty.get(),
            discarded: frames.discarded.get(),
            peaks: images.peaks.get(),
            missing: frames.missing.get(),
            frames: balance.from_wire,
            dropped: balance
                .drops()
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
        }
    }

    fn mark(&self) -> Option<LatencyMark> {
        total(self).map(LatencyView::mark)
    }
}

/// The last seconds.
#[derive(Debug, Default, Serialize)]
pub struct Now {
    window_s: f64,
    /// From the first packet of an image to the end of its processing.
    latency_ns: Times,
}

/// The last seconds of a run.
pub fn now(history: &History) -> Now {
    let counters = history.counters();
    let now = history.window(|window_s, mark| {
        let times = total(&counters).zip(mark.as_ref());
        let times = times.map(|(view, mark)| view.percentiles_since(mark));
        Now {
            window_s,
            latency_ns: times.map(Times::from).unwrap_or_default(),
        }
    });
    now.unwrap_or_default()
}

/// Times of images from their first packet.
fn total(counters: &Counters) -> Option<&LatencyView> {
    let mut stages = counters.latency.iter();
    stages.find_map(|(stage, times)| (stage == "total").then_some(times))
}
