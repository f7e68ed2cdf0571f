//! `farm run --processes`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::Signal;

use super::rig::{
    PATIENT, Process, QUICK, alone, children, farm, holds, number, output, read, send, text,
    wait_for,
};

#[test]
fn all_events_are_built_by_all_processes() {
    let _alone = alone();
    for args in [
        "--events 1000 --processes 3",
        "--events 1000 --processes 2 --policy credits --pack 8",
        "--events 500 --processes 4 --policy slots --feeders 6 --nodes 6",
        "--events 200 --processes 1 --fragment 9000 --buffers 2",
        "--events 200 --processes 3 --link unix --feeders 6 --nodes 3 --columns 3",
    ] {
        let output = output(PATIENT, &format!("run {args} --json"));
        assert!(output.status.success(), "{args}: {}", text(&output.stderr));
        let report = read(&output);
        holds(&report);
        let events = &report["events"];
        assert_eq!(events["complete"], events["triggered"], "{args}");
        assert_eq!(number(&events["resent"]), 0, "{args}");
        let processes = report["processes"].as_array().unwrap();
        assert!(args.contains(&format!("--processes {}", processes.len())));
        assert!(processes.iter().all(|process| process["end"] == "ended"));
        let nodes = report["nodes"].as_array().unwrap();
        let built: u64 = nodes.iter().map(|node| number(&node["events"])).sum();
        assert_eq!(built, number(&events["triggered"]));
        assert!(report["latency_us"]["mean"].as_f64().unwrap() > 0.0);
    }
}

/// Makes veth pairs in the network namespace that it runs in, and runs a farm over them.
const OVER_VETHS: &str = "\
    for n in 0 1; do \
        ip link add farm-process$n type veth peer name process$n || exit 77; \
        ip link set farm-process$n up && ip link set process$n up; \
    done; \
    exec \"$@\"";

#[test]
fn frames_go_over_interfaces_of_a_namespace() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for driver in ["af_xdp", "af_packet"] {
        let ports = format!(
            "[ports]\nmember = '{driver}:farm-{{member}},promisc=on'\n\
             switch = '{driver}:{{member}},promisc=on'\n"
        );
        let args = "run --events 500 --processes 2 --feeders 4 --nodes 4 --columns 2 --json";
        let run = farm(folder.path(), &format!("{PATIENT}{ports}"), args);
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", OVER_VETHS, "sh"]);
        command.arg(run.get_program()).args(run.get_args());
        let output = command.output().unwrap();
        let error = text(&output.stderr);
        if output.stdout.is_empty() && (output.status.code() != Some(1) || error.contains("needs"))
        {
            println!("skipped: {driver} in a namespace of its own: {error}");
            continue;
        }
        assert!(output.status.success(), "{driver}: {error}");
        let report = read(&output);
        holds(&report);
        assert_eq!(report["events"]["complete"], 500);
    }
}

#[test]
fn each_process_is_in_a_namespace_of_its_own() {
    let _alone = alone();
    let args =
        "run --processes 3 --link af_xdp --feeders 4 --nodes 4 --columns 2 --events 500 --json";
    let output = output(PATIENT, args);
    let error = text(&output.stderr);
    if error.contains("run as root") || error.contains("AF_XDP needs") {
        println!("skipped: network namespaces and AF_XDP need root: {error}");
        return;
    }
    assert!(output.status.success(), "{error}");
    let report = read(&output);
    holds(&report);
    assert_eq!(report["events"]["complete"], 500);
    // Frames that an interface cannot carry are refused before anything is made.
    let output = output_of_large_frames();
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("a port carries 1500 B"), "{error}");
}

fn output_of_large_frames() -> Output {
    output(
        PATIENT,
        "run --processes 2 --link af_xdp --fragment 9000 --buffers 2 --events 10",
    )
}

/// A run of four processes with a feeder and a node each, in which one is ended or stopped.
fn run_without(place: usize, signal: Signal) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let args = "run --events 2000 --rate 1k --feeders 4 --nodes 4 --columns 2 --processes 4 --json";
    let parent = Process::start(farm(folder.path(), QUICK, args));
    let pids = wait_for("process", || {
        Some(children(parent.id())).filter(|pids| pids.len() == 4)
    });
    std::thread::sleep(Duration::from_millis(800));
    send(pids[place], signal);
    let output = parent.wait_with_output();
    for pid in pids {
        assert!(
            !Path::new(&format!("/proc/{pid}")).exists(),
            "{pid} is left"
        );
    }
    output
}

#[test]
fn events_go_past_a_process_that_is_killed_or_stopped() {
    let _alone = alone();
    for (place, signal, end) in [
        (1, Signal::KILL, "was killed by signal 9"),
        (2, Signal::STOP, "stood still and was killed"),
    ] {
        let output = run_without(place, signal);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report = read(&output);
        holds(&report);
        let process = &report["processes"][place];
        assert_eq!(
            (&process["end"], &process["lost"]),
            (&end.into(), &true.into())
        );
        let node = &report["nodes"][place];
        assert_eq!(
            (&node["dead"], &node["excluded"]),
            (&true.into(), &true.into())
        );
        // Exactly its fragments are missing.
        let incomplete = number(&report["events"]["incomplete"]);
        assert!(incomplete > 0);
        for feeder in report["feeders"].as_array().unwrap() {
            let is_lost = number(&feeder["id"]) == place as u64;
            assert_eq!(feeder["dead"], is_lost);
            assert_eq!(
                number(&feeder["missing"]),
                if is_lost { incomplete } else { 0 }
            );
        }
    }
}

#[test]
fn a_run_without_its_scheduler_fails() {
    let _alone = alone();
    let output = run_without(0, Signal::KILL);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(read(&output)["end"], "failed");
    let error = text(&output.stderr);
    let expected = "process 0 (scheduler,feeder:0,node:0) was killed by signal 9";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_signal_ends_all_processes_with_the_report() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let args = "run --rate 1k --processes 3 --json";
    let mut parent = Process::start(farm(folder.path(), PATIENT, args));
    let mut progress = BufReader::new(parent.child().stderr.take().unwrap()).lines();
    wait_for("event", || {
        let line = progress.next().unwrap().unwrap();
        let events = line.split_once(" events ")?.0.split_whitespace().last()?;
        (events != "0").then_some(())
    });
    let pids = children(parent.id());
    send(parent.id(), Signal::INT);
    let errors = std::thread::spawn(move || progress.map_while(Result::ok).collect::<Vec<_>>());
    let output = parent.wait_with_output();
    assert!(output.status.success(), "{:?}", errors.join());
    let report = read(&output);
    holds(&report);
    assert!(number(&report["events"]["decided"]) > 0);
    assert_eq!(pids.len(), 3);
    let is_left = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
    assert!(!pids.iter().any(is_left));
}

#[test]
fn processes_end_with_their_parent() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let args = "run --rate 1k --processes 2";
    let mut parent = Process::start(farm(folder.path(), PATIENT, args));
    let pids = wait_for("process", || {
        Some(children(parent.id())).filter(|pids| pids.len() == 2)
    });
    send(parent.id(), Signal::KILL);
    parent.child().wait().unwrap();
    for pid in pids {
        wait_for("end", || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // Ended, and perhaps not taken notice of.
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        });
    }
}
