//! Ports that do not end by themselves.

use std::fs;
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{counts_alone, pollux, report};
use crate::metrics::Watched;
use crate::support::{Capture, datagram, json_of, text};

#[test]
fn a_duration_ends_the_run() {
    let report = report(&["--port", "null", "--duration", "0.1"]);
    assert_eq!(report["from_wire"], report["dropped"]["not-for-us"]);
    assert!(report["from_wire"].as_u64().unwrap() > 0);
}

#[test]
fn a_recording_at_its_own_pace_can_be_left_early() {
    let frame = datagram(1, 10, &[]);
    let capture = Capture::new(&[(0, frame.clone()), (3600, frame)]);
    let spec = format!("{},pace=recorded", capture.spec());
    let report = report(&["--port", &spec, "--duration", "0.1"]);
    assert_eq!(report["delivered"], 1);
}

/// Starts the program, waits until it listens, and sends it a signal.
fn interrupted(port: &str, signal: &str) -> Output {
    let mut child = pollux()
        .args(["--json", "--port", port])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !listens(&child) && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = format!("kill -{signal} {}", child.id());
    let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        killed.success() && output.status.success(),
        "{}",
        text(&output.stderr)
    );
    output
}

/// The poll loop is launched when all else is in place.
fn listens(child: &Child) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id()));
    let names = tasks.into_iter().flatten().flatten();
    let mut names = names.map(|task| fs::read_to_string(task.path().join("comm")));
    names.any(|name| name.is_ok_and(|name| name.trim() == "streams"))
}

#[test]
fn a_signal_ends_the_run_in_order() {
    for signal in ["INT", "TERM"] {
        let output = interrupted("null", signal);
        assert_eq!(json_of(&output)["balanced"], true);
    }
}

#[test]
fn datagrams_of_the_kernel_are_heard() {
    let refused = pollux()
        .args(["--port", "af_packet:lo", "--duration", "0.001"])
        .output()
        .unwrap();
    if !refused.status.success() {
        println!("skipped: no permission to listen to an interface");
        return;
    }
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = receiver.local_addr().unwrap();
    let listening = Watched::start("streams", &["--json", "--port", "af_packet:lo"]);
    for _ in 0..10 {
        receiver.send_to(&[7; 33], to).unwrap();
    }
    let frames = format!(
        "pollux_stream_frames_total{{stream=\"127.0.0.1 to {}\"}}",
        to.port()
    );
    listening.above(9.0, &frames);
    let report: Value = serde_json::from_str(&listening.printed()).unwrap();
    assert_eq!(report["balanced"], true);
    let report = counts_alone(report);
    let expected = json!({
        "src_ip": "127.0.0.1", "dst_port": to.port(), "packets": 10, "bytes": 330
    });
    let streams = report["streams"].as_array().unwrap();
    assert!(streams.contains(&expected), "{report:#}");
}
