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
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
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
        /// The place of its table: the first is number 1.
        number: usize,
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
        /// The place of its table: the first is number 1.
        number: usize,
        /// The stage.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The stages do not fit together.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
}

impl StageError {
    /// The place of the `[[stage]]` table that is wrong, if it is one: the first is number 1.
    #[must_use]
    pub fn number(&self) -> Option<usize> {
        match *self {
            Self::Unknown { number, .. } | Self::NoName(number) | Self::Options { number, .. } => {
                Some(number)
            }
            Self::Pipeline(ref error) => error.number(),
        }
    }
}

type Make = Box<dyn Fn(toml::Table, &mut StageEnv) -> Result<DynStage, String> + Send + Sync>;

/// What is known of the options of a stage.
#[derive(Clone, Copy)]
struct Options {
    /// A table of them with all that it leaves out.
    complete: fn(toml::Table) -> Result<toml::Table, String>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Options {
    fn of<O: DeserializeOwned + Serialize + JsonSchema>() -> Self {
        Self {
            complete: |table| {
                let options: O = read(table)?;
                // By way of the text, in which a number of 32 bits is the shortest that means it.
                let text = toml::to_string(&options).map_err(|error| error.to_string())?;
                text.parse()
                    .map_err(|error: toml::de::Error| error.to_string())
            },
            schema: O::json_schema,
        }
    }
}

/// The stages that a pipeline can be made of. A program adds its own beside the built-in ones.
pub struct StageRegistry {
    entries: Vec<Entry>,
}

struct Entry {
    name: &'static str,
    make: Make,
    /// Of a stage that has been [described](StageRegistry::describe).
    options: Option<Options>,
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
        self.entries.retain(|entry| entry.name != name);
        let make = move |table: toml::Table, env: &mut StageEnv| make(read(table)?, env);
        self.entries.push(Entry {
            name,
            make: Box::new(make),
            options: None,
        });
    }

    /// Says of which type the options of a stage are, so that they can be
    /// [completed](Self::complete) and [listed](Self::schemas).
    pub fn describe<O: DeserializeOwned + Serialize + JsonSchema>(&mut self, name: &str) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.name == name) {
            entry.options = Some(Options::of::<O>());
        }
    }

    /// The names of all stages.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|entry| entry.name)
    }

    /// The table of a stage with all options that it leaves out, as they hold; that of a stage which
    /// nobody has [described](Self::describe) as it is. `number` is its place, for errors.
    ///
    /// # Errors
    /// An unknown stage, or a wrong option.
    pub fn complete(&self, number: usize, table: &toml::Table) -> Result<toml::Table, StageError> {
        let mut rest = table.clone();
        let entry = self.find(number, &mut rest)?;
        let Some(options) = entry.options else {
            return Ok(table.clone());
        };
        let completed = (options.complete)(rest).map_err(|what| StageError::Options {
            number,
            name: entry.name.into(),
            what,
        })?;
        let name = ("name".to_owned(), toml::Value::from(entry.name));
        Ok([name].into_iter().chain(completed).collect())
    }

    /// The JSON schema of the options of each stage that has been [described](Self::describe).
    pub fn schemas(&self, of: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
        let described = self.entries.iter();
        let described = described.filter_map(|entry| Some((entry.name, entry.options?)));
        described
            .map(|(name, options)| (name, (options.schema)(of)))
            .collect()
    }

    /// The stage that a table names; takes the name out of the table.
    fn find(&self, number: usize, table: &mut toml::Table) -> Result<&Entry, StageError> {
        let Some(toml::Value::String(name)) = table.remove("name") else {
            return Err(StageError::NoName(number));
        };
        let found = self.entries.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| {
            let known = self.names().collect::<Vec<_>>().join(", ");
            StageError::Unknown {
                number,
                name,
                known,
            }
        })
    }

    /// Makes one stage from its table, in which `name` says which.
    fn make(
        &self,
        number: usize,
        mut table: toml::Table,
        env: &mut StageEnv,
    ) -> Result<DynStage, StageError> {
        let entry = self.find(number, &mut table)?;
        (entry.make)(table, env).map_err(|what| StageError::Options {
            number,
            name: entry.name.into(),
            what,
        })
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

/// Reads the options of a stage.
fn read<O: DeserializeOwned>(table: toml::Table) -> Result<O, String> {
    // The error's second line says which option it is about.
    let one_line = |text: String| text.trim_end().replace('\n', " ");
    O::deserialize(table).map_err(|error| one_line(error.to_string()))
}
