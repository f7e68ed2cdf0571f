//! Processes of `farm run --processes` that are stopped or killed before they have opened their ports.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::rig::{Process, QUICK, alone, children, farm, holds, number, read, send, text};

/// Attempts at a signal that comes early enough: a busy machine may run the process first.
const ATTEMPTS: usize = 50;

/// A run of four processes, of which one gets a signal before it has opened its port. That one has done nothing
/// then but read its command line: it has no second thread.
fn run_without(place: usize, signal: Signal, args: &str, went_on: bool) -> (Output, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let args = format!("run --processes 4 --json {args}");
    for _ in 0..ATTEMPTS {
        let parent = Process::start(farm(folder.path(), QUICK, &args));
        let since = Instant::now();
        let pid = loop {
            let pid = children(parent.id()).get(place).copied();
            let runs = |pid: &u32| {
                let command = fs::read_to_string(format!("/proc/{pid}/cmdline"));
                command.is_ok_and(|command| command.contains("\0part\0"))
            };
            if let Some(pid) = pid.filter(runs) {
                break pid;
            }
            assert!(since.elapsed() < super::rig::LONG, "no process");
            std::hint::spin_loop();
        };
        send(pid, Signal::STOP);
        let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().count();
        if threads > 1 {
            // The others end with the parent; this one would stand for ever.
            send(pid, Signal::CONT);
            continue;
        }
        if signal != Signal::STOP {
            send(pid, signal);
        }
        if went_on {
            std::thread::sleep(Duration::from_millis(2500));
            send(pid, Signal::CONT);
        }
        let output = parent.wait_with_output();
        assert!(
            !Path::new(&format!("/proc/{pid}")).exists(),
            "{pid} is left"
        );
        return (output, since.elapsed());
    }
    panic!("no process was stopped before it had its port");
}

fn is(value: &Value, expected: bool) -> bool {
    *value == Value::Bool(expected)
}

#[test]
fn the_farm_begins_without_a_process_that_never_opens_its_port() {
    let _alone = alone();
    let args = "--events 1000 --rate 1k --feeders 4 --nodes 4 --columns 2";
    for (place, signal, why, end) in [
        (
            1,
            Signal::STOP,
            "is stopped and has not opened its port",
            "never opened its port and was killed",
        ),
        (
            2,
            Signal::KILL,
            "was killed by signal 9",
            "was killed by signal 9",
        ),
    ] {
        let (output, time) = run_without(place, signal, args, false);
        let error = text(&output.stderr);
        assert!(output.status.success(), "{error}");
        let expected = format!(
            "process {place} (feeder:{place},node:{place}) {why}: the farm goes on without"
        );
        assert!(error.contains(&expected), "{error}");
        // Not after the minute of `start_us`, nor half of it.
        assert!(time < Duration::from_secs(25), "{time:?}");
        let report = read(&output);
        holds(&report);
        assert_eq!(report["end"], "complete");
        let process = &report["processes"][place];
        assert_eq!(process["end"], end);
        assert!(is(&process["lost"], true));
        let node = &report["nodes"][place];
        assert!(
            is(&node["dead"], true) && is(&node["excluded"], true),
            "{node}"
        );
        for feeder in report["feeders"].as_array().unwrap() {
            let is_lost = number(&feeder["id"]) == place as u64;
            assert!(is(&feeder["dead"], is_lost));
            // It never had a fragment of any event.
            assert_eq!(number(&feeder["missing"]), if is_lost { 1000 } else { 0 });
        }
    }
}

#[test]
fn a_process_that_goes_on_late_takes_part() {
    let _alone = alone();
    let args = "--events 6000 --rate 1k --feeders 4 --nodes 4 --columns 2";
    let (output, _) = run_without(2, Signal::STOP, args, true);
    let error = text(&output.stderr);
    assert!(output.status.success(), "{error}");
    let report = read(&output);
    holds(&report);
    assert_eq!(report["processes"][2]["end"], "ended");
    let node = &report["nodes"][2];
    assert!(
        is(&node["dead"], false) && is(&node["excluded"], false),
        "{node}"
    );
    assert!(number(&node["events"]) > 0);
    let feeder = &report["feeders"][2];
    assert!(number(&feeder["fragments"]) > 0 && number(&feeder["missing"]) > 0);
}

#[test]
fn a_farm_that_cannot_be_ends_at_once() {
    let _alone = alone();
    for (place, args, share, need) in [
        (
            0,
            "--feeders 4 --nodes 4 --columns 2",
            "scheduler,feeder:0,node:0",
            "its scheduler and result node",
        ),
        // Six members: both feeders are in the second process.
        (
            1,
            "--feeders 2 --nodes 2 --columns 2",
            "feeder:0-1",
            "a feeder",
        ),
    ] {
        let (output, time) = run_without(place, Signal::STOP, args, false);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        let expected = format!(
            "process {place} ({share}) is stopped and has not opened its port: a farm needs {need}; \
             start the run again"
        );
        assert!(error.contains(&expected), "{error}");
        assert!(time < Duration::from_secs(15), "{time:?}");
        let report = read(&output);
        assert_eq!(report["end"], "failed");
        let end = &report["processes"][place]["end"];
        assert_eq!(end, "never opened its port and was killed");
    }
}
