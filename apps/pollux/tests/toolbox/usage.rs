//! Options that all sub-commands read alike.

use std::fs;

use serde_json::Value;

use crate::support::{json_of, refused, reported, run, text};

/// Sub-commands with loops, and what each needs on its command line.
const WITH_LOOPS: [(&str, &[&str]); 8] = [
    ("forward", &["null", "null"]),
    ("generate", &["null"]),
    ("verify", &["null"]),
    ("replay", &["none.pcapng", "null"]),
    ("capture", &["null", "--output", "none.pcapng"]),
    ("bench", &["--port", "loopback"]),
    ("streams", &["--port", "null"]),
    ("doctor", &["--root", "/nonexistent"]),
];

#[test]
fn lists_of_cpus_are_read_alike() {
    // `streams` runs one loop, wherever the scheduler puts it.
    for (command, args) in WITH_LOOPS.iter().filter(|(name, _)| *name != "streams") {
        for wrong in ["1-0", "x", "1,,2", "0-100000"] {
            let args = [*args, &["--cores", wrong]].concat();
            let message = refused(command, &args, 2);
            assert!(
                message.contains("a list like 2-3,8"),
                "{command}: {message}"
            );
        }
    }
}

#[test]
fn a_range_of_cpus_is_one_loop_on_each() {
    // CPU 8191 is on no machine that this runs on: the range was understood.
    for (command, args) in WITH_LOOPS
        .iter()
        .filter(|(name, _)| !["streams", "doctor"].contains(name))
    {
        let args = [*args, &["--cores", "8190-8191"]].concat();
        let message = refused(command, &args, 2);
        assert!(message.contains("8190"), "{command}: {message}");
    }
}

/// What `--json` prints is what `--json FILE` writes, beside the text.
#[test]
fn json_is_printed_or_written() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("x.pcapng");
    let capture = capture.to_str().unwrap();
    reported(
        "generate",
        &[&format!("pcap:tx={capture}"), "--count", "100"],
        0,
    );
    let port = format!("pcap:rx={capture}");
    for (command, args) in [
        ("streams", &[&*port][..]),
        ("streams", &["--port", &port]),
        ("ports", &["--drivers"]),
        ("physics", &["--events", "5"]),
        ("verify", &[&port, "--count", "100"]),
        ("forward", &[&port, "null"]),
    ] {
        let file = folder.path().join("report.json");
        let printed = run(command, &[args, &["--json"]].concat());
        assert_eq!(printed.status.code(), Some(0), "{}", text(&printed.stderr));
        let written = [args, &["--json", file.to_str().unwrap()]].concat();
        let shown = run(command, &written);
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
        assert!(
            !shown.stdout.starts_with(b"{"),
            "{command}: text beside the file"
        );
        let refused = run(command, &written);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{command}: the file is there"
        );
        let keys = |value: &Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(keys(&json_of(&printed)), keys(&written), "{command}");
        // Times differ from run to run where there are any.
        if ["streams", "ports", "physics"].contains(&command) {
            assert_eq!(printed.stdout, fs::read(&file).unwrap(), "{command}");
        }
        fs::remove_file(file).unwrap();
    }
}
