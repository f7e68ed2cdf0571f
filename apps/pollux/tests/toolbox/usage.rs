//! Options that all sub-commands read alike.

use std::fs;

use serde_json::Value;

use crate::support::{
    Folder, SHORT_BENCH, file, json_of, refused, reported, run, text, write_an_event,
};

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
    for (command, args) in WITH_LOOPS {
        for wrong in ["1-0", "x", "1,,2", "0-100000"] {
            let args = [args, &["--cores", wrong]].concat();
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
    for (command, args) in WITH_LOOPS.iter().filter(|(name, _)| *name != "doctor") {
        let args = [*args, &["--cores", "8190-8191"]].concat();
        let message = refused(command, &args, 2);
        assert!(message.contains("8190"), "{command}: {message}");
    }
}

/// A port stands in front or behind `--port`, where there is one and where there are several.
#[test]
fn ports_are_given_in_front_or_as_options() {
    let folder = Folder::new();
    let capture = folder.path("x.pcapng");
    let sink = folder.sink("x.pcapng");
    reported("generate", &["--port", &sink, "--count", "100"], 0);
    let (port, file) = (file(&capture), capture.to_str().unwrap());
    let copy = folder.path("copy.pcapng");
    let copy = copy.to_str().unwrap();
    let (sent, back) = (folder.sink("sent.pcapng"), folder.sink("back.pcapng"));
    let bench = ["--rate-max", "2k", "--trial", "0.01", "--trials", "1"];
    for (command, port, more) in [
        ("generate", &*sent, &["--count", "10"][..]),
        ("verify", &port, &["--count", "100"]),
        ("capture", &port, &["--output", copy]),
        ("forward", &port, &["--port", "null"]),
        ("bench", "loopback", &bench),
    ] {
        let in_front = reported(command, &[&[port], more].concat(), 0);
        let as_option = reported(command, &[&["--port", port], more].concat(), 0);
        for report in [&in_front, &as_option] {
            assert_eq!(report["ports"][0]["spec"], port, "{command}");
        }
    }
    let args = [file, "--speed", "max"];
    for port in [&[&*back][..], &["--port", &back]] {
        let report = reported("replay", &[&args[..], port].concat(), 0);
        assert_eq!(report["sent"], 100);
    }
    // One that takes one port takes no second.
    for (command, more) in [
        ("generate", &[][..]),
        ("capture", &["--output", copy]),
        ("replay", &[file]),
        ("bench", &[]),
    ] {
        let second = [more, &["null", "--port", "null"]].concat();
        assert!(refused(command, &second, 2).contains("--port"), "{command}");
    }
    let three = refused("forward", &["null", "null", "--port", "null"], 2);
    assert!(three.contains("3 ports"), "{three}");
    for command in ["generate", "verify", "forward", "streams", "bench"] {
        let none = refused(command, &[], 2);
        assert!(none.contains("PORT"), "{command}: {none}");
    }
}

/// `streams` runs on the given core, and writes its report as the others do.
#[test]
fn streams_have_the_options_of_a_run() {
    let folder = Folder::new();
    reported("generate", &[&folder.sink("x.pcapng"), "--count", "100"], 0);
    let port = file(&folder.path("x.pcapng"));
    let report = folder.path("report.json");
    let allowed = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = allowed.unwrap().trim().split(['-', ',']).next().unwrap();
    let run = run(
        "streams",
        &[
            &port,
            "--cores",
            first,
            "--quiet",
            "--report",
            report.to_str().unwrap(),
        ],
    );
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert!(text(&run.stdout).contains("9000"));
    let report: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    assert_eq!(report["streams"][0]["packets"], 100);
    let two = refused(
        "streams",
        &["null", "--cores", &format!("{first},{first}")],
        2,
    );
    assert!(two.contains("a single loop"), "{two}");
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
    // One event: a line of JSON is a document.
    let events = folder.path().join("run.events");
    write_an_event(&events);
    let events = events.to_str().unwrap();
    for (command, args) in [
        ("streams", &[&*port][..]),
        ("streams", &["--port", &port]),
        ("ports", &["--drivers"]),
        ("physics", &["--events", "5"]),
        ("doctor", &["--root", "/nonexistent"]),
        ("events", &[events]),
        ("generate", &["null", "--count", "10"]),
        ("replay", &[capture, "null", "--speed", "max"]),
        ("bench", &SHORT_BENCH),
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
        if ["streams", "ports", "physics", "doctor", "events"].contains(&command) {
            assert_eq!(printed.stdout, fs::read(&file).unwrap(), "{command}");
        }
        fs::remove_file(file).unwrap();
    }
}

/// The part of a message that says what an option takes.
fn reason(message: &str) -> &str {
    let (_, reason) = message.split_once("': ").unwrap_or_default();
    reason.lines().next().unwrap_or_default()
}

/// Sizes, rates and times have one syntax, and one text for what is none.
#[test]
fn units_are_read_alike() {
    const TIME: &str = "write a number of seconds, or a time like 250ms, 1.5min or 1h, ";
    const SIZE: &str = "write a number of bytes like 1500, 64k or 1.5MB, from ";
    const RATE: &str = "write a number a second like 250k or 1.5Mpps, with a unit (pps";
    let of = |name: &str| {
        let with_loops = WITH_LOOPS.iter().find(|(command, _)| *command == name);
        with_loops.map_or(&["nowhere:1"][..], |(_, args)| args)
    };
    for (command, option, form) in [
        ("forward", "--duration", TIME),
        ("streams", "--seconds", TIME),
        ("live", "--duration", TIME),
        ("live", "--interval", TIME),
        ("verify", "--wait", TIME),
        ("verify", "--idle", TIME),
        ("bench", "--trial", TIME),
        ("bench", "--settle", TIME),
        ("doctor", "--jitter", TIME),
        ("capture", "--file-seconds", TIME),
        ("replay", "--delay", TIME),
        ("capture", "--file-size", SIZE),
        ("capture", "--snap-len", SIZE),
        ("generate", "--size", SIZE),
        ("bench", "--sizes", SIZE),
        ("generate", "--rate", RATE),
        ("bench", "--rate-min", RATE),
        ("bench", "--rate-max", RATE),
    ] {
        // Neither a number with a unit of something else, nor an exponent without a unit.
        for wrong in ["5parsecs", "x", "-1"] {
            let option = format!("{option}={wrong}");
            let message = refused(command, &[of(command), &[&option]].concat(), 2);
            let reason = reason(&message);
            assert!(reason.starts_with(form), "{command} {option}: {message}");
        }
    }
    // A valid value is accepted: the error is about the next option.
    for (command, options) in [
        (
            "bench",
            &["--trial", "20ms", "--settle", "0.1", "--sizes", "1.5k"][..],
        ),
        ("bench", &["--rate-min", "1kpps", "--rate-max", "1.5M"]),
        ("generate", &["--size", "0.1k,1.5kB", "--rate", "800Mbit"]),
        (
            "capture",
            &[
                "--snap-len",
                "1.5kB",
                "--file-size",
                "1M",
                "--file-seconds",
                "1min",
            ],
        ),
        ("verify", &["--wait", "1min 30s", "--idle", "0.5"]),
        ("replay", &["--delay", "0-2ms:0.1"]),
    ] {
        let message = refused(
            command,
            &[of(command), options, &["--cores", "x"]].concat(),
            2,
        );
        assert!(message.contains("'--cores <LIST>'"), "{command}: {message}");
    }
}
