//! The files that the program writes.

use std::fs;

use serde_json::Value;

use super::program::{fail, run, succeed};

/// A port may stand without `--port`; the report is printed as JSON, or written beside the text.
#[test]
fn json_is_printed_or_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (first, second, file) = (path("a.pcapng"), path("b.pcapng"), path("run.json"));
    let printed = succeed(&format!("pcap:tx={first} --events 64 --json"));
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    succeed(&format!(
        "--port pcap:tx={second} --events 64 --json {file}"
    ));
    let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let sent = |report: &Value| report["emulator"]["frames_sent"].as_u64().unwrap();
    assert!(sent(&printed) > 0);
    assert_eq!(sent(&printed), sent(&written));
    assert_eq!(
        fs::read(first).unwrap().len(),
        fs::read(second).unwrap().len()
    );
    let two = run(&format!("pcap:tx={file} --port pcap:tx={file}"));
    assert_eq!(two.status.code(), Some(2));
}

/// By any name, and with --force.
#[test]
fn no_run_overwrites_its_configuration_or_capture() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    succeed(&format!(
        "--port null --events 10 --truth-out {}",
        at("run.toml")
    ));
    let whole = fs::read(at("run.toml")).unwrap();
    fs::hard_link(at("run.toml"), at("hard.toml")).unwrap();
    for option in ["--report", "--json", "--truth-out", "--truth-events"] {
        let (config, hard, capture) = (at("run.toml"), at("hard.toml"), at("c.pcapng"));
        let run = "--port null --events 10 --force";
        let message = fail(&format!("{run} --config {config} {option}={hard}"), 2);
        assert!(message.contains("would overwrite --config"), "{message}");
        let port = format!("--port pcap:tx={capture} --events 10 --force");
        let message = fail(&format!("{port} {option}={capture}"), 2);
        assert!(
            message.contains(&format!("port pcap:tx={capture}")),
            "{message}"
        );
    }
    assert!(fs::read(at("run.toml")).unwrap() == whole);
    assert!(!dir.path().join("c.pcapng").exists());
}
