//! Stages by name, and pipelines from a TOML table.
//!
//! ```toml
//! [[stage]]
//! name = "read"
//!
//! [[stage]]
//! name = "scale"
//! factor = 3
//! ```

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::env::StageEnv;
use crate::pipeline::{DynStage, Kinds, Pipeline, PipelineError};

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

/// The line of each `[[stage]]` in a TOML text, the first line being 1; none in a text that is no
/// TOML, or has no such tables.
#[must_use]
pub fn stage_lines(text: &str) -> Vec<usize> {
    #[derive(Default, Deserialize)]
    struct Stages {
        #[serde(default)]
        stage: Vec<Spanned<toml::Table>>,
    }
    let stages: Stages = toml::from_str(text).unwrap_or_default();
    let line = |stage: &Spanned<_>| 1 + text[..stage.span().start].matches('\n').count();
    stages.stage.iter().map(line).collect()
}

/// An error in the stages of a TOML text, with its line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The text is not TOML, or its `stage` is not an array of tables: the parser's message, which
    /// names the line.
    #[error("{0}")]
    Syntax(String),
    /// An error of one stage.
    #[error("[[stage]] in line {line}: {error}")]
    Stage {
        /// Line of the stage's table.
        line: usize,
        /// The error.
        error: StageError,
    },
    /// An error of the stages as a whole.
    #[error("[[stage]]: {0}")]
    Stages(StageError),
}

impl TextError {
    /// The error of a stage, with its line in the text.
    #[must_use]
    pub fn of(error: StageError, text: &str) -> Self {
        let place = error.number().and_then(|number| number.checked_sub(1));
        match place.and_then(|place| stage_lines(text).get(place).copied()) {
            Some(line) => Self::Stage { line, error },
            None => Self::Stages(error),
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

/// Stages by name, from which pipelines are built. A program adds its own to those of a detector.
#[derive(Default)]
pub struct StageRegistry {
    entries: Vec<Entry>,
    kinds: Kinds,
}

struct Entry {
    name: &'static str,
    make: Make,
    /// Of a stage that has been [described](StageRegistry::describe).
    options: Option<Options>,
}

impl StageRegistry {
    /// A registry without stages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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

    /// Registers the type of a stage's options, so that they can be [completed](Self::complete) and
    /// [listed](Self::schemas).
    pub fn describe<O: DeserializeOwned + Serialize + JsonSchema>(&mut self, name: &str) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.name == name) {
            entry.options = Some(Options::of::<O>());
        }
    }

    /// Names the items of a type, for errors about stages whose types do not match.
    pub fn name_kind<T: 'static>(&mut self, name: &'static str) {
        self.kinds.name::<T>(name);
    }

    /// The names of all stages.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|entry| entry.name)
    }

    /// The table of a stage, completed with the defaults of the options that it leaves out. The
    /// table of a stage that has not been [described](Self::describe) is returned unchanged.
    /// `number` is the stage's place, for errors.
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
        Ok(Pipeline::with_kinds(stages, &self.kinds)?)
    }
}

impl StageRegistry {
    /// Makes a pipeline from the `[[stage]]` tables of a TOML text, in order.
    ///
    /// # Errors
    /// As of [`pipeline`](Self::pipeline), with the line of the stage that is wrong; a text that is
    /// no TOML.
    pub fn pipeline_of_text<In: 'static, Out: 'static>(
        &self,
        text: &str,
        env: &mut StageEnv,
    ) -> Result<Pipeline<In, Out>, TextError> {
        #[derive(Deserialize)]
        struct Stages {
            #[serde(default)]
            stage: Vec<toml::Table>,
        }
        let syntax = |error: toml::de::Error| TextError::Syntax(error.to_string());
        let Stages { stage } = toml::from_str(text).map_err(syntax)?;
        let made = self.pipeline(&stage, env);
        made.map_err(|error| TextError::of(error, text))
    }
}

