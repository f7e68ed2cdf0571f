//! `farm run` as its users meet it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Time-outs for a busy machine: nothing is sent again unless it was lost.
const PATIENT: &str = "[times]\ntimeout_us = 5_000_000\nsilence_us = 60_000_000\n";

/// Time-outs for runs that lose messages or members.
const QUICK: &str = "[times]\ntimeout_us = 100_000\nsilence_us = 1_000_000\n";

/// A farm with a configuration in a file of its own.
fn farm(config: &str, args: &str) -> (Command, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("farm.toml");
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_farm"));
    command.arg("run").args(args.split_whitespace());
    command.arg("--config").arg(path);
    (command, folder)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn output(config: &str, args: &str) -> Output {
    farm(config, args).0.output().unwrap()
}

fn read(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// The report of a run that must succeed.
fn report(config: &str, args: &str) -> Value {
    let output = output(config, &format!("{args} --json"));
    let report = read(&output);
    assert!(output.status.success(), "{}", text(&output.stderr));
    holds(&report);
    report
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// What must hold in every run.
fn holds(report: &Value) {
    assert_eq!(report["schema"], 1);
    let events = &report["events"];
    let triggered = number(&events["triggered"]);
    for key in ["built", "decided"] {
        assert_eq!(number(&events[key]), triggered, "{key}");
    }
    for key in ["lost", "twice"] {
        assert_eq!(number(&events[key]), 0, "{key}");
    }
    assert_eq!(events["in_order"], true);
    assert_eq!(report["messages"]["left"], 0);
    assert_eq!(report["messages"]["misrouted"], 0);
    assert_eq!(report["payload"]["wrong"], 0);
    assert_eq!(report["flow"]["errors"], 0);
    assert_eq!(report["ledger"]["balanced"], true);
    let sum = number(&events["complete"]) + number(&events["incomplete"]);
    assert_eq!(sum, triggered);
    for feeder in report["feeders"].as_array().unwrap() {
        let both = number(&feeder["fragments"]) + number(&feeder["missing"]);
        assert_eq!(both, triggered, "{feeder}");
    }
}

/// Each event was built once, with the fragments of all feeders.
fn is_whole(report: &Value) {
    let triggered = number(&report["events"]["triggered"]);
    assert_eq!(number(&report["events"]["complete"]), triggered);
    let nodes = report["nodes"].as_array().unwrap();
    let built: u64 = nodes.iter().map(|node| number(&node["events"])).sum();
    assert_eq!(built, triggered);
    let feeders = report["feeders"].as_array().unwrap();
    for feeder in feeders {
        assert_eq!(number(&feeder["fragments"]), triggered);
    }
    let checked = number(&report["payload"]["checked"]);
    assert_eq!(checked, triggered * feeders.len() as u64);
}

#[test]
fn all_events_are_built_and_decided_in_order() {
    for args in [
        "--events 3000 --loops 1",
        "--events 2000 --loops 3",
        "--events 4000 --pack 32 --loops 1",
        "--events 2001 --pack 7 --fragment 100 --loops 1 --mode wait",
        "--events 2000 --policy none --loops 1",
        "--events 2000 --policy credits --loops 1",
        "--events 2000 --policy slots --loops 1",
        "--events 2000 --policy slots --pack 4 --loops 2",
        "--events 500 --feeders 1 --nodes 1 --columns 1 --buffers 1 --loops 1",
        "--events 300 --feeders 64 --nodes 5 --columns 3 --buffers 2 --loops 1 --bypass 3",
        "--events 300 --fragment 0 --loops 1",
        "--events 200 --fragment 100k --buffers 1 --loops 1",
    ] {
        let report = report(PATIENT, args);
        is_whole(&report);
        assert_eq!(report["end"], "complete");
        assert_eq!(number(&report["events"]["resent"]), 0, "{args}");
        let transfers = report["feeders"].as_array().unwrap();
        let first = &transfers[0]["transfers"];
        assert!(transfers.iter().all(|feeder| feeder["transfers"] == *first));
        assert_eq!(report["ledger"]["dropped"], serde_json::json!({}));
        assert!(report["latency_us"]["mean"].as_f64().unwrap() > 0.0);
        assert!(report["rate_hz"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn columns_do_not_follow_themselves_at_a_rate() {
    for kind in ["regular", "poisson", "bunches"] {
        let args = format!("--events 400 --rate 4k --triggers {kind} --loops 1");
        let report = report(PATIENT, &args);
        is_whole(&report);
        assert_eq!(report["columns"]["repeated"], 0);
        // The first trigger is at the start.
        let rate = report["rate_hz"].as_f64().unwrap();
        assert!(rate < 8000.0, "{rate}");
    }
}

#[test]
fn standing_nodes_delay_no_others() {
    let report = report(PATIENT, "--events 2000 --suspend 3000 --loops 1");
    is_whole(&report);
    let nodes = report["nodes"].as_array().unwrap();
    let stood = |node: &Value| number(&node["suspended"]) > 0;
    // One at a time, one after another.
    assert!(nodes.iter().any(stood));
    let times: Vec<u64> = nodes.iter().map(|n| number(&n["suspended"])).collect();
    assert!(
        times.iter().max().unwrap() - times.iter().min().unwrap() <= 1,
        "{times:?}"
    );
}

#[test]
fn events_of_a_dead_node_go_to_others() {
    let report = report(QUICK, "--events 3000 --kill node:3@1000 --loops 1");
    let events = &report["events"];
    assert_eq!(events["complete"], events["triggered"]);
    let node = &report["nodes"][3];
    assert_eq!(
        (&node["dead"], &node["excluded"]),
        (&true.into(), &true.into())
    );
    assert!(number(&node["events"]) <= 1000);
    assert!(number(&events["resent"]) > 0);
}

#[test]
fn the_fragments_of_a_dead_feeder_are_missing() {
    for (pack, events, death) in [(1, 2000, 700), (8, 4000, 804)] {
        let args = format!("--events {events} --pack {pack} --kill feeder:5@{death} --loops 1");
        let report = report(QUICK, &args);
        // From the pack on in which it died.
        let missing = events - death / pack * pack;
        assert_eq!(number(&report["events"]["incomplete"]), missing);
        for feeder in report["feeders"].as_array().unwrap() {
            let dies = feeder["id"] == 5;
            assert_eq!(feeder["dead"], dies);
            assert_eq!(number(&feeder["missing"]), if dies { missing } else { 0 });
        }
    }
}

#[test]
fn a_feeder_dies_under_each_policy() {
    for policy in ["ring", "credits", "slots", "none"] {
        let args = format!("--events 1500 --policy {policy} --kill feeder:1@500 --loops 1");
        let report = report(QUICK, &args);
        let events = &report["events"];
        assert_eq!(report["feeders"][1]["dead"], true, "{policy}");
        assert_eq!(number(&events["decided"]), 1500, "{policy}");
        // An event that was assigned before may still get its fragment of a feeder that has sent ahead.
        let incomplete = number(&events["incomplete"]);
        assert!((900..=1100).contains(&incomplete), "{policy}: {events}");
    }
}

#[test]
fn damaged_messages_leave_the_same_events() {
    for args in [
        "--events 1500 --corrupt 5e-4",
        "--events 2000 --pack 16 --corrupt 2e-3",
    ] {
        for seed in [1, 2] {
            let report = report(QUICK, &format!("{args} --seed {seed} --loops 1"));
            let events = &report["events"];
            assert_eq!(events["complete"], events["triggered"]);
            assert!(number(&report["messages"]["damaged"]) > 0);
            let dropped = report["ledger"]["dropped"].as_object().unwrap();
            assert!(dropped.values().map(number).sum::<u64>() > 0);
        }
    }
}

#[test]
fn bounded_outputs_lose_frames_without_flow_control_alone() {
    let args = "--events 300 --fragment 1400 --switch 64k --loops 2";
    for policy in ["ring", "credits"] {
        let report = report(PATIENT, &format!("{args} --policy {policy}"));
        is_whole(&report);
        assert_eq!(lost_at_outputs(&report), 0, "{policy}");
    }
    // On a busy machine what is sent again meets the same full outputs, and the farm may stand still in
    // the end: it is the losses that count here.
    let report = read(&output(QUICK, &format!("{args} --policy none --json")));
    assert!(lost_at_outputs(&report) > 0);
    assert!(number(&report["ledger"]["dropped"]["output-full"]) > 0);
    assert_eq!(report["ledger"]["balanced"], true);
}

/// Frames that found the output of a switch full.
fn lost_at_outputs(report: &Value) -> u64 {
    let outputs = report["switch"]["outputs"].as_array().unwrap();
    assert_eq!(outputs.len(), 2 + 24 + 12);
    outputs
        .iter()
        .map(|output| number(&output["output_full"]))
        .sum()
}

#[test]
fn a_signal_ends_a_run_with_its_report() {
    for signal in [Signal::INT, Signal::TERM] {
        let (mut command, _folder) = farm(PATIENT, "--rate 2k --loops 1 --json");
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(600));
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let report = read(&output);
        holds(&report);
        is_whole(&report);
    }
}

#[test]
fn a_run_without_nodes_says_so() {
    let kills = "--events 500 --nodes 1 --columns 1 --kill node:0@100 --loops 1";
    let output = output(QUICK, &format!("{kills} --json"));
    assert_eq!(output.status.code(), Some(1));
    let report = read(&output);
    assert_eq!(report["end"], "stalled");
    let error = text(&output.stderr);
    assert!(
        error.contains("after 100: all nodes are excluded"),
        "{error}"
    );
}

#[test]
fn wrong_options_end_with_status_2() {
    for args in [
        "--columns 65",
        "--columns 0",
        "--fragment 2000 --slot 1000",
        "--kill node:3",
        "--policy fast",
        "--corrupt -1",
        "--rate 0",
    ] {
        let output = output(PATIENT, args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args}: {}",
            text(&output.stderr)
        );
        assert!(!text(&output.stderr).contains("panicked"));
    }
    let unknown = self::output("[farm]\nfeedres = 3\n", "");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("feedres"));
    let mut absent = Command::new(env!("CARGO_BIN_EXE_farm"));
    let absent = absent.args(["run", "--config", "/nowhere/farm.toml"]);
    let absent = absent.output().unwrap();
    assert_eq!(absent.status.code(), Some(2));
    assert!(text(&absent.stderr).contains("/nowhere/farm.toml"));
}

#[test]
fn the_configuration_is_printed_and_read() {
    let printed = output(
        "[farm]\nfeeders = 7\n",
        "--nodes 5 --rate 10k --print-config",
    );
    assert!(printed.status.success());
    let printed = text(&printed.stdout);
    for line in [
        "feeders = 7",
        "nodes = 5",
        "rate_hz = 10000.0",
        "columns = 6",
    ] {
        assert!(printed.contains(line), "{printed}");
    }
    let again = output(&printed, "--print-config");
    assert_eq!(text(&again.stdout), printed);
}

/// The answer of a server.
fn ask(address: &str, path: &str) -> String {
    let began = Instant::now();
    loop {
        if let Ok(mut stream) = TcpStream::connect(address) {
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            return answer;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "no server");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_is_shown() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let args = format!("--rate 1k --loops 1 --http {address} --json");
    let (mut command, _folder) = farm(PATIENT, &args);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(ask(&address, "/").contains("<title>Pollux: farm</title>"));
    std::thread::sleep(Duration::from_millis(300));
    let metrics = ask(&address, "/metrics");
    for name in [
        "pollux_farm_decided_total",
        "pollux_farm_free_buffers",
        "pollux_farm_latency",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    let run = ask(&address, "/run.json");
    let run: Value = serde_json::from_str(run.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(run["free"].as_array().unwrap().len(), 6);
    assert!(ask(&address, "/page.js").contains("tiles"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
}
