//! The recording in HDF5 (docs/formats/recording.md).

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use pollux_pipelines::l0::EventView;
use pollux_recording::{About, Ending, Facts, StreamLoss, Writer};

use crate::counters::Counters;
use crate::keeper::{Kept, Store};
use crate::report::RecordingReport;

/// A file that is being written.
pub struct H5(Writer);

impl H5 {
    /// Creates the file.
    pub fn create(path: &Path, configuration: &str) -> Result<Self> {
        let about = About {
            program: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            configuration,
            start: SystemTime::now(),
        };
        Ok(Self(Writer::create(path, &about).context("--record")?))
    }
}

impl Store for H5 {
    fn push(&mut self, event: EventView<'_>) {
        let (head, verdict) = (event.head(), event.verdict());
        let facts = Facts {
            timestamp: head.timestamp,
            sources: head.sources,
            accepted: verdict.accepted(),
            complete: head.complete,
            late: false,
            monitored: verdict.monitored,
            rules: verdict.rules,
            rule_set: verdict.rule_set,
        };
        self.0.push(&facts, event.hits(), event.rings());
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush().context("--record")
    }
}

/// Completes the file with what is known at the end of the run.
pub fn complete(kept: Kept<H5>, counters: &Counters) -> (RecordingReport, Result<()>) {
    let Kept { store, report } = kept;
    let sources = counters.stats.sources.iter();
    let streams = sources.map(|source| StreamLoss {
        frames: source.frames.get(),
        missing: source.missing.get(),
        duplicates: source.duplicates.get(),
        reordered: source.reordered.get(),
        late: source.late.get(),
    });
    let streams: Vec<_> = streams.collect();
    let ending = Ending {
        end: SystemTime::now(),
        ledger: &counters.books.ledger,
        streams: &streams,
        lost: report.lost,
    };
    let end = match store {
        Ok(store) => store.0.finish(&ending).context("--record"),
        Err(error) => Err(error.context("the recording is incomplete")),
    };
    (report, end)
}
