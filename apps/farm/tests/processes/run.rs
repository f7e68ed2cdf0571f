//! `farm run --processes`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::rig::{
    PATIENT, Process, QUICK, SLOW, alone, ask, children, farm, free_address, holds, number, output,
    read, send, text, wait_for,
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

#[test]
fn the_switch_knows_all_members_from_the_start() {
    let _alone = alone();
    // The scheduler has its first feeder in its process, and sends nothing over the switch.
    let args = "--processes 3 --events 3000 --feeders 6 --nodes 6 --columns 3";
    let output = output(PATIENT, &format!("run {args} --json"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = read(&output);
    holds(&report);
    let (switch, members) = (&report["switch"], 2 + 6 + 6);
    assert_eq!(number(&switch["learned"]), members);
    // What the first process to run sends may be there before the others are announced: no more than a sign
    // of life and what is with it, for each member.
    let strange = &report["ledger"]["dropped"]["not-for-us"];
    let strange = strange.as_u64().unwrap_or_default();
    assert!(strange <= 3 * members, "{strange}");
    // Announcements go to all: after one second, two, four and so on again.
    let seconds = report["duration_s"].as_f64().unwrap();
    let announced = members * (1 + (1.0 + seconds).log2().ceil() as u64);
    let flooded = number(&switch["flooded"]);
    assert!(
        (members..=announced + strange).contains(&flooded),
        "{flooded}"
    );
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
fn a_run_that_is_stopped_for_long_goes_on() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let args = "run --processes 2 --feeders 4 --nodes 4 --columns 2 --quiet --json";
    let parent = Process::start(farm(folder.path(), SLOW, args));
    let pids = wait_for("process", || {
        Some(children(parent.id())).filter(|pids| pids.len() == 2)
    });
    let send_all = |signal| pids.iter().for_each(|&pid| send(pid, signal));
    std::thread::sleep(Duration::from_secs(2));
    send_all(Signal::STOP);
    // It has read all that they have said.
    std::thread::sleep(Duration::from_millis(300));
    send(parent.id(), Signal::STOP);
    // Longer than a run goes on without a decision. Then the parent is there before the others.
    std::thread::sleep(Duration::from_secs(11));
    send(parent.id(), Signal::CONT);
    std::thread::sleep(Duration::from_millis(300));
    send_all(Signal::CONT);
    std::thread::sleep(Duration::from_secs(1));
    send(parent.id(), Signal::INT);
    let output = parent.wait_with_output();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = read(&output);
    holds(&report);
    assert_eq!(report["end"], "complete");
    assert!(number(&report["events"]["decided"]) > 0);
}

/// Sum of the samples of a metric whose labels contain a text.
fn metric(metrics: &str, name: &str, label: &str) -> f64 {
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with(name) && line.contains(label));
    lines
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
        .sum()
}

#[test]
fn what_processes_show_is_shown_by_their_parent() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let [metrics_at, page_at] = [(); 2].map(|()| free_address());
    let args = format!(
        "run --rate 1k --processes 3 --metrics {metrics_at} --http {page_at} --quiet --json"
    );
    let parent = Process::start(farm(folder.path(), PATIENT, &args));
    // All have answered: the ports of each, and the latency of the one with the scheduler.
    let metrics = wait_for("metrics of all processes", || {
        let metrics = ask(&metrics_at, "/metrics");
        let sent = |process| {
            let label = format!("process=\"{process}\"");
            metric(&metrics, "pollux_farm_process_frames_sent_total", &label)
        };
        let latency = metric(&metrics, "pollux_farm_latency_count", "");
        ((0..3).all(|process| sent(process) > 0.0) && latency > 0.0).then_some(metrics)
    });
    let of = |name: &str| metric(&metrics, &format!("pollux_farm_{name}"), "");
    assert!(of("latency_sum") > 0.0);
    assert!(of("latency_count") <= of("decided_total") + 1000.0);
    // What they send, they receive over the switch, but what is under way.
    let [sent, received] = ["sent", "received"].map(|of| {
        let name = format!("pollux_farm_process_frames_{of}_total");
        metric(&metrics, &name, "")
    });
    assert!(received > 0.0 && sent > received / 4.0, "{sent} {received}");
    assert!(of("process_bytes_sent_total") > 60.0 * sent);
    let run = wait_for("page", || {
        let answer = ask(&page_at, "/run.json");
        let run: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        (number(&run["histograms"][0]["times"]["count"]) > 0).then_some(run)
    });
    assert!(number(&run["histograms"][0]["times"]["p50"]) > 0);
    // The ends of three ports at the switch, and of each process its port and the one to itself.
    let ports = run["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 3 + 3 * 2);
    assert!(ports.iter().any(|port| port["spec"] == "loopback"));
    send(parent.id(), Signal::INT);
    let output = parent.wait_with_output();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = read(&output);
    holds(&report);
    let latency = &report["latency_us"];
    let shown = number(&run["histograms"][0]["times"]["max"]) as f64 / 1000.0;
    assert!(latency["max"].as_f64().unwrap() >= shown);
    assert!(
        number(&run["histograms"][0]["times"]["count"]) <= number(&report["events"]["decided"])
    );
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
