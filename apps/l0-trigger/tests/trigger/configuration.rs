//! The configuration: its examples, its reference, and what is refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::capture::{boards, record};
use crate::common::{Folder, number, pcap_port, run};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// The examples of the trigger's configuration: other programs have theirs in the same place.
fn examples() -> Vec<PathBuf> {
    let folder = fs::read_dir(Path::new(DOCS).join("examples")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let of_trigger = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        toml::from_str::<toml::Table>(&text)
            .unwrap()
            .contains_key("trigger")
    };
    paths.filter(of_trigger).collect()
}

fn printed(config: &str) -> String {
    let ended = run(&["--config", config, "--print-config"]).expect(0);
    assert_eq!(ended.stderr, "");
    ended.stdout
}

fn schema() -> Value {
    serde_json::from_str(&run(&["--print-schema"]).expect(0).stdout).unwrap()
}

#[test]
fn examples_are_valid_and_what_is_printed_of_them_means_the_same() {
    let (folder, examples) = (Folder::new(), examples());
    for name in ["rich", "replay", "merge", "rules"] {
        let there = examples
            .iter()
            .any(|path| path.file_stem().unwrap() == name);
        assert!(there, "no {name}.toml in {examples:?}");
    }
    for path in examples {
        let config = path.to_str().unwrap();
        let ended = run(&["--config", config, "--port", "null", "--check"]).expect(0);
        assert_eq!(ended.stderr, "", "{config}");
        let whole = printed(config);
        let again = folder.write("whole.toml", &whole);
        assert_eq!(printed(&again), whole, "{config}");
        let given: toml::Table = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let whole: toml::Table = toml::from_str(&whole).unwrap();
        holds(config, &given.into(), &whole.into());
    }
}

/// All that is in one configuration is in the other, and as there.
#[track_caller]
fn holds(at: &str, given: &toml::Value, whole: &toml::Value) {
    use toml::Value::{Array, Float, Integer, Table};
    match (given, whole) {
        (Table(given), Table(whole)) => {
            for (key, value) in given {
                holds(&format!("{at}: {key}"), value, &whole[key]);
            }
        }
        (Array(given), Array(whole)) => {
            assert_eq!(given.len(), whole.len(), "{at}");
            for (given, whole) in given.iter().zip(whole) {
                holds(at, given, whole);
            }
        }
        (&Integer(given), Float(_)) => assert_eq!(&Float(given as f64), whole, "{at}"),
        _ => assert_eq!(given, whole, "{at}"),
    }
}

#[test]
fn what_is_printed_has_all_that_is_left_out() {
    let built_in = run(&["--print-config"]).expect(0).stdout;
    let folder = Folder::new();
    assert_eq!(printed(&folder.write("empty.toml", "")), built_in);
    assert_eq!(printed(&folder.write("whole.toml", &built_in)), built_in);
    let short = folder.write("short.toml", "[[stage]]\nname = \"decompress\"\n[[stage]]\nname = \"merge\"\n[[stage]]\nname = \"rings\"\nroad_mm = 10.3\n[[stage]]\nname = \"decide\"\n");
    let merged = printed(&short);
    assert!(merged.contains("road_mm = 10.3\n"), "{merged}");
    let chain = |readers: &str| {
        format!(
            "stage = [{readers}, {{ name = 'build' }}, {{ name = 'rings' }}, {{ name = 'decide', \
             rule = [{{ name = 'two', min_rings = 0, min_sources = 2 }}] }}]"
        )
    };
    let mep = chain("{ name = 'read-mep' }, { name = 'read-tel62' }");
    let mep = printed(&folder.write("mep.toml", mep));
    let selected = "select = [{ source = 2, mask = 1, value = 1 }]";
    let mtp = chain(&format!("{{ name = 'read-mtp', {selected} }}"));
    let mtp = printed(&folder.write("mtp.toml", mtp));
    // Each key of the reference, unless leaving it out has a meaning of its own.
    let left_out = ["mac", "numa_node", "disk", "group", "first_pm", "detectors"];
    let mut keys = BTreeSet::new();
    for table in tables(&schema()) {
        // Only there where fragments are put together, and where there are outputs.
        if ["reassembly", "output"].contains(&table.name.as_str()) {
            continue;
        }
        keys.extend(
            table
                .keys()
                .filter(|key| !left_out.contains(&key.as_str()))
                .cloned(),
        );
    }
    assert!(keys.len() > 40, "{keys:?}");
    for key in keys {
        let line = format!("\n{key} = ");
        let table = format!("\n[[stage.{key}]]");
        assert!(
            [&built_in, &merged, &mep, &mtp]
                .iter()
                .any(|text| text.contains(&line) || text.contains(&table)),
            "{key}"
        );
    }
}

