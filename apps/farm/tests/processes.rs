//! A farm in several processes: `farm run --processes`, and its members by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Time-outs for a busy machine: nothing is sent again unless it was lost.
const PATIENT: &str = "[times]\ntimeout_us = 5_000_000\nsilence_us = 60_000_000\n";

/// As those, with signs of life that are repeated soon: members start in any order.
const SLOW: &str = "[times]\ntimeout_us = 500_000\nsilence_us = 20_000_000\n";

/// Time-outs for runs that lose members.
const QUICK: &str = "[times]\ntimeout_us = 200_000\nsilence_us = 1_000_000\n";

/// Longest time that a test waits for something.
const LONG: Duration = Duration::from_mins(1);

/// A farm has the machine for itself: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn read(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// A command of the program, with a configuration in a file of its own.
fn farm(folder: &Path, config: &str, args: &str) -> Command {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("farm{number}.toml"));
    fs::write(&path, config).unwrap();
    let mut args = args.split_whitespace();
    let mut command = Command::new(env!("CARGO_BIN_EXE_farm"));
    command.args(args.next()).arg("--config").arg(path);
    command.args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(config: &str, args: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    farm(folder.path(), config, args).output().unwrap()
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits until something is there.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < LONG, "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The child processes of a process (proc(5)), in the order of their start.
fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let list = fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// What must hold in every run: all events built and decided, once and in order.
fn holds(report: &Value) {
    let events = &report["events"];
    for key in ["built", "decided"] {
        assert_eq!(events[key], events["triggered"], "{key}");
    }
    assert_eq!((number(&events["lost"]), number(&events["twice"])), (0, 0));
    assert_eq!(events["in_order"], true);
    assert_eq!(report["messages"]["left"], 0);
    assert_eq!(report["payload"]["wrong"], 0);
    assert_eq!(report["ledger"]["balanced"], true);
}

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

/// A run of four processes with a feeder and a node each, in which one is ended or stopped.
fn run_without(place: usize, signal: Signal) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let args = "run --events 2000 --rate 1k --feeders 4 --nodes 4 --columns 2 --processes 4 --json";
    let parent = farm(folder.path(), QUICK, args).spawn().unwrap();
    let pids = wait_for("process", || {
        Some(children(parent.id())).filter(|pids| pids.len() == 4)
    });
    std::thread::sleep(Duration::from_millis(800));
    send(pids[place], signal);
    let output = parent.wait_with_output().unwrap();
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
    let mut parent = farm(folder.path(), PATIENT, args).spawn().unwrap();
    let mut progress = BufReader::new(parent.stderr.take().unwrap()).lines();
    wait_for("event", || {
        let line = progress.next().unwrap().unwrap();
        let events = line.split_once(" events ")?.0.split_whitespace().last()?;
        (events != "0").then_some(())
    });
    let pids = children(parent.id());
    send(parent.id(), Signal::INT);
    let errors = std::thread::spawn(move || progress.map_while(Result::ok).collect::<Vec<_>>());
    let output = parent.wait_with_output().unwrap();
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
    let mut parent = farm(folder.path(), PATIENT, "run --rate 1k --processes 2")
        .spawn()
        .unwrap();
    let pids = wait_for("process", || {
        Some(children(parent.id())).filter(|pids| pids.len() == 2)
    });
    send(parent.id(), Signal::KILL);
    parent.wait().unwrap();
    for pid in pids {
        wait_for("end", || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // Ended, and perhaps not taken notice of.
            (stat.is_empty() || stat.contains(") Z ")).then_some(())
        });
    }
}

/// A farm of two feeders and two nodes by hand, a process for each member.
struct ByHand {
    folder: TempDir,
    config: String,
}

impl ByHand {
    fn new(times: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let farm = "[farm]\nfeeders = 2\nnodes = 2\ncolumns = 2\nbuffers = 4\n";
        let ports = format!(
            "[ports]\nmember = 'unix:{path}/{{member}},peer={path}/{{member}}.switch'\n\
             switch = 'unix:{path}/{{member}}.switch,peer={path}/{{member}}'\n"
        );
        Self {
            config: format!("{farm}{times}{ports}"),
            folder,
        }
    }