/// Reads the options of a stage.
fn read<O: DeserializeOwned>(table: toml::Table) -> Result<O, String> {
    // The error's second line says which option it is about.
    let one_line = |text: String| text.trim_end().replace('\n', " ");
    O::deserialize(table).map_err(|error| one_line(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::sink::Output;
    use crate::stage::{Batch, Stage};

    /// By how much numbers are multiplied beside the factor.
    struct Unit(u32);

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct ScaleOptions {
        factor: u32,
    }

    impl Default for ScaleOptions {
        fn default() -> Self {
            Self { factor: 2 }
        }
    }

    struct Scale(u32);

    impl Stage for Scale {
        type In = u32;
        type Out = u32;

        fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Output<u32>) {
            batch.drain().for_each(|n| out.push(n * self.0));
        }
    }

    fn registry() -> StageRegistry {
        let mut registry = StageRegistry::new();
        registry.register("scale", |options: ScaleOptions, env| {
            let Unit(unit) = *env.get::<Unit>()?;
            Ok(DynStage::new("scale", Scale(options.factor * unit)))
        });
        registry.describe::<ScaleOptions>("scale");
        registry.name_kind::<u32>("numbers");
        registry
    }

    fn tables(text: &str) -> Vec<toml::Table> {
        let config: toml::Table = text.parse().unwrap();
        config["stage"].clone().try_into().unwrap()
    }

    #[test]
    fn stages_are_made_by_name_from_their_environment() {
        let chain = tables("stage = [{ name = \"scale\" }, { name = \"scale\", factor = 5 }]");
        let mut env = StageEnv::new();
        let missing = registry().pipeline::<u32, u32>(&chain, &mut env).err();
        assert_eq!(
            missing.unwrap().to_string(),
            "stage `scale`: no `Unit` in the environment of the stages: insert it before the \
             pipeline is made"
        );
        env.insert(Unit(7));
        let mut pipeline = registry().pipeline::<u32, u32>(&chain, &mut env).unwrap();
        let (mut batch, mut out) = (Batch::default(), Vec::new());
        batch.push(3).unwrap();
        pipeline.process(&mut batch, &mut out);
        assert_eq!(out, [3 * (2 * 7) * (5 * 7)]);
    }

    #[test]
    fn kinds_have_the_names_that_they_were_given() {
        let mut env = StageEnv::new();
        env.insert(Unit(1));
        let chain = tables("stage = [{ name = \"scale\" }]");
        let error = registry().pipeline::<u32, char>(&chain, &mut env).err();
        assert_eq!(
            error.unwrap().to_string(),
            "the pipeline must make char, but its last stage, `scale`, makes numbers"
        );
    }

    #[test]
    fn an_error_has_the_line_of_its_stage() {
        let refusal = |text: &str| {
            let mut env = StageEnv::new();
            env.insert(Unit(1));
            let made = registry().pipeline_of_text::<u32, u32>(text, &mut env);
            made.err().unwrap().to_string()
        };
        let text = "# A comment.\n\n[[stage]]\nname = \"scale\"\n\n[[stage]]\nname = \"scael\"\n";
        assert_eq!(
            refusal(text),
            "[[stage]] in line 6: no stage `scael`; there are: scale"
        );
        let wrong = text.replace("scael", "scale\"\nfactor = \"x");
        assert_eq!(
            refusal(&wrong),
            "[[stage]] in line 6: stage `scale`: invalid type: string \"x\", expected u32 in `factor`"
        );
        assert_eq!(
            refusal(""),
            "[[stage]]: a pipeline needs at least one stage"
        );
        assert!(refusal("stage = 3").contains("line 1"));
        let mut env = StageEnv::new();
        env.insert(Unit(1));
        let text = text.replace("scael", "scale");
        let made = registry().pipeline_of_text::<u32, u32>(&text, &mut env);
        assert_eq!(made.unwrap().times().count(), 2);
    }

    #[test]
    fn a_table_is_completed_with_what_holds() {
        let table = tables("stage = [{ name = \"scale\" }]").remove(0);
        let completed = registry().complete(1, &table).unwrap();
        assert_eq!(completed["factor"].as_integer(), Some(2));
        let error = registry().complete(3, &"name = \"scael\"".parse().unwrap());
        let error = error.err().unwrap();
        assert_eq!(error.number(), Some(3));
        assert_eq!(error.to_string(), "no stage `scael`; there are: scale");
    }
}
