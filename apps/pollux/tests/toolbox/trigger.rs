//! What `pollux replay` says that it did, and what the trigger says that it saw, to the frame.

use std::fs;
use std::path::Path;
use std::process::Command;

use pollux_pmd::net::{ParseOptions, Parsed, parse};
use pollux_pmd_testkit::netns::Cable;
use serde_json::Value;

use crate::metrics::above;
use crate::programs::program;
use crate::support::{Folder, Running, packets, reported, text};

#[track_caller]
fn ran(program: &Path, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        text(&output.stderr)
    );
}

/// Frames of the recording, a quarter of them each board's.
const FRAMES: u64 = 1600;

/// A capture of four boards: so close that a frame which comes behind the next one of
/// its board is in time for its events, which wait 300 us.
fn recording(folder: &Folder) -> String {
    let path = folder.path("boards.pcapng").to_str().unwrap().to_owned();
    let run = ["--port", &format!("pcap:tx={path}"), "--quiet"];
    let size = ["--events", "6400", "--events-per-frame", "16"];
    ran(&program("pollux-emulator"), &[&run[..], &size].concat());
    path
}

/// Replays with faults; the reports of both.
fn both(folder: &Folder, recording: &str, faults: &str) -> (Value, Value) {
    let sink = folder.sink("faulty.pcapng");
    let mut args = vec![recording, &sink];
    args.extend(faults.split_whitespace());
    let sent = reported("replay", &args, 0);
    let report = folder.path("trigger.json");
    let spec = format!("pcap:rx={}", folder.path("faulty.pcapng").display());
    let run = [
        "--port",
        &spec,
        "--quiet",
        "--report",
        report.to_str().unwrap(),
    ];
    ran(&program("l0-trigger"), &run);
    let seen = std::fs::read(report).unwrap();
    (sent, serde_json::from_slice(&seen).unwrap())
}

/// Frames before the first and behind the last of each board that arrived intact: no number of
/// another frame tells of them. The sequence number is at byte 8 of the payload
/// (docs/formats/rich-hits.md).
fn unseen(capture: &Path) -> u64 {
    let mut seen = std::collections::BTreeMap::new();
    for (_, frame) in packets(capture) {
        let parsed = parse(&frame, frame.len(), &ParseOptions::default());
        if let Ok(Parsed::Udp(udp)) = parsed {
            let sequence = udp.payload(&frame)[8..12].try_into().unwrap();
            let sequence = u64::from(u32::from_le_bytes(sequence));
            let (first, last) = seen.entry(udp.dst_port).or_insert((sequence, sequence));
            (*first, *last) = (sequence.min(*first), sequence.max(*last));
        }
    }
    let ends = seen
        .values()
        .map(|(first, last)| first + (FRAMES / 4 - 1 - last));
    ends.sum()
}

/// Compares them, cause by cause.
#[track_caller]
fn agree(faults: &str) -> (Value, Value) {
    let folder = Folder::new();
    let (sent, seen) = both(&folder, &recording(&folder), faults);
    compare(&folder, faults, &sent, &seen);
    (sent, seen)
}

#[track_caller]
fn compare(folder: &Folder, faults: &str, sent: &Value, seen: &Value) {
    let did = |key: &str| sent[key].as_u64().unwrap();
    assert_eq!(did("read"), FRAMES);
    assert_eq!(seen["ledger"]["from_wire"], sent["sent"]);
    // Delays are longer than events wait.
    let causes = [
        ("bad-checksum", did("corrupted")),
        ("duplicate", did("duplicated")),
        ("late", did("delayed")),
    ];
    let causes = causes.into_iter().filter(|&(_, n)| n > 0);
    let expected = causes.map(|(cause, n)| (cause.to_owned(), n.into()));
    let expected = Value::Object(expected.collect());
    assert_eq!(seen["ledger"]["dropped"], expected, "{faults}");
    // The number of a corrupt frame cannot be believed, so it is missing too.
    let missing = did("lost") + did("corrupted") - unseen(&folder.path("faulty.pcapng"));
    assert_eq!(seen["missing"], missing, "{faults}");
    assert_eq!(seen["ledger"]["balanced"], true);
}

