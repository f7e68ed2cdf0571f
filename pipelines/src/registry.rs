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

use pollux_pmd::Ledger;
use serde::de::DeserializeOwned;

use crate::l0::L0Stats;
use crate::pipeline::{DynStage, Pipeline, PipelineError};
use crate::stages;

/// What a stage may need when it is made.
pub struct StageEnv {
    /// Where a stage that delivers or drops frames adds its tally.
    pub ledger: Ledger,
    /// Counters of the L0 stages; their length is the number of sources.
    pub stats: Arc<L0Stats>,
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
