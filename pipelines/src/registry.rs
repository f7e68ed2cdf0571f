//! Stages by name, and pipelines from a TOML table.
//!
//! ```toml
//! [[stage]]
//! name = "decompress"
//!
//! [[stage]]
//! name = "build"
//! deadline_us = 300
//! ```

use std::sync::Arc;

use pollux_mempool::{Mempool, PoolCache, PoolConfig, PoolError};
use pollux_pmd::Ledger;
use serde::de::DeserializeOwned;

use crate::l0::{L0Stats, event_pool, fragment_pool};
use crate::pipeline::{DynStage, Pipeline, PipelineError};
use crate::rich::find::FinderConfig;
use crate::spread::{Spreading, Worker};
use crate::stage::BATCH;
use crate::stages::{self, RuleExchange};

/// What a stage may need when it is made.
pub struct StageEnv {
    /// Where a stage that delivers or drops frames adds its tally.
    pub ledger: Ledger,
    /// Counters of the L0 stages; their length is the number of sources.
    pub stats: Arc<L0Stats>,
    /// Page size, NUMA node and lock of the memory that events lie in.
    pub memory: PoolConfig,
    /// Most events that the program holds behind the pipeline: in rings to other loops, in queues
    /// of recorders, and as free buffers in each cache that it frees them into.
    pub under_way: usize,
    /// The pool of all events, once the stage is made that builds them.
    pub events: Option<Mempool>,
    /// How rings are looked for, once there is a stage that does.
    pub finder: Option<FinderConfig>,
    /// For giving the stage that decides other rules, once there is one.
    pub rules: Option<RuleExchange>,
    /// Over how many loops the costly stages are spread.
    pub spread: Spreading,
    /// What those loops are to do, once there are stages that are spread.
    pub crew: Vec<Worker>,
    /// Options that make sense to the stages, and most likely not to whoever wrote them.
    pub warnings: Vec<String>,
}

/// Free buffers that the stage which builds events keeps for itself, and that a program may keep in
/// the cache into which it frees them, unless it says otherwise.
pub const EVENT_CACHE: usize = 256;

/// Buffers of fragments: those that fill two batches between stages which gather them, and those
/// that are being filled and emptied.
const FRAGMENTS: usize = 2 * BATCH + 4;

/// Batches between the stages of a pipeline that may be full of events at once.
const BATCHES: usize = 16;

impl StageEnv {
    /// The surroundings of a pipeline for so many sources whose events are freed as they come out,
    /// into one cache.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        Self {
            ledger: Ledger::new(),
            stats: L0Stats::new(sources),
            memory: PoolConfig::default(),
            under_way: EVENT_CACHE,
            events: None,
            finder: None,
            rules: None,
            spread: Spreading::default(),
            crew: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Makes the pool of events; for the stage that builds them, and that may hold so many itself.
    ///
    /// # Errors
    /// Memory that cannot be had.
    pub fn make_events(&mut self, held: usize) -> Result<PoolCache, PoolError> {
        let events = held
            .saturating_add(self.under_way)
            .saturating_add(self.spread.items())
            .saturating_add(BATCHES * BATCH);
        let pool = event_pool(events, self.memory)?;
        let cache = pool.cache(EVENT_CACHE.min(events))?;
        self.events = Some(pool);
        Ok(cache)
    }

    /// Makes a pool for fragments of events; for the stage that takes frames apart.
    ///
    /// # Errors
    /// Memory that cannot be had.
    pub fn make_fragments(&self) -> Result<PoolCache, PoolError> {
        fragment_pool(FRAGMENTS, self.memory)?.cache(2)
    }
}

/// Why a stage could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// No stage of that name.
    #[error("no stage `{name}`; there are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// A `[[stage]]` table without a name.
    #[error("[[stage]] number {0} has no `name`")]
    NoName(usize),
    /// Options that the stage does not have, or of the wrong type or value.
    #[error("stage `{name}`: {what}")]
    Options {
        /// The stage.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The stages do not fit together.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
}

type Make = Box<dyn Fn(toml::Table, &mut StageEnv) -> Result<DynStage, String> + Send + Sync>;

/// The stages that a pipeline can be made of. A program adds its own beside the built-in ones.
pub struct StageRegistry {
    entries: Vec<(&'static str, Make)>,
}

impl StageRegistry {
    /// The stages of this crate.
    #[must_use]
    pub fn builtin() -> Self {
        let mut registry = Self {
            entries: Vec::new(),
        };
        stages::register(&mut registry);
        registry
    }

    /// Adds a stage. `make` gets its options, read into a type of the caller's: give that type
    /// `#[serde(deny_unknown_fields)]`, so that a typo is an error.
    pub fn register<O: DeserializeOwned>(
        &mut self,
        name: &'static str,
        make: impl Fn(O, &mut StageEnv) -> Result<DynStage, String> + Send + Sync + 'static,
    ) {
        self.entries.retain(|&(known, _)| known != name);
        let make = move |table: toml::Table, env: &mut StageEnv| {
            // The error's second line says which option it is about.
            let one_line = |text: String| text.trim_end().replace('\n', " ");
            let options = O::deserialize(table).map_err(|error| one_line(error.to_string()))?;
            make(options, env)
        };
        self.entries.push((name, Box::new(make)));
    }

    /// The names of all stages.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|&(name, _)| name)
    }

    /// Makes one stage from its table, in which `name` says which.
    fn make(
        &self,
        number: usize,
        mut table: toml::Table,
        env: &mut StageEnv,
    ) -> Result<DynStage, StageError> {
        let Some(toml::Value::String(name)) = table.remove("name") else {
            return Err(StageError::NoName(number));
        };
        let Some((_, make)) = self.entries.iter().find(|(known, _)| *known == name) else {
            let known = self.names().collect::<Vec<_>>().join(", ");
            return Err(StageError::Unknown { name, known });
        };
        make(table, env).map_err(|what| StageError::Options { name, what })
    }

    /// Makes a pipeline from the tables of its stages, in order.
    ///
    /// # Errors
    /// An unknown stage, a wrong option, or stages whose types do not fit.
    pub fn pipeline<In: 'static, Out: 'static>(
        &self,
        tables: &[toml::Table],
        env: &mut StageEnv,
    ) -> Result<Pipeline<In, Out>, StageError> {
        let mut stages = Vec::new();
        for (i, table) in tables.iter().enumerate() {
            stages.push(self.make(i + 1, table.clone(), env)?);
        }
        Ok(Pipeline::new(stages)?)
    }
}
