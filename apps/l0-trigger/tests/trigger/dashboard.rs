//! The dashboard for Grafana shows what a program counts, by the names that it counts it under.

use std::collections::BTreeSet;

use crate::common::capture::{boards, record};
use crate::common::{Folder, pcap_port, start};
use serde_json::Value;

const DASHBOARD: &str = include_str!("../../../../docs/grafana/pollux.json");

/// What the toolbox serves and the trigger does not; it is looked at by the toolbox's own tests.
const OF_THE_TOOLBOX: &str = "pollux_frame_latency_seconds_bucket";

/// What is served while something is wrong with a board, as on a machine that holds the boards' loop
/// up; alerts ask for it.
const OF_FAULTS: &str = "pollux_stream_fault";

/// All strings that are queries, wherever they are.
fn queries<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "expr" || name == "query" => into.push(text),
                    _ => queries(value, into),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| queries(value, into)),
        _ => {}
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The metrics in a query.
fn metrics(query: &str) -> impl Iterator<Item = &str> {
    query
        .split(|c| !is_of_name(c))
        .filter(|word| word.starts_with("pollux_"))
}

/// What a run serves.
fn served(arguments: &[&str]) -> BTreeSet<String> {
    let metrics = ["--metrics", "127.0.0.1:0"];
    let mut running = start(&[arguments, &metrics].concat());
    let page = running.metrics().unwrap();
    running.signal("INT");
    running.wait().expect(0);
    let samples = page.lines().filter(|line| line.starts_with("pollux_"));
    let served: BTreeSet<_> = samples
        .filter_map(|line| line.split(|c| !is_of_name(c)).next())
        // Histograms are shown by their buckets alone.
        .filter(|name| !name.ends_with("_sum") && !name.ends_with("_count"))
        .filter(|name| *name != OF_FAULTS)
        .map(Into::into)
        .collect();
    assert!(served.len() > 10, "{page}");
    served
}

#[test]
fn every_metric_of_the_dashboard_is_served_and_the_other_way_round() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut all = Vec::new();
    queries(&dashboard, &mut all);
    let asked: BTreeSet<_> = all.iter().flat_map(|query| metrics(query)).collect();

    // With all that there is something to count of.
    let folder = Folder::new();
    let file = folder.arg("run.events");
    let demonstration = [
        "--events",
        "50000000",
        "--workers",
        "1",
        "--events-out",
        &file,
        "--output",
        "ejfat:127.0.0.1:9",
    ];
    let mut slow = boards(10_000);
    slow.rate = 1000;
    let capture = folder.path("boards.pcapng");
    record(&slow, &capture);
    let port = format!("{},pace=recorded", pcap_port(&capture));
    let receive_loops = ["--port", &port, "--rx-loops", "2", "--queues", "2"];
    let mut served = served(&demonstration);
    served.extend(self::served(&receive_loops));
    served.insert(OF_THE_TOOLBOX.into());
    let served: BTreeSet<_> = served.iter().map(String::as_str).collect();
    assert_eq!(asked, served);
}

/// The data source is chosen at the import, and no panels overlap.
#[test]
fn the_dashboard_is_whole() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + w <= 24, "{panel}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{panel}");
        }
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}");
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
        }
    }
}
