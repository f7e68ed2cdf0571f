//! `pollux forward`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Capture, Folder, datagram, packets, pollux, refused, reported, run, text};

/// Forwards from file to file.
fn forwarded(frames: &[Vec<u8>], options: &[&str]) -> (Vec<Vec<u8>>, Value) {
    let stamped: Vec<_> = (0..).zip(frames.iter().cloned()).collect();
    let (capture, folder) = (Capture::new(&stamped), Folder::new());
    let (from, to) = (capture.spec(), folder.sink("out.pcapng"));
    let report = reported("forward", &[&[from.as_str(), &to], options].concat(), 0);
    let out = packets(&folder.path("out.pcapng"));
    // What is forwarded keeps the time when it came.
    assert!(
        (0..)
            .zip(&out)
            .all(|(n, packet)| packet.0 == n * 1_000_000_000)
    );
    (out.into_iter().map(|packet| packet.1).collect(), report)
}

#[test]
fn frames_are_copied_from_file_to_file() {
    let frames: Vec<_> = (0..1000)
        .map(|n| datagram(n, 9000, &vec![n as u8; n as usize * 7]))
        .collect();
    let (out, report) = forwarded(&frames, &[]);
    assert!(out == frames);
    let bytes: usize = frames.iter().map(Vec::len).sum();
    assert_eq!(report["ledger"]["delivered"], 1000);
    assert_eq!(report["ports"][0]["rx_packets"], 1000);
    assert_eq!(report["ports"][0]["tx_packets"], 0);
    assert_eq!(report["ports"][1]["tx_packets"], 1000);
    assert_eq!(report["ports"][1]["tx_bytes"], bytes);
    assert_eq!(
        (&report["mode"], &report["forwarded"]),
        (&json!("io"), &json!(1000))
    );
}

#[test]
fn addresses_are_exchanged_as_asked() {
    let frame = datagram(0x0a00_0001, 9000, b"payload");
    let (mac, _) = forwarded(std::slice::from_ref(&frame), &["--mode", "mac"]);
    let expected = [&frame[6..12], &frame[..6], &frame[12..]].concat();
    assert_eq!(mac[0], expected);
    let (all, _) = forwarded(std::slice::from_ref(&frame), &["--mode", "5tswap"]);
    let expected = [
        &frame[6..12],
        &frame[..6],
        &frame[12..26],
        &frame[30..34],
        &frame[26..30],
        &frame[36..38],
        &frame[34..36],
        &frame[38..],
    ];
    assert_eq!(all[0], expected.concat());
}

#[test]
fn a_count_is_met_exactly() {
    for count in ["1", "33", "100000"] {
        let report = reported("forward", &["null", "--count", count], 0);
        assert_eq!(report["forwarded"].to_string(), count);
        let two = [
            "null", "null", "--queues", "3", "--burst", "64", "--count", count,
        ];
        assert_eq!(reported("forward", &two, 0)["forwarded"].to_string(), count);
    }
    if std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skipped: two loops need two CPUs");
        return;
    }
    let report = reported(
        "forward",
        &["null", "--cores", "0,1", "--count", "1000001"],
        0,
    );
    assert_eq!(report["forwarded"], 1_000_001);
    assert_eq!(report["cores"].as_array().unwrap().len(), 2);
}

#[test]
fn a_duration_or_a_signal_ends_the_run() {
    let report = reported("forward", &["null", "--seconds", "0.1"], 0);
    assert!(report["forwarded"].as_u64().unwrap() > 0);
    for signal in ["INT", "TERM"] {
        let mut child = pollux("forward")
            .args(["null:size=0", "null:size=0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The first line of rates says that it runs.
        let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut lines = std::io::BufRead::lines(stderr).map(Result::unwrap);
        assert!(lines.any(|line| line.contains("null:size=0: rx 0 pps")));
        let id = child.id().to_string();
        let killed = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(killed.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let said = text(&output.stdout);
        assert!(
            said.contains("0 frames from the wire = 0 delivered"),
            "{said}"
        );
    }
}

#[test]
fn a_way_that_a_port_cannot_go_is_left_out() {
    let folder = Folder::new();
    let sink = folder.sink("out.pcapng");
    // The file cannot receive, so nothing comes back to the first port.
    let report = reported("forward", &["null", &sink, "--count", "100"], 0);
    assert_eq!(report["ports"][1]["tx_packets"], 100);
    assert_eq!(report["ports"][0]["tx_packets"], 0);
    let one_way = ["null", "null", "--one-way", "--count", "50"];
    let report = reported("forward", &one_way, 0);
    assert_eq!(report["ports"][1]["tx_packets"], 50);
    assert_eq!(report["ports"][1]["rx_packets"], 0);
}

#[test]
fn what_cannot_be_is_refused() {
    let says = |args: &[&str], status, what: &str| {
        let message = refused("forward", args, status);
        assert!(message.contains(what), "{args:?}: {message}");
    };
    says(&[], 2, "<PORT>");
    says(&["null", "null", "null"], 2, "null");
    says(&["nul"], 2, "no driver `nul`");
    says(&["null", "--mode", "swap"], 2, "5tswap");
    says(&["null", "--count", "0"], 2, "--count");
    says(&["null", "--burst", "33"], 2, "32, 64");
    says(&["null", "--seconds", "0"], 2, "above 0");
    says(&["null", "--cores", "99999"], 2, "cpu 99999");
    says(&["null", "--ring", "1"], 2, "a ring of 1");
    says(&["pcap:rx=/nowhere", "null"], 1, "No such file");
    says(&["pcap:rx=/nowhere", "null:size=x"], 2, "not a valid size");
    says(
        &["null", "--count", "1", "--report", "/nowhere/r.json"],
        1,
        "--report /nowhere",
    );
    let folder = Folder::new();
    let (one, two) = (folder.sink("1"), folder.sink("2"));
    says(&[&one, &two], 2, "no direction");
    assert!(!folder.path("1").exists());
    says(&["null", &one, "--queues", "2"], 2, "2 transmit queues");
    let help = text(&run("forward", &["--help"]).stdout);
    for part in ["Examples:", "5tswap", "--one-way", "Port specs:", "rx=FILE"] {
        assert!(help.contains(part), "no {part}");
    }
}

#[test]
fn a_socket_in_a_read_only_folder_is_refused() {
    let folder = Folder::new();
    let socket = folder.path("v.sock");
    let owner_only_reads = fs::Permissions::from_mode(0o555);
    fs::set_permissions(socket.parent().unwrap(), owner_only_reads).unwrap();
    let spec = format!("vhost-user:{},server", socket.display());
    // Root may write anywhere.
    let output = pollux("forward")
        .arg(&spec)
        .uid(65_534)
        .gid(65_534)
        .output();
    let Ok(output) = output else {
        println!("skipped: another user may not execute the program");
        return;
    };
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in [
        &spec,
        "cannot use the path for a socket: Permission denied",
        "may write",
    ] {
        assert!(message.contains(part), "no {part} in {message}");
    }
}
