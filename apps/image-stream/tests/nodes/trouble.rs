//! Nodes that die, or that do not answer.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::pixels::assert_whole;
use crate::programs::Bench;

const ENDLESS: &str = "frames = 0\nrate_hz = 20.0";
const ALL: &str = "[[receiver.transfer]]\nname = \"all\"\nbuffers = 64\n";

#[test]
fn a_source_that_dies_leaves_whole_images_and_a_receiver_for_the_next_run() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.source(&[]);
    let receiver = bench.receiver("");
    let manager = bench.manager("manager", "", ENDLESS, ALL);
    bench.until_frames("receiver", 3);
    source.kill();
    let log = manager.ends(1);
    assert!(
        log.contains("source `source` at unix:./source: it closed the connection"),
        "{log}"
    );
    let managed = bench.report("manager.json");
    assert_eq!(managed["end"], "failed");
    assert_eq!(managed["receivers"][0]["finished"], true);
    assert_eq!(
        bench.report("receiver-0001.json")["ledger"]["balanced"],
        true
    );
    assert_whole(&fs::read(bench.path("all-0001.raw")).unwrap());
    // Its socket is stale, and is replaced.
    let source = bench.source(&["--force"]);
    bench
        .manager("manager", "", "frames = 3\nrate_hz = 20.0", ALL)
        .ends(0);
    source.interrupt();
    receiver.interrupt();
}

#[test]
fn a_receiver_that_dies_stops_the_source() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.source(&[]);
    let receiver = bench.receiver("");
    let manager = bench.manager("manager", "", ENDLESS, ALL);
    bench.until_frames("receiver", 3);
    receiver.kill();
    let log = manager.ends(1);
    assert!(
        log.contains("receiver `receiver` at unix:./receiver"),
        "{log}"
    );
    assert_eq!(bench.report("manager.json")["source"]["finished"], true);
    bench.until("source", "idle");
    source.interrupt();
}

/// A process that is stopped keeps its connection, and answers nothing.
#[test]
fn a_node_that_never_answers_is_given_up() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.source(&[]);
    let receiver = bench.receiver("");
    let top = "reply_timeout_s = 4.0";
    let manager = bench.manager("manager", top, ENDLESS, ALL);
    bench.until_frames("receiver", 3);
    receiver.signal(Signal::STOP);
    let log = manager.ends(1);
    assert!(
        log.contains("no reply within 4 s: the node hangs; restart it"),
        "{log}"
    );
    assert_eq!(bench.report("manager.json")["source"]["finished"], true);
    bench.until("source", "idle");
    receiver.signal(Signal::CONT);
    // Its manager is gone, and it has not been stopped.
    bench.until_frames("receiver", 3);
    bench.ask("receiver", "\"stop\"");
    bench.until("receiver", "idle");
    assert_eq!(bench.report("receiver-0001.json")["end"], "stopped");
    source.interrupt();
    receiver.interrupt();
}

#[test]
fn what_cannot_be_armed_is_refused_and_the_next_run_is_not() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.source(&[]);
    let receiver = bench.receiver("[[receiver]]\nfile = \"x/y\"\ntransfer = { name = \"x\" }\n");
    let outside =
        "[[receiver.transfer]]\nname = \"edge\"\nregion = [{ rows = 513, columns = 1 }]\n";
    let log = bench.manager("manager", "", ENDLESS, outside).ends(2);
    assert!(log.contains("receiver `edge`: region rows 0..513"), "{log}");
    let up = "[[receiver.transfer]]\nname = \"../up\"\n";
    let log = bench.manager("manager", "", ENDLESS, up).ends(1);
    assert!(
        log.contains("transfer \"../up\": with --transfers a name has letters"),
        "{log}"
    );
    let log = bench.manager("manager", "", "rate_hz = 1e6", ALL).ends(2);
    assert!(log.contains("its highest rate is 100000"), "{log}");
    // There is no such folder.
    let log = bench.manager("manager", "", ENDLESS, ALL).ends(1);
    assert!(
        log.contains("its run has failed: [[receiver]] file x/y"),
        "{log}"
    );
    for node in ["source", "receiver"] {
        bench.until(node, "idle");
    }
    fs::create_dir(bench.path("x")).unwrap();
    bench
        .manager("manager", "", "frames = 3\nrate_hz = 20.0", ALL)
        .ends(0);
    let managed = bench.report("manager.json");
    assert_eq!(managed["receivers"][0]["transfers"][0]["name"], json!("x"));
    assert_eq!(managed["receivers"][0]["transfers"][1]["images"], 3);
    source.interrupt();
    receiver.interrupt();
}
