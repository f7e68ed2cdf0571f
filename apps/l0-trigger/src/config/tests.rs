//! Tests of the configuration: values and refusals.

#![allow(clippy::unwrap_used)]

use pollux_mempool::RegionError;
use pollux_mempool::region::Lock;

use pollux_na62::stage_registry;

use super::*;

fn from_toml(text: &str) -> Result<TriggerConfig> {
    TriggerConfig::from_toml(text, &stage_registry())
}

#[test]
fn the_built_in_configuration_is_valid() {
    TriggerConfig::default()
        .validate(&stage_registry())
        .unwrap();
    assert_eq!(from_toml("").unwrap().streams.len(), 4);
}

#[test]
fn mistakes_are_named() {
    let error = |text: &str| format!("{:#}", from_toml(text).unwrap_err());
    assert!(error("[trigger]\nbugdet_us = 5").contains("unknown field `bugdet_us`"));
    assert!(error("[trigger]\nbudget_us = 0").contains("1 to 60000000"));
    assert!(error("stream = []").contains("1 to 16"));
    let twice = error("[[stream]]\nudp_port = 7\n[[stream]]\nudp_port = 7");
    assert!(
        twice.contains("UDP port 7 leads to stream 0 and to stream 1"),
        "{twice}"
    );
    assert!(error("[answer]\nto = \"nowhere\"").contains("invalid"));
    assert!(error("[answer]\nto = \"1.2.3.4:5\"\nmac = \"x\"").contains("answer.mac = `x`"));
    assert!(error("[memory]\nbuffers = 1").contains("1024 to 4194304"));
    let pages = error("[memory]\npages = \"3M\"");
    assert!(
        pages.contains("`3M`") && pages.contains("`auto`, `4K`, `2M`, `1G`"),
        "{pages}"
    );
    assert!(error("[memory]\nlock = true").contains("lock = true"));
    assert!(error("[reassembly]").contains("trigger.reassemble = true"));
    let reassembly = |bounds: &str| {
        error(&format!(
            "[trigger]\nreassemble = true\n[reassembly]\n{bounds}"
        ))
    };
    assert!(reassembly("timeout_ms = 0").contains("timeout_ms = 0: it must be 1 to 60000"));
    assert!(reassembly("fragments = 2000").contains("2 to 1024"));
    assert!(reassembly("buffers = 4097").contains("at most 4096 for each port"));
    assert!(error("[memory]\nlock = \"never\"").contains("`try` or `require`"));
    assert!(error("[memory]\nnuma_node = -1").contains("-1"));
}

/// Each block of docs/operations.md with stages, unchanged.
#[test]
fn what_the_documents_say_about_stages_is_so() {
    let page = include_str!("../../../../docs/operations.md");
    let (_, told) = page
        .split_once("### What the other stages can be told")
        .unwrap();
    let (told, _) = told.split_once("### When a board is wrong").unwrap();
    let indented = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let (build, merge) = told.split_once("In the place of `build`").unwrap();
    let mut others = merge.split("In the place of `decompress`");
    let merge = others.next().unwrap();
    let (build, merge) = (indented(build), indented(merge));
    let stage = |config: &TriggerConfig, name: &str| {
        let mut stages = config.stages.iter();
        stages.position(|stage| stage.get("name") == Some(&name.into()))
    };
    let mut config = from_toml(&build).unwrap();
    let place = stage(&config, "build").unwrap();
    let other: toml::Table = toml::from_str(&merge).unwrap();
    config.stages[place] = other["stage"][0].as_table().unwrap().clone();
    assert_eq!(stage(&config, "merge"), Some(place));
    config.validate(&stage_registry()).unwrap();
    for (names, other) in [
        (&["read-mep", "read-tel62"][..], others.next()),
        (&["read-mtp"], others.next()),
    ] {
        let readers: toml::Table = toml::from_str(&indented(other.unwrap())).unwrap();
        let readers = readers["stage"].as_array().unwrap();
        let mut config = from_toml(&build).unwrap();
        let readers = readers
            .iter()
            .map(|stage| stage.as_table().unwrap().clone());
        config.stages.splice(..1, readers);
        config.validate(&stage_registry()).unwrap();
        let places = names.iter().map(|name| stage(&config, name));
        assert!(places.eq((0..names.len()).map(Some)));
    }
    // An unknown key would have been refused.
    config.stages[place].insert("windows".into(), 1.into());
    assert!(config.validate(&stage_registry()).is_err());
}

#[test]
fn a_node_without_memory_is_refused_with_those_that_have_some() {
    let error = from_toml("[memory]\nnuma_node = 900").unwrap_err();
    assert!(matches!(
        error.downcast_ref(),
        Some(RegionError::NoSuchNode { node: 900, .. })
    ));
    let text = format!("{error:#}");
    assert!(
        text.contains("memory.numa_node = 900") && text.contains("nodes with memory: 0"),
        "{text}"
    );
}

#[test]
fn memory_is_what_the_file_asks_for() {
    let text = "[memory]\nbuffers = 2048\npages = \"4K\"\nnuma_node = 0\nlock = \"require\"";
    let pool = from_toml(text).unwrap().memory.pool();
    assert_eq!((pool.buffers, pool.data_room), (2048, 2048));
    assert_eq!(
        (pool.pages, pool.numa_node, pool.lock),
        (PageSize::Kib4, Some(0), Lock::Require)
    );
}

#[test]
fn what_the_documents_say_about_fragments_is_so() {
    let page = include_str!("../../../../docs/operations.md");
    let (_, told) = page.split_once("### Datagrams in fragments").unwrap();
    let (told, _) = told.split_once("## 5.").unwrap();
    let lines = told.lines().filter_map(|line| line.strip_prefix("    "));
    let block = lines.collect::<Vec<_>>().join("\n");
    let config = from_toml(&block).unwrap();
    let bounds = config.reassembly(1).unwrap();
    assert_eq!(bounds, Some(ReassemblyConfig::default()));
    let left_out = from_toml("[trigger]\nreassemble = true").unwrap();
    assert_eq!(left_out.reassembly(1).unwrap(), bounds);
}

#[test]
fn fragments_have_a_quarter_of_the_buffers_at_most() {
    let buffers = |text: &str, ports| {
        let config = from_toml(text).unwrap();
        config
            .reassembly(ports)
            .unwrap()
            .map(|bounds| bounds.buffers)
    };
    let on = "[trigger]\nreassemble = true\n";
    assert_eq!(buffers("", 1), None);
    assert_eq!(buffers(on, 1), Some(1024));
    assert_eq!(buffers(on, 8), Some(512));
    let few = format!("{on}[memory]\nbuffers = 1024");
    assert_eq!(buffers(&few, 1), Some(256));
    let chosen = format!("{on}[reassembly]\nbuffers = 2048");
    assert_eq!(buffers(&chosen, 2), Some(2048));
    let config = from_toml(&chosen).unwrap();
    assert!(config.reassembly(3).is_err());
}

/// The example of docs/operations.md: one port, two groups.
#[test]
fn what_the_documents_say_about_groups_is_so() {
    let page = include_str!("../../../../docs/operations.md");
    let (_, told) = page.split_once("## 11. Multicast").unwrap();
    let (told, _) = told.split_once("A stream with a group").unwrap();
    let lines = told.lines().filter_map(|line| line.strip_prefix("    "));
    let config = from_toml(&lines.collect::<Vec<_>>().join("\n")).unwrap();
    let groups = [[239, 1, 2, 3], [239, 1, 2, 4]].map(Ipv4Addr::from);
    assert_eq!(config.groups(), groups);
    assert_eq!(config.streams.len(), 2);
}
