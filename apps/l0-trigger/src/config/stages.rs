//! The stages of a configuration: where they stand, what holds in them, what there can be.

use anyhow::{Error, Result};
use pollux_na62::stage_registry;
use pollux_pipelines::StageError;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use super::TriggerConfig;

/// The line of each `[[stage]]` in a text that is a configuration.
pub(super) fn lines(text: &str) -> Vec<usize> {
    #[derive(Default, Deserialize)]
    struct Stages {
        #[serde(default)]
        stage: Vec<Spanned<toml::Table>>,
    }
    let stages: Stages = toml::from_str(text).unwrap_or_default();
    let line = |stage: &Spanned<_>| 1 + text[..stage.span().start].matches('\n').count();
    stages.stage.iter().map(line).collect()
}

/// The schema of the array of stages: each of one of the kinds that there are.
pub(super) fn schema(of: &mut SchemaGenerator) -> Schema {
    let stages = stage_registry().schemas(of);
    let stages = stages.into_iter().map(|(name, schema)| {
        let mut schema = schema.to_value();
        let named = json!({
            "type": "string",
            "const": name,
            "description": "Which stage it is.",
        });
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.insert("name".into(), named);
        }
        schema["title"] = name.into();
        schema["required"] = json!(["name"]);
        schema
    });
    json_schema!({
        "type": "array",
        "minItems": 1,
        "items": { "oneOf": stages.collect::<Vec<_>>() },
    })
}

impl TriggerConfig {
    /// The configuration with all that it leaves out, as it holds.
    pub fn in_force(&self) -> Result<Self> {
        let mut whole = self.clone();
        let registry = stage_registry();
        for (number, stage) in (1..).zip(&mut whole.stages) {
            let completed = registry.complete(number, stage);
            *stage = completed.map_err(|error| self.at_stage(error))?;
            if stage.get("name") == Some(&"decompress".into()) {
                let boards = self.boards().into_iter().map(i64::from);
                stage.insert("boards".into(), boards.collect::<Vec<_>>().into());
            }
        }
        Ok(whole)
    }

    /// What is wrong with the stages, and in which line.
    pub(super) fn at_stage(&self, error: StageError) -> Error {
        let line = error
            .number()
            .and_then(|number| self.lines.get(number.checked_sub(1)?));
        let place = match line {
            Some(line) => format!("[[stage]] in line {line}"),
            None => "[[stage]]".into(),
        };
        Error::new(error).context(place)
    }
}