    fn start(&self, args: &str) -> Child {
        let args = format!("{args} --json --quiet");
        let mut command = farm(self.folder.path(), &self.config, &args);
        command.spawn().unwrap()
    }

    /// With another configuration.
    fn start_other(&self, key: &str, value: &str, args: &str) -> Child {
        let config = self.config.replace(key, value);
        let args = format!("{args} --json --quiet");
        farm(self.folder.path(), &config, &args).spawn().unwrap()
    }

    fn wait_for_port(&self, name: &str) {
        let path = self.folder.path().join(name);
        wait_for(name, || path.exists().then_some(()));
    }
}

/// Ends a process; its report.
fn end(child: Child) -> (Value, Output) {
    send(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    (read(&output), output)
}

#[test]
fn members_are_started_by_hand() {
    let _alone = alone();
    let farm = ByHand::new(SLOW);
    let switch = farm.start("switch");
    let others = ["results", "node --id 0-1", "feeder --id 0", "feeder --id 1"];
    let others = others.map(|args| farm.start(args));
    let scheduler = farm.start("scheduler --events 500").wait_with_output();
    let scheduler = scheduler.unwrap();
    assert!(scheduler.status.success(), "{}", text(&scheduler.stderr));
    let scheduler = read(&scheduler)["scheduler"].clone();
    assert_eq!(scheduler["triggered"], 500);
    let [results, nodes, first, second] = others.map(|child| {
        let (report, output) = end(child);
        assert!(output.status.success(), "{}", text(&output.stderr));
        report
    });
    let handed = &results["results"]["handed"];
    assert_eq!(
        (&handed["decided"], &handed["twice"]),
        (&500.into(), &0.into())
    );
    assert_eq!(handed["incomplete"], 0);
    let nodes = nodes["nodes"].as_array().unwrap();
    let checked: u64 = nodes.iter().map(|node| number(&node["checked"])).sum();
    assert_eq!(nodes.len(), 2);
    // What was late was sent again.
    assert!(checked >= 1000);
    for feeder in [first, second] {
        assert!(number(&feeder["feeders"][0]["transfers"]) >= 500);
    }
    let (switch, output) = end(switch);
    assert!(output.status.success());
    assert_eq!(switch["switch"]["outputs"].as_array().unwrap().len(), 6);
}

#[test]
fn members_by_hand_are_killed_and_stopped() {
    let _alone = alone();
    for [of_node, of_feeder] in [[Signal::KILL, Signal::STOP], [Signal::STOP, Signal::KILL]] {
        let farm = ByHand::new(QUICK);
        let node = farm.start("node --id 1");
        let feeder = farm.start("feeder --id 0");
        let others = ["switch", "results", "node --id 0", "feeder --id 1"];
        let others = others.map(|args| farm.start(args));
        let rate = "buffers = 4\n[traffic]\nrate_hz = 1000.0\n";
        let scheduler = farm.start_other("buffers = 4\n", rate, "scheduler --events 2000");
        farm.wait_for_port("scheduler");
        std::thread::sleep(Duration::from_millis(700));
        for (mut victim, signal) in [(node, of_node), (feeder, of_feeder)] {
            send(victim.id(), signal);
            if signal == Signal::KILL {
                victim.wait().unwrap();
            } else {
                // Ended with the test, whatever becomes of it.
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_secs(10));
                    victim.kill().unwrap();
                    victim.wait().unwrap();
                });
            }
        }
        let scheduler = scheduler.wait_with_output().unwrap();
        assert!(scheduler.status.success(), "{}", text(&scheduler.stderr));
        let scheduler = read(&scheduler)["scheduler"].clone();
        assert_eq!(scheduler["decided_packs"], 2000);
        assert_eq!(scheduler["excluded"], serde_json::json!([1]));
        let [_, results, _, _] = others.map(|child| {
            let (report, output) = end(child);
            assert!(output.status.success(), "{}", text(&output.stderr));
            report
        });
        let handed = &results["results"]["handed"];
        assert_eq!(
            (&handed["decided"], &handed["twice"]),
            (&2000.into(), &0.into())
        );
        // Exactly the fragments of the feeder are missing.
        let incomplete = number(&handed["incomplete"]);
        assert!(incomplete > 0);
        assert_eq!(handed["missing"], serde_json::json!([incomplete, 0]));
    }
}

