//! The stages of a configuration text: line numbers, and schema.

use pollux_pipelines::registry::StageRegistry;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The schema of the array of stages, without [their kinds](schemas).
pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "minItems": 1,
        "items": {},
    })
}

/// The schema of a stage: one of the kinds of a registry.
pub fn schemas(stages: &StageRegistry, of: &mut SchemaGenerator) -> Value {
    let kinds = stages.schemas(of).into_iter().map(|(name, schema)| {
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
    json!({ "oneOf": kinds.collect::<Vec<_>>() })
}
