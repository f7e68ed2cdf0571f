//! The recording in HDF5 (docs/formats/recording.md).

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Context as _, Error, Result};
use pollux_app::{Output, Rotation};
use pollux_na62::l0::EventView;
use pollux_recording::{About, Ending, Facts, Rule, StreamLoss, Writer};

use crate::burst_number::BurstNumber;
use crate::counters::Counters;
use crate::outputs::Outputs;
use crate::record_queue::Store;

/// The current file, and the earlier ones.
pub struct Hdf5File {
    /// `None` after a file that could not be completed or followed by another; `failed` holds the
    /// reason until it is reported.
    writer: Option<Writer>,
    failed: Option<Error>,
    /// The next event begins another file.
    is_full: bool,
    output: Output,
    run: Option<u32>,
    /// With one file for each burst: the burst that the current file began with.
    burst: Option<BurstNumber>,
    configuration: String,
    rotation: Rotation,
    begun: Instant,
    number: u32,
    /// Existing files, the current one last.
    names: VecDeque<PathBuf>,
    /// Counters that are written at the end.
    counters: Arc<Counters>,
}

impl Hdf5File {
    /// Creates the first file, or the only one.
    pub fn create(
        outputs: &Outputs,
        output: &Output,
        configuration: String,
        counters: &Arc<Counters>,
    ) -> Result<Self> {
        let mut file = Self {
            writer: None,
            failed: None,
            is_full: false,
            output: output.clone(),
            run: outputs.run,
            burst: output.is_by_burst().then_some(BurstNumber::FIRST),
            configuration,
            rotation: outputs.rotation,
            begun: Instant::now(),
            number: 0,
            names: VecDeque::new(),
            counters: Arc::clone(counters),
        };
        output.clear(outputs.rotation.is_on())?;
        file.begin()?;
        Ok(file)
    }

    /// Begins the next file.
    fn begin(&mut self) -> Result<()> {
        self.number += 1;
        let mut output = self
            .output
            .of_burst(self.burst.map_or(1, BurstNumber::in_name));
        if self.rotation.is_on() {
            output = output.part(self.number);
        }
        output.expect_free()?;
        let about = About {
            program: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            configuration: &self.configuration,
            start: SystemTime::now(),
            run: self.run,
            overwrite: output.may_overwrite(),
        };
        self.writer = Some(Writer::create(output.path(), &about).context("--record")?);
        self.begun = Instant::now();
        self.names.push_back(output.path().into());
        self.rotation.trim(&mut self.names);
        if let Some(counts) = &self.counters.files.record {
            counts.begun(output.path(), self.names.len());
        }
        Ok(())
    }

    fn has_enough(&self) -> bool {
        let Rotation { size, age, .. } = self.rotation;
        let len = || self.names.back().and_then(|name| fs::metadata(name).ok());
        age.is_some_and(|age| self.begun.elapsed() >= age)
            || size.is_some_and(|size| len().is_some_and(|file| file.len() >= size))
    }

    /// Continues in another file.
    fn turn(&mut self) {
        self.is_full = false;
        let record = self.counters.files.record.as_ref();
        let lost = record.map_or(0, |counts| counts.so_far().lost);
        self.failed = self.end(lost).and_then(|()| self.begin()).err();
    }

    /// Completes the current file.
    fn end(&mut self, lost: u64) -> Result<()> {
        match self.writer.take() {
            Some(writer) => finish(writer, &self.counters, lost),
            None => Ok(()),
        }
    }
}

impl Store for Hdf5File {
    fn turns_at(&self, event: EventView<'_>) -> bool {
        let burst = event.head().burst;
        self.burst.is_some_and(|present| present.turns_at(burst))
    }

    fn push(&mut self, event: EventView<'_>) {
        let (head, verdict) = (event.head(), event.verdict());
        if let Some(present) = self.burst.filter(|present| present.turns_at(head.burst)) {
            (self.burst, self.number) = (Some(present.turned(head.burst)), 0);
            self.turn();
        } else if self.is_full {
            self.turn();
        }
        let facts = Facts {
            burst: self.run.is_some().then_some(head.burst),
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
        if let Some(writer) = &mut self.writer {
            writer.push(&facts, event.hits(), event.rings());
        }
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        if let Some(writer) = &mut self.writer {
            writer.flush().context("--record")?;
        }
        self.is_full = self.has_enough();
        Ok(())
    }

    fn complete(mut self, lost: u64) -> Result<()> {
        self.end(lost)
    }
}

/// Completes a file with the state of the run so far.
fn finish(writer: Writer, counters: &Counters, lost: u64) -> Result<()> {
    let sources = counters.stats.sources.iter();
    let streams = sources.map(|source| StreamLoss {
        frames: source.frames.get(),
        missing: source.missing.get(),
        duplicates: source.duplicates.get(),
        reordered: source.reordered.get(),
        late: source.late.get(),
    });
    let streams: Vec<_> = streams.collect();
    let sets = counters.rules.sets();
    let rules = sets.iter().flat_map(|set| {
        let rules = set.rules.iter().zip(0..);
        rules.map(|(counts, bit)| Rule {
            rule_set: set.number,
            bit,
            name: counts.rule.name.clone(),
            criteria: counts.rule.to_string(),
        })
    });
    let rules: Vec<_> = rules.collect();
    let ending = Ending {
        end: SystemTime::now(),
        ledger: &counters.ledgers.ledger,
        streams: &streams,
        rules: &rules,
        lost,
    };
    writer.finish(&ending).context("--record")
}