#[test]
fn the_reference_is_what_the_program_says() {
    for (option, name) in [
        ("--print-schema", "l0-trigger.schema.json"),
        ("--print-schema=markdown", "configuration.md"),
    ] {
        let there = fs::read_to_string(Path::new(DOCS).join(name)).unwrap();
        let now = run(&[option]).expect(0).stdout;
        assert!(
            there == now,
            "docs/{name} is out of date: l0-trigger {option} > docs/{name}"
        );
    }
}

/// A table of the reference.
struct Table {
    /// What it is called in messages.
    name: String,
    properties: serde_json::Map<String, Value>,
}

impl Table {
    fn keys(&self) -> impl Iterator<Item = &String> {
        self.properties.keys()
    }

    /// A configuration with a line more in this table, and all that it needs.
    fn with(&self, line: &str) -> String {
        let key = line.split(' ').next().unwrap();
        let rule = if key == "name" { "" } else { "name = \"x\"\n" };
        match self.name.as_str() {
            "answer" if key == "to" => format!("[answer]\n{line}"),
            "answer" => format!("[answer]\nto = \"nobody\"\n{line}"),
            "stream" if key == "udp_port" => format!("[[stream]]\n{line}"),
            "stream" => format!("[[stream]]\nudp_port = 1\n{line}"),
            "output" => format!("[[output]]\nspec = \"ejfat:127.0.0.1:1\"\n{line}"),
            "reassembly" => format!("[trigger]\nreassemble = true\n[reassembly]\n{line}"),
            name @ ("trigger" | "memory") => format!("[{name}]\n{line}"),
            stage => {
                let before: &[&str] = match stage {
                    "read-mep" | "read-tel62" => &["read-mep", "read-tel62", "build"],
                    "read-mtp" | "select" => &["read-mtp", "build"],
                    "merge" => &["decompress", "merge"],
                    _ => &["decompress", "build"],
                };
                let stages = before.iter().chain(&["rings", "decide"]).map(|&name| {
                    let more = match stage {
                        "rule" if name == "decide" => format!("[[stage.rule]]\n{rule}{line}\n"),
                        "select" if name == "read-mtp" => {
                            let others = ["source", "mask", "value"].iter();
                            let others = others.filter(|&&other| other != key);
                            let others = others.map(|other| format!("{other} = 1\n"));
                            let others: String = others.collect();
                            format!("[[stage.select]]\n{others}{line}\n")
                        }
                        _ if stage == name => format!("{line}\n"),
                        _ => String::new(),
                    };
                    format!("[[stage]]\nname = \"{name}\"\n{more}")
                });
                stages.collect()
            }
        }
    }
}

/// All tables of a schema.
fn tables(schema: &Value) -> Vec<Table> {
    let table = |name: &str, of: &Value| Table {
        name: name.into(),
        properties: of["properties"].as_object().unwrap().clone(),
    };
    let mut tables = Vec::new();
    for (name, value) in schema["properties"].as_object().unwrap() {
        match &value["items"]["oneOf"] {
            Value::Array(stages) => {
                for stage in stages {
                    tables.push(table(stage["title"].as_str().unwrap(), stage));
                    for name in ["rule", "select"] {
                        let inner = &stage["properties"][name]["items"];
                        if inner.is_object() {
                            tables.push(table(name, inner));
                        }
                    }
                }
            }
            _ if value["items"].is_object() => tables.push(table(name, &value["items"])),
            _ => tables.push(table(name, value)),
        }
    }
    assert_eq!(tables.len(), 16);
    tables
}

