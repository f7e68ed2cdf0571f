//! Kinds of outputs, and an output between its spec and its start.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::SystemTime;

use pollux_mempool::time::Tsc;
use pollux_pmd::{Percentiles, Registry};

use crate::counts::OutputCounts;
use crate::error::OutputError;
use crate::output::EventOutput;
use crate::queue::Selection;
use crate::spec::OutputSpec;

/// A kind of output: the word in front of the colon of a spec.
#[derive(Clone, Copy)]
pub struct OutputKind {
    /// The word.
    pub name: &'static str,
    /// Its specs, as a help text shows them.
    pub usage: &'static str,
    /// Checks a spec of this kind. Opens nothing.
    pub plan: fn(&OutputSpec) -> Result<Box<dyn OutputPlan>, OutputError>,
}

impl OutputKind {
    /// Parses and checks a spec of one of `kinds`. Opens nothing.
    ///
    /// # Errors
    /// A wrong spec; the text is the program's, before anything is opened.
    pub fn plan(text: &str, kinds: &[Self]) -> Result<PlannedOutput, OutputError> {
        let spec: OutputSpec = text.parse()?;
        let Some(kind) = kinds.iter().find(|kind| kind.name == spec.kind()) else {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
            return Err(OutputError::UnknownKind {
                spec: text.into(),
                kind: spec.kind().into(),
                known: names.join(", "),
            });
        };
        Ok(PlannedOutput {
            spec: text.into(),
            plan: (kind.plan)(&spec)?,
        })
    }
}

/// A checked output that is not open yet.
#[derive(Debug)]
pub struct PlannedOutput {
    /// Its spec.
    pub spec: String,
    /// What the spec says.
    pub plan: Box<dyn OutputPlan>,
}

/// An output as its spec describes it.
pub trait OutputPlan: fmt::Debug + Send + Sync {
    /// The events that it takes.
    fn selection(&self) -> Selection {
        Selection::Accepted
    }

    /// Spec of the port that it opens, if it opens one.
    fn port(&self) -> Option<&str> {
        None
    }

    /// Checks it against this machine without opening or sending anything (`--check`).
    ///
    /// # Errors
    /// The first error that [`open`](Self::open) would report.
    fn check(&self, ports: &Registry) -> Result<(), OutputError> {
        let _ = ports;
        Ok(())
    }

    /// Looks whether the other side answers, where its protocol tells. Called before anything of the
    /// run is opened.
    ///
    /// # Errors
    /// An other side that is not there, or that refuses this output.
    fn reach(&self) -> Result<(), OutputError> {
        Ok(())
    }

    /// Opens the output. An other side that does not answer is no error: events are counted then.
    ///
    /// # Errors
    /// What is wrong on this machine: a file that cannot be read, no socket, no port.
    fn open(
        &self,
        run: &RunContext<'_>,
        counts: Arc<OutputCounts>,
    ) -> Result<Box<dyn EventOutput>, OutputError>;
}

/// What an output may know of its run.
pub struct RunContext<'a> {
    /// Number of the run.
    pub run: Option<u32>,
    /// Start of the run.
    pub started: SystemTime,
    /// The time of day at a moment of the clock that stamps arriving frames, in ns since the Unix epoch.
    pub unix_ns: Arc<dyn Fn(Tsc) -> i64 + Send + Sync>,
    /// All inputs are recordings: the run waits for its outputs, and time stamps are of the past.
    pub recorded: bool,
    /// Address of the trigger on its ports.
    pub ip: Ipv4Addr,
    /// Text of the configuration (TOML); empty for the built-in one.
    pub configuration: &'a str,
    /// The kinds of ports that can be opened.
    pub ports: &'a Registry,
    /// Counters of the run.
    pub monitor: Arc<dyn RunMonitor>,
}

/// Counters of a run, for outputs that publish them.
pub trait RunMonitor: Send + Sync {
    /// Events that were built.
    fn events(&self) -> u64;

    /// Events that were accepted.
    fn accepted(&self) -> u64;

    /// The time that each stage spends on a batch in ns, and `total`: from the arrival of an event's
    /// first frame to the transmission of its decision.
    fn stages(&self) -> Vec<(String, Percentiles)>;
}
