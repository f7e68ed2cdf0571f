//! `pollux verify`.

use pollux_pmd_testkit::netns::Cable;
use serde_json::Value;

use crate::support::{Capture, Folder, Running, datagram, packets, refused, reported, run, text};

const SEED: &str = "11";

/// What the generator sends, 100 frames of each of five flows.
fn generated() -> Vec<Vec<u8>> {
    let folder = Folder::new();
    let sink = folder.sink("out.pcapng");
    let options = [
        "--count",
        "500",
        "--flows",
        "5",
        "--size",
        "64,300,1514",
        "--seed",
        SEED,
    ];
    reported("generate", &[&[&*sink], &options[..]].concat(), 0);
    let frames = packets(&folder.path("out.pcapng"));
    frames.into_iter().map(|packet| packet.1).collect()
}

#[track_caller]
fn verified(frames: &[Vec<u8>], options: &[&str], status: i32) -> Value {
    let capture = Capture::of_frames(frames);
    let spec = capture.spec();
    let args = [&[spec.as_str(), "--seed", SEED], options].concat();
    reported("verify", &args, status)
}

/// received, missing, duplicate, reordered, corrupt, foreign
fn counts(report: &Value) -> [u64; 6] {
    [
        "received",
        "missing",
        "duplicate",
        "reordered",
        "corrupt",
        "foreign",
    ]
    .map(|key| report[key].as_u64().unwrap())
}

#[test]
fn what_came_whole_is_right() {
    let frames = generated();
    let report = verified(&frames, &["--count", "500"], 0);
    assert_eq!(counts(&report), [500, 0, 0, 0, 0, 0]);
    assert_eq!(
        (&report["flows"], &report["restarts"]),
        (&5.into(), &0.into())
    );
    let bytes: usize = frames.iter().map(Vec::len).sum();
    assert_eq!(report["bytes"], bytes);
    assert_eq!(report["ledger"]["delivered"], 500);
    assert!(report["latency_ns"].is_null(), "of a recording");
}

#[test]
fn each_fault_is_counted_as_what_it_is() {
    let whole = generated();
    let mut lost = whole.clone();
    lost.drain(100..107);
    assert_eq!(counts(&verified(&lost, &[], 1)), [493, 7, 0, 0, 0, 0]);

    let mut twice = whole.clone();
    twice.insert(200, whole[198].clone());
    let report = verified(&twice, &[], 1);
    assert_eq!(counts(&report), [501, 0, 1, 0, 0, 0]);
    assert_eq!(report["ledger"]["dropped"]["duplicate"], 1);

    let mut swapped = whole.clone();
    swapped.swap(200, 205); // of one flow
    assert_eq!(counts(&verified(&swapped, &[], 0)), [500, 0, 0, 1, 0, 0]);

    // A changed byte, with and without a checksum that says so. The frames are 300 bytes long.
    for at in [58, 150, 299] {
        let mut changed = whole.clone();
        changed[301][at] ^= 0x40;
        let report = verified(&changed, &[], 1);
        assert_eq!(counts(&report), [499, 1, 0, 0, 1, 0]);
        assert_eq!(report["ledger"]["dropped"]["bad-checksum"], 1);
        changed[301][40..42].fill(0);
        let report = verified(&changed, &[], 1);
        assert_eq!(counts(&report), [499, 1, 0, 0, 1, 0]);
        assert_eq!(report["ledger"]["dropped"]["malformed"], 1);
    }

    // The bytes of another frame.
    let mut moved = whole.clone();
    let other = moved[304][58..300].to_vec();
    moved[301][58..300].copy_from_slice(&other);
    moved[301][40..42].fill(0);
    assert_eq!(counts(&verified(&moved, &[], 1)), [499, 1, 0, 0, 1, 0]);

    let mut mixed = whole.clone();
    mixed.insert(
        50,
        datagram(1, 9000, b"no frame of the generator's, but long enough"),
    );
    mixed.insert(60, vec![0xff; 60]);
    let report = verified(&mixed, &[], 0);
    assert_eq!(counts(&report), [500, 0, 0, 0, 0, 2]);
}

#[test]
fn ipv6_is_verified_as_ipv4_is() {
    let folder = Folder::new();
    let sink = folder.sink("out.pcapng");
    let options = [
        "--count",
        "500",
        "--dst",
        "[fd00::1]:9000",
        "--size",
        "200",
        "--seed",
        SEED,
    ];
    reported("generate", &[&[&*sink], &options[..]].concat(), 0);
    let frames = packets(&folder.path("out.pcapng"));
    let mut frames: Vec<_> = frames.into_iter().map(|packet| packet.1).collect();
    let report = verified(&frames, &["--count", "500"], 0);
    assert_eq!(counts(&report), [500, 0, 0, 0, 0, 0]);
    frames[100][150] ^= 1;
    frames.remove(200);
    assert_eq!(counts(&verified(&frames, &[], 1)), [498, 2, 0, 0, 1, 0]);
}

#[test]
fn a_count_finds_what_is_missing_at_the_ends() {
    let whole = generated();
    let middle = &whole[10..490];
    assert_eq!(counts(&verified(middle, &[], 0)), [480, 0, 0, 0, 0, 0]);
    let report = verified(middle, &["--count", "500"], 1);
    assert_eq!(counts(&report), [480, 20, 0, 0, 0, 0]);
    // It ends the run when all have come, and not before the last of them.
    let twice = [&whole[..1], &whole[..], &whole[..]].concat();
    let report = verified(&twice, &["--count", "500"], 1);
    assert_eq!(report["missing"], 0);
    assert!(report["duplicate"].as_u64().unwrap() >= 1);
}

