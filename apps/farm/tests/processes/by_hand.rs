//! Members of a farm that a user starts.

use std::process::Output;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::rig::{Process, QUICK, SLOW, alone, farm, number, output, read, send, text, wait_for};

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

    fn start(&self, args: &str) -> Process {
        let args = format!("{args} --json --quiet");
        Process::start(farm(self.folder.path(), &self.config, &args))
    }

    /// With another configuration.
    fn start_other(&self, key: &str, value: &str, args: &str) -> Process {
        let config = self.config.replace(key, value);
        let args = format!("{args} --json --quiet");
        Process::start(farm(self.folder.path(), &config, &args))
    }

    fn wait_for_port(&self, name: &str) {
        let path = self.folder.path().join(name);
        wait_for(name, || path.exists().then_some(()));
    }
}

/// Ends a process; its report.
fn end(child: Process) -> (Value, Output) {
    send(child.id(), Signal::INT);
    let output = child.wait_with_output();
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
        // One that is stopped ends with the test.
        send(node.id(), of_node);
        send(feeder.id(), of_feeder);
        let scheduler = scheduler.wait_with_output();
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
    let second = farm.start("feeder --id 1").wait_with_output();
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
        let output = farm.start(args).wait_with_output();
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
        let mut scheduler = farm.start("scheduler --events 200");
        farm.wait_for_port("scheduler");
        std::thread::sleep(Duration::from_secs(1));
        // The second signal shortens the wait for what does not end.
        for _ in 0..2 {
            let _ = kill_process(Pid::from_child(scheduler.child()), Signal::INT);
            std::thread::sleep(Duration::from_millis(100));
        }
        let scheduler = scheduler.wait_with_output();
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
