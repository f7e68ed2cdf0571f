//! Reference of the configuration: a JSON schema for editors and machines, and a page for people
//! that is generated from it (docs/configuration.md).

use std::fmt::{self, Write as _};

use clap::ValueEnum;
use pollux_pipelines::registry::StageRegistry;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::config::{TriggerConfig, schemas};

/// Formats of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A JSON schema
    Json,
    /// A page with a table of keys for each table
    Markdown,
}

/// The printed reference.
pub fn reference(form: Form, stages: &StageRegistry) -> String {
    let schema = schema(stages);
    match form {
        Form::Json => format!("{schema:#}\n"),
        Form::Markdown => page(&schema),
    }
}

/// The JSON schema of a configuration, without references, so that each key has all its properties
/// in one place.
pub fn schema(stages: &StageRegistry) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
    });
    let mut generator = settings.into_generator();
    let kinds = schemas(stages, &mut generator);
    let mut schema = generator.into_root_schema_for::<TriggerConfig>().to_value();
    schema["properties"]["stage"]["items"] = kinds;
    tidy(&mut schema);
    schema["title"] = "Configuration of l0-trigger".into();
    schema
}

/// TOML has no null: a nullable key is optional. A required key has no default. Texts are not
/// broken where the source is.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = one_line(text);
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = &mut types[..] {
                    let one = one.take();
                    object.insert("type".into(), one);
                }
            }
            let required = object.get("required").and_then(Value::as_array).cloned();
            for name in required.iter().flatten().filter_map(Value::as_str) {
                if let Some(Value::Object(properties)) = object.get_mut("properties")
                    && let Some(Value::Object(property)) = properties.get_mut(name)
                {
                    property.remove("default");
                }
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        _ => {}
    }
}

const HEAD: &str = "\
# Configuration of l0-trigger

This page is written by `l0-trigger --print-schema=markdown`, and `l0-trigger.schema.json` beside it by `l0-trigger --print-schema`, from the types that the program reads its configuration into: editors that know JSON schemas of TOML files (taplo, Even Better TOML) complete and check by it, with `#:schema l0-trigger.schema.json` as a file's first line. `l0-trigger --config FILE --check` checks a file, and `--print-config` prints the configuration in force with all that it leaves out. Examples, which tests run: [`examples/`](examples).

`l0-trigger --config FILE` reads TOML. Each table, and each key, may be left out unless it is required; a key that is not here is refused, with those that there are.
";

fn page(schema: &Value) -> String {
    let mut page = HEAD.to_owned();
    // Writing to a string cannot fail.
    let _ = tables(&mut page, schema);
    page
}

/// A section for each table, in the order of `--print-config`; then those that the defaults leave out.
fn tables(page: &mut String, schema: &Value) -> fmt::Result {
    let order = toml::Table::try_from(TriggerConfig::default()).unwrap_or_default();
    let absent = schema["properties"].as_object().into_iter().flatten();
    let absent = absent
        .map(|(name, _)| name)
        .filter(|name| !order.contains_key(*name));
    for name in order.keys().chain(absent) {
        let table = &schema["properties"][name];
        match table.get("items") {
            None => chapter(page, &format!("`[{name}]`"), table, table)?,
            Some(items) if is_table(items) => {
                chapter(page, &format!("`[[{name}]]`"), table, items)?;
            }
            Some(items) => {
                writeln!(page, "\n## `[[{name}]]`\n\n{}", text(table, "description"))?;
                for kind in items["oneOf"].as_array().into_iter().flatten() {
                    stage(page, name, kind)?;
                }
            }
        }
    }
    Ok(())
}

/// A section for a kind of stage, and for its tables.
fn stage(page: &mut String, name: &str, kind: &Value) -> fmt::Result {
    let title = format!("`[[{name}]]` with `name = \"{}\"`", text(kind, "title"));
    chapter(page, &title, kind, kind)?;
    for (inner, table) in properties(kind) {
        if let Some(items) = table.get("items").filter(|items| is_table(items)) {
            chapter(page, &format!("`[[{name}.{inner}]]`"), table, items)?;
        }
    }
    Ok(())
}