#[test]
fn other_seeds_and_patterns_are_corrupt() {
    let whole = generated();
    let seed = verified(&whole, &["--pattern", "zeros"], 1);
    assert_eq!(counts(&seed)[4], 500);
    let spec = Capture::of_frames(&whole);
    let seed = reported("verify", &[&spec.spec(), "--seed", "12"], 1);
    assert_eq!(counts(&seed), [0, 0, 0, 0, 500, 0]);
}

#[test]
fn all_ends_of_a_run() {
    // Nothing came: by --seconds, and at the end of a recording.
    let empty = Capture::new(&[]);
    for args in [&["null:size=0", "--seconds", "0.05"][..], &[&empty.spec()]] {
        let message = refused("verify", args, 1);
        assert!(
            message.contains("so that nothing was verified"),
            "{message}"
        );
        let report = reported("verify", args, 1);
        assert_eq!(
            (&report["received"], &report["foreign"]),
            (&0.into(), &0.into())
        );
    }
    // What is blank is no datagram, and a run of nothing else is no success.
    let blank = reported("verify", &["null", "--seconds", "0.05"], 1);
    assert_eq!(blank["foreign"], blank["ledger"]["from_wire"]);
    // A recording at its own pace that is silent for longer than it is waited for.
    let frames = generated();
    let capture = Capture::new(&[(0, frames[0].clone()), (3600, frames[1].clone())]);
    let spec = format!("{},pace=recorded", capture.spec());
    let report = reported(
        "verify",
        &[&spec, "--seed", SEED, "--count", "2", "--idle", "0.1"],
        1,
    );
    assert_eq!(
        (&report["received"], &report["missing"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn an_interrupt_before_the_first_frame_is_no_success() {
    let program = env!("CARGO_BIN_EXE_pollux");
    let mut command = std::process::Command::new(program);
    command.args(["verify", "null:size=0", "--json", "--quiet"]);
    command.stdout(std::process::Stdio::piped());
    let child = command
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Its loop runs: signals are handled by then.
    let threads = format!("/proc/{}/task", child.id());
    while std::fs::read_dir(&threads).unwrap().count() < 3 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let id = child.id().to_string();
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-s", "INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("so that nothing was verified"),
        "{message}"
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["received"], &report["waited_s"]),
        (&0.into(), &Value::Null)
    );
}

#[test]
fn a_run_that_gets_nothing_ends() {
    // Frames that are none of the generator's come all the time.
    for options in [&["--wait", "0.1"][..], &["--wait", "0.1", "--count", "7"]] {
        let args = [&["null"], options].concat();
        let report = reported("verify", &args, 1);
        assert_eq!(
            (&report["received"], &report["waited_s"]),
            (&0.into(), &0.1.into())
        );
        assert!(report["foreign"].as_u64().unwrap() > 0);
        let message = refused("verify", &args, 1);
        assert!(message.contains("within 0.1 s (--wait)"), "{message}");
    }
    // It is for the first frame alone.
    let frames = generated();
    let report = verified(&frames, &["--count", "500", "--wait", "1e-6"], 0);
    assert!(report["waited_s"].is_null());
}

#[test]
fn stamps_of_another_clock_make_no_latency() {
    let Some(cable) = Cable::bare(1500) else {
        return;
    };
    let mut frames = generated();
    // At byte 8 behind the headers: when a frame was made.
    for (n, frame) in frames.iter_mut().enumerate() {
        let sent = if n % 2 == 0 { 0 } else { u64::MAX / 2 };
        frame[50..58].copy_from_slice(&u64::to_le_bytes(sent));
        frame[40..42].fill(0); // no UDP checksum
    }
    let capture = Capture::of_frames(&frames);
    let verify = "verify af_packet:vb --ring 8192 --seed 11 --count 500";
    let mut verify = Running::start(&cable.b, verify);
    verify.wait_for_ports();
    let replay = format!("replay {} af_packet:va", capture.path.display());
    Running::start(&cable.a, &replay).report(0);
    let (came, _) = verify.report_and_message(0);
    assert_eq!(came["received"], 500, "{came:#}");
    assert!(came["latency_ns"].is_null(), "{came:#}");
    assert_eq!(came["latency_not_comparable"], 500);
}

#[test]
fn what_cannot_be_is_refused() {
    let says = |args: &[&str], status, what: &str| {
        let message = refused("verify", args, status);
        assert!(message.contains(what), "{args:?}: {message}");
    };
    says(&[], 2, "<PORT>");
    says(&["null", "--idle", "0"], 2, "--idle");
    says(&["null", "--seed", "x"], 2, "--seed");
    says(&["null", "--cores", "0,1"], 2, "--cores");
    says(&["pcap:tx=/tmp/nothing"], 2, "1 receive queues");
    says(&["pcap:rx=/nowhere"], 1, "No such file");
    let help = text(&run("verify", &["--help"]).stdout);
    for part in ["Examples:", "--count", "generator.md", "Port specs:"] {
        assert!(help.contains(part), "no {part}");
    }
}
