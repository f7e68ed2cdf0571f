//! `farm sim` as its users meet it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn farm(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farm"));
    command.arg("sim").args(args);
    command
}

fn run(args: &[&str]) -> Output {
    farm(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The report on standard output.
fn report(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

const KEYS: [&str; 14] = [
    "rate_hz",
    "utilisation",
    "gbps",
    "lost",
    "retries",
    "wait_mean_ns",
    "latency_us",
    "system_us",
    "bus_idle",
    "busy_mean",
    "queue_peak_bytes",
    "wall_s",
    "hash",
    "settings",
];

#[test]
fn every_scenario_reports_every_key() {
    for (scenario, set) in [
        ("queue", "events=1000"),
        ("crossbar", "events=100"),
        ("ethernet", "events=100"),
        ("run3", "ports=20"),
        ("thesis", "events=100"),
        ("prototype", "events=100"),
    ] {
        let found = report(&[scenario, "--set", set]);
        for key in KEYS {
            assert!(found.get(key).is_some(), "{scenario}: {key}");
        }
        for key in ["mean", "p50", "p99", "max"] {
            assert!(found["latency_us"][key].as_f64().unwrap() > 0.0);
        }
        assert_eq!(found["end"], "complete");
        assert_eq!(found["schema"], 1);
        assert_eq!(found["scenario"], scenario);
    }
}

#[test]
fn one_seed_has_one_hash() {
    let hash = |seed: &str| {
        let args = [
            "crossbar",
            "--set",
            "events=500",
            "--policy",
            "none",
            "--seed",
            seed,
        ];
        report(&args)["hash"].as_str().unwrap().to_owned()
    };
    assert_eq!(hash("5"), hash("5"));
    assert_ne!(hash("5"), hash("6"));
    assert_eq!(hash("5").len(), 16);
}

#[test]
fn the_help_names_scenarios_policies_and_parameters() {
    let help = text(&run(&["--help"]).stdout);
    for word in [
        "queue: one server",
        "--policy slots|credits|ring|none",
        "service_ns=465",
        "a number from 0.001 to 0.999",
        "barrier=on",
        "Exit status",
    ] {
        assert!(help.contains(word), "{word}");
    }
}

#[test]
fn wrong_requests_have_status_2_and_a_remedy() {
    for (args, expected) in [
        (
            &["queue", "--set", "load=1"][..],
            "load=1: give a number from 0.001 to 0.999",
        ),
        (
            &["crossbar", "--set", "port=1"],
            "there are ports, nodes, traffic",
        ),
        (
            &["crossbar", "--set", "ports"],
            "write KEY=VALUE, as ports=8",
        ),
        (
            &["queue", "--policy", "ring"],
            "scenario queue has no policies: leave it out",
        ),
        (&["run3", "--set", "ports=30"], "a multiple of leaf=20"),
        (&["nowhere"], "invalid value"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("missing/x.json").display().to_string();
    assert_eq!(run(&["queue", "--json", &file]).status.code(), Some(1));
}

#[test]
fn a_signal_ends_it_with_the_report_so_far() {
    let args = ["crossbar", "--set", "events=1000000000", "--json"];
    let child = farm(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // Signals are handled before the work begins, and the work lasts hours.
    std::thread::sleep(Duration::from_secs(3));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(began.elapsed() < Duration::from_mins(1));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["end"], "stopped");
    assert!(found["events"]["unfinished"].as_u64().unwrap() > 0);
    assert!(text(&output.stderr).contains(" of 1000000000 events, "));
}