/// Events wait until the end, so that nothing is late on a busy machine, and the ring holds all
/// frames that there are, so that none is lost in it.
const PATIENT: &str = "[memory]
ring = 2048
[[stage]]
name = \"decompress\"
[[stage]]
name = \"build\"
deadline_us = 60_000_000
horizon_us = 120_000_000
max_open = 8192
[[stage]]
name = \"rings\"
[[stage]]
name = \"decide\"
";

/// From one end of a cable to the other, where the trigger listens by this driver.
fn over_a_cable(driver: &str) {
    let Some(cable) = Cable::bare(9000) else {
        return;
    };
    let folder = Folder::new();
    let recording = recording(&folder);
    let config = folder.path("patient.toml");
    fs::write(&config, PATIENT).unwrap();
    let faults = "--loss 0.01 --duplicate 0.01 --corrupt 0.01";
    // Equal seeds make equal faults: into a file, for what the trigger cannot know.
    let (written, _) = both(&folder, &recording, faults);

    let metrics = "127.0.0.1:9464";
    let config = config.display();
    let line = format!("--quiet --port {driver}:va --metrics {metrics} --config {config}");
    let mut trigger = Running::start_program(&cable.a, &program("l0-trigger"), &line);
    trigger.wait_for_ports();
    let replay = format!("replay {recording} af_packet:vb --quiet {faults}");
    let sent = Running::start(&cable.b, &replay).report(0);
    for fault in ["lost", "duplicated", "corrupted", "sent"] {
        assert_eq!(sent[fault], written[fault], "{fault}");
    }
    let came = format!("pollux_frames_from_wire_total{{place=\"{driver}:va queue 0\"}}");
    let all = sent["sent"].as_f64().unwrap();
    cable.a.within(|| above(metrics, all - 0.5, &came));
    trigger.interrupt();
    let seen = trigger.report(0);
    compare(&folder, faults, &sent, &seen);
    let missing = seen["missing"].as_u64().unwrap();
    assert!(missing > 10, "{driver}: {missing}");
}

#[test]
fn the_trigger_misses_what_was_lost_on_the_way_to_its_interface() {
    for driver in ["af_packet", "af_xdp"] {
        over_a_cable(driver);
    }
}

fn over_streams(seen: &Value, key: &str) -> u64 {
    let streams = seen["streams"].as_array().unwrap();
    streams
        .iter()
        .map(|stream| stream[key].as_u64().unwrap())
        .sum()
}

#[test]
fn the_trigger_misses_what_was_lost() {
    for seed in 1..=3 {
        let (sent, _) = agree(&format!("--loss 0.01 --seed {seed}"));
        assert!(sent["lost"].as_u64().unwrap() > 5, "{sent}");
    }
    let (sent, _) = agree("--loss 0.2");
    assert!(sent["lost"].as_u64().unwrap() > 250);
}

#[test]
fn the_trigger_finds_each_fault_and_no_other() {
    let (_, seen) = agree("");
    assert_eq!(seen["events"]["complete"], 6400);
    agree("--duplicate 0.05");
    agree("--corrupt 0.05");
    agree("--delay 310us-900us:0.05");
    // Behind the next frame of its board, of which there are four.
    let (sent, seen) = agree("--reorder 0.05:4");
    assert_eq!(over_streams(&seen, "reordered"), sent["reordered"]);
    assert!(sent["reordered"].as_u64().unwrap() > 40);
    assert_eq!(seen["events"]["complete"], 6400);
}

#[test]
fn the_trigger_tells_all_faults_apart() {
    // Behind one frame only: where those that would overtake it are lost, a frame is held back
    // for longer, and with four it could be late.
    let all = "--loss 0.02 --duplicate 0.02 --corrupt 0.02 --delay 310us-900us:0.02 \
               --reorder 0.02 --seed 3";
    let (sent, _) = agree(all);
    for fault in ["lost", "duplicated", "corrupted", "delayed", "reordered"] {
        assert!(sent[fault].as_u64().unwrap() > 10, "{sent}");
    }
}