#[test]
fn every_table_refuses_keys_that_it_does_not_have_and_names_those_that_it_has() {
    let folder = Folder::new();
    for table in tables(&schema()) {
        let config = folder.write("unknown.toml", table.with("unheard_of = 1"));
        let ended = run(&["--config", &config, "--check"]);
        let ended = ended.expect_usage(&["unknown field `unheard_of`"]);
        let of_stages = [
            "decompress",
            "read-mep",
            "read-tel62",
            "read-mtp",
            "build",
            "merge",
            "rings",
            "decide",
        ];
        for key in table.keys() {
            // The name of a stage is what its keys go by.
            if key != "name" || !of_stages.contains(&table.name.as_str()) {
                let (key, text) = (format!("`{key}`"), &ended.stderr);
                assert!(text.contains(&key), "{}: no {key} in {text}", table.name);
            }
        }
    }
}

#[test]
fn ranges_of_the_reference_are_those_of_the_program() {
    let (folder, mut tried) = (Folder::new(), 0);
    let is_taken = |text: &str| {
        let config = folder.write("range.toml", text);
        let ended = run(&["--config", &config, "--print-config"]);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        ended.status.success()
    };
    for table in tables(&schema()) {
        for (key, value) in &table.properties {
            let bounds = [
                ("minimum", -1.0),
                ("maximum", 1.0),
                ("exclusiveMinimum", 0.0),
                ("exclusiveMaximum", 0.0),
            ];
            for (bound, beyond) in bounds {
                let Some(end) = value[bound].as_f64() else {
                    continue;
                };
                let outside = table.with(&format!("{key} = {}", end + beyond));
                assert!(!is_taken(&outside), "taken: {outside}");
                tried += 1;
            }
        }
    }
    assert!(tried > 50, "{tried}");
}

/// A capture of the emulated boards, replayed with the examples that fit it.
#[test]
fn the_examples_decide_a_capture() {
    let folder = Folder::new();
    let capture = folder.path("run.pcapng");
    record(&boards(2000), &capture);
    for (name, more) in [
        ("replay", &[][..]),
        ("merge", &[]),
        ("rules", &["--workers", "2"]),
    ] {
        let config = format!("{DOCS}/examples/{name}.toml");
        let port = pcap_port(&capture);
        let arguments = [&["--port", &port, "--config", &config], more].concat();
        let ended = run(&arguments).expect(0);
        let events = &ended.report()["events"];
        // Windows without a hit are no events of `merge`.
        let built = if name == "merge" {
            1700..=2000
        } else {
            2000..=2000
        };
        assert!(built.contains(&number(events, "built")), "{name}: {events}");
        assert!(number(events, "accepted") > 0, "{name}: {events}");
    }
}

#[test]
fn a_replay_without_a_destination_says_so_once_and_succeeds() {
    let folder = Folder::new();
    let capture = folder.path("run.pcapng");
    record(&boards(320), &capture);
    let port = pcap_port(&capture);
    let ended = run(&["--port", &port]).expect(0);
    let said: Vec<_> = ended
        .stderr
        .matches("no answers are sent: a capture")
        .collect();
    assert_eq!(said.len(), 1, "{}", ended.stderr);
    assert_eq!(number(&ended.report()["answers"], "untold"), 320);
    let sends = format!("{port},tx={}", folder.arg("answers.pcapng"));
    let ended = run(&["--port", &sends]).expect(0);
    assert!(!ended.stderr.contains("nowhere"), "{}", ended.stderr);
    assert_eq!(number(&ended.report()["answers"], "sent"), 320);
}
