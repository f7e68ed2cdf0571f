//! The demonstration.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::{json, program, succeed};

/// It receives, converts, vetoes, finds and compresses what an emulated detector sends; the machine may
/// be busy, so that images are late, but each packet is accounted for.
#[test]
fn it_ends_with_a_report_and_a_balanced_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let output = succeed(
        program()
            .args(["--images", "60", "--quiet", "--report"])
            .arg(&report),
    );
    let text = String::from_utf8(output.stdout).unwrap();
    for line in ["frames", "packets", "images", "latency us", "ledger"] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{text}");
    }
    let run = json(&report);
    assert_eq!(
        (&run["schema"], &run["end"]),
        (&1.into(), &"complete".into())
    );
    assert_eq!(run["ledger"]["balanced"], true);
    assert_eq!(run["ledger"]["from_wire"], 60 * 128);
    let number = |of: &str, name: &str| run[of][name].as_u64().unwrap();
    assert_eq!(number("frames", "received") + number("frames", "empty"), 60);
    assert_eq!(
        number("packets", "placed") + number("packets", "missing"),
        60 * 128
    );
    assert_eq!(number("images", "built"), 60);
    assert_eq!(number("images", "kept") + number("images", "vetoed"), 60);
    assert!(number("images", "kept") > 0 && number("images", "vetoed") > 0);
}

/// A process that was started to ignore SIGHUP, as by `nohup`, goes on doing so.
#[test]
fn a_signal_ends_it_with_a_report() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    end_by(Signal::INT);
    if ignored & 1 == 0 {
        end_by(Signal::HUP);
    }
}

fn end_by(signal: Signal) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let mut child = program()
        .args(["--images", "100000", "--report"])
        .arg(&report)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line of progress says that it runs.
    let mut errors = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("images") {
        line.clear();
        let read = std::io::BufRead::read_line(&mut errors, &mut line).unwrap();
        assert!(read > 0, "it ended before it began");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).unwrap();
    let from = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(from.elapsed() < Duration::from_mins(1), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
    let run = json(&report);
    assert_eq!(run["end"], "stopped");
    assert_eq!(run["ledger"]["balanced"], true);
}