/// Description of a table, and its keys.
fn chapter(page: &mut String, title: &str, about: &Value, table: &Value) -> fmt::Result {
    writeln!(page, "\n## {title}\n\n{}\n", text(about, "description"))?;
    writeln!(page, "| key | type | unit | default | range | meaning |")?;
    writeln!(page, "| --- | --- | --- | --- | --- | --- |")?;
    let required = table["required"].as_array();
    let is_required =
        |key: &str| required.is_some_and(|names| names.iter().any(|name| name == key));
    let (first, rest): (Vec<_>, _) = properties(table).partition(|(key, _)| is_required(key));
    for (key, value) in first.into_iter().chain::<Vec<_>>(rest) {
        let array_of_tables = value.get("items").is_some_and(is_table);
        let cells = [
            format!("`{key}`"),
            if array_of_tables {
                "tables".into()
            } else {
                kind(value)
            },
            text(value, "x-unit").into(),
            if is_required(key) {
                "required".into()
            } else {
                default(value, array_of_tables)
            },
            range(value),
            meaning(value),
        ];
        writeln!(page, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn properties(table: &Value) -> impl Iterator<Item = (&String, &Value)> {
    table
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

fn is_table(value: &Value) -> bool {
    value.get("properties").is_some()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The choices of an enumeration, each with its description.
fn choices(value: &Value) -> Vec<(&Value, &str)> {
    let plain = value
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let plain = plain.map(|choice| (choice, ""));
    let told = value
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let told = told.filter_map(|choice| Some((choice.get("const")?, text(choice, "description"))));
    let only = value.get("const").map(|choice| (choice, ""));
    plain.chain(told).chain(only).collect()
}

fn kind(value: &Value) -> String {
    match text(value, "type") {
        "" if !choices(value).is_empty() => "string".into(),
        "array" => match (value.get("minItems"), value.get("maxItems")) {
            (Some(few), Some(many)) if few == many => {
                format!("array of {few} {}s", text(&value["items"], "type"))
            }
            _ => format!("array of {}s", text(&value["items"], "type")),
        },
        "number" => "float".into(),
        simple => simple.into(),
    }
}

fn default(value: &Value, is_long: bool) -> String {
    match value.get("default") {
        Some(_) if is_long => "see right".into(),
        Some(default) => format!("`{default}`"),
        None => match text(value, "x-default") {
            "" => String::new(),
            default => format!("`{default}`"),
        },
    }
}

fn range(value: &Value) -> String {
    let choices = choices(value);
    if !choices.is_empty() {
        let all: Vec<_> = choices
            .iter()
            .map(|(choice, _)| format!("`{choice}`"))
            .collect();
        return all.join(", ");
    }
    let (low, high, of) = match text(value, "type") {
        "array" if value.get("minItems") == value.get("maxItems") => return String::new(),
        "array" => ("minItems", "maxItems", " of them"),
        "string" => ("minLength", "maxLength", " characters"),
        _ => ("minimum", "maximum", ""),
    };
    let bound = |key: &str| value.get(key).and_then(Value::as_f64);
    let (above, below) = (bound("exclusiveMinimum"), bound("exclusiveMaximum"));
    match (bound(low), bound(high), above, below) {
        (Some(low), Some(high), ..) => format!("{low} to {high}{of}"),
        (Some(low), None, ..) => format!("{low} or more{of}"),
        (None, Some(high), ..) => format!("up to {high}{of}"),
        (None, None, Some(above), Some(below)) => format!("above {above}, below {below}"),
        (None, None, Some(above), None) => format!("above {above}"),
        (None, None, None, Some(below)) => format!("below {below}"),
        (None, None, None, None) => String::new(),
    }
}

fn meaning(value: &Value) -> String {
    let mut meaning = text(value, "description").to_owned();
    for (choice, what) in choices(value)
        .into_iter()
        .filter(|(_, what)| !what.is_empty())
    {
        meaning = format!("{meaning} `{choice}`: {what}");
    }
    meaning.replace('|', "\\|")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