#[test]
fn what_does_not_fit_is_an_error_or_counted() {
    let _alone = alone();
    let farm = ByHand::new(QUICK);
    let first = farm.start("feeder --id 1");
    farm.wait_for_port("feeder1");
    // Two with one number: the second finds the port in use.
    let second = farm.start("feeder --id 1").wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second.stderr).contains("in use"),
        "{}",
        text(&second.stderr)
    );
    for (args, status, expected) in [
        ("feeder --id 2", 2, "feeder 2: the farm has 2"),
        ("node --id 1-2", 2, "node 2: the farm has 2"),
        ("node --id 0 --port af_packet:nowhere0", 1, "nowhere0"),
        ("node --id 0 --port nothing:x", 2, "no driver `nothing`"),
        (
            "run --processes 2 --fragment 10k",
            1,
            "it carries frames of 9014 B",
        ),
        ("run --processes 2 --suspend 100", 2, "--suspend"),
        ("run --processes 7", 2, "7 for 6 members"),
    ] {
        let output = farm.start(args).wait_with_output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args}: {error}");
        assert!(error.contains(expected), "{args}: {error}");
    }
    assert!(end(first).1.status.success());
    let without = output("", "results");
    assert_eq!(without.status.code(), Some(2));
    assert!(text(&without.stderr).contains("set `member` in [ports]"));
    // Ports that the processes of a run do not find.
    let ports = "[ports]\nmember = 'af_packet:nowhere0'\nswitch = 'null'\n";
    let lost = output(ports, "run --processes 2 --events 10");
    assert_eq!(lost.status.code(), Some(1));
    let error = text(&lost.stderr);
    assert!(
        error.contains("ended with status 1 before the end of the run"),
        "{error}"
    );
}

#[test]
fn a_feeder_that_disagrees_is_noticed() {
    let _alone = alone();
    for (key, value) in [
        ("buffers = 4\n", "buffers = 4\n[traffic]\nfragment = 64\n"),
        ("feeders = 2", "feeders = 1"),
    ] {
        let farm = ByHand::new(QUICK);
        let all = ["switch", "results", "feeder --id 1", "node --id 0-1"];
        let all = all.map(|args| farm.start(args));
        let odd = farm.start_other(key, value, "feeder --id 0");
        let scheduler = farm.start("scheduler --events 200");
        farm.wait_for_port("scheduler");
        std::thread::sleep(Duration::from_secs(1));
        // The second signal shortens the wait for what does not end.
        for _ in 0..2 {
            let _ = kill_process(Pid::from_child(&scheduler), Signal::INT);
            std::thread::sleep(Duration::from_millis(100));
        }
        let scheduler = scheduler.wait_with_output().unwrap();
        let odd = end(odd).0;
        let [_, _, _, nodes] = all.map(|child| end(child).1);
        if value.contains("fragment") {
            assert!(scheduler.status.success(), "{}", text(&scheduler.stderr));
            let error = text(&nodes.stderr);
            assert_eq!(nodes.status.code(), Some(1));
            assert!(
                error.contains("fragments differ from the mock-up"),
                "{error}"
            );
            let nodes = read(&nodes);
            let of = |key: &str| -> u64 {
                let nodes = nodes["nodes"].as_array().unwrap();
                nodes.iter().map(|node| number(&node[key])).sum()
            };
            assert_eq!(of("checked"), 2 * of("wrong"));
        } else {
            // It knows no second feeder to pass messages on to.
            assert!(number(&odd["unsent"]) > 0);
            assert_eq!(scheduler.status.code(), Some(1));
            let error = text(&scheduler.stderr);
            assert!(error.contains("packs were decided"), "{error}");
        }
    }
}
