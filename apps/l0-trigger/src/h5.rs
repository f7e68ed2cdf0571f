//! The recording in HDF5 (docs/formats/recording.md).

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use pollux_pipelines::l0::EventView;
use pollux_recording::{About, Ending, Facts, Rule, StreamLoss, Writer};

use crate::counters::Counters;
use crate::keeper::Store;

/// A file that is being written.
pub struct H5 {
    writer: Writer,
    /// What is written at the end.
    counters: Arc<Counters>,
}

impl H5 {
    /// Creates the file.
    pub fn create(path: &Path, configuration: &str, counters: Arc<Counters>) -> Result<Self> {
        let about = About {
            program: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            configuration,
            start: SystemTime::now(),
        };
        let writer = Writer::create(path, &about).context("--record")?;
        Ok(Self { writer, counters })
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
            truncated: head.truncated,
            disputed: head.disputed,
            late: event.is_late(),
            monitored: verdict.monitored,
            rules: verdict.rules,
            rule_set: verdict.rule_set,
        };
        self.writer.push(&facts, event.hits(), event.rings());
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.flush().context("--record")
    }

    fn complete(self, lost: u64) -> Result<()> {
        let sources = self.counters.stats.sources.iter();
        let streams = sources.map(|source| StreamLoss {
            frames: source.frames.get(),
            missing: source.missing.get(),
            duplicates: source.duplicates.get(),
            reordered: source.reordered.get(),
            late: source.late.get(),
        });
        let streams: Vec<_> = streams.collect();
        let sets = self.counters.rules.sets();
        let rules = sets.iter().flat_map(|set| {
            let rules = set.rules.iter().zip(0..);
            rules.map(|(counts, bit)| Rule {
                rule_set: set.number,
                bit,
                name: counts.rule.name.clone(),
                asks: counts.rule.to_string(),
            })
        });
        let rules: Vec<_> = rules.collect();
        let ending = Ending {
            end: SystemTime::now(),
            ledger: &self.counters.books.ledger,
            streams: &streams,
            rules: &rules,
            lost,
        };
        self.writer.finish(&ending).context("--record")
    }
}
