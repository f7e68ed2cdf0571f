//! Two managers, and one that goes away.

use serde_json::json;

use crate::programs::Bench;

const ALL: &str = "[[receiver.transfer]]\nname = \"all\"\nbuffers = 64\n";

#[test]
fn a_second_manager_is_refused_and_the_first_goes_on() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.source(&[]);
    let receiver = bench.receiver("");
    let first = bench.manager("first", "", "frames = 40\nrate_hz = 20.0", ALL);
    bench.until_frames("receiver", 3);
    let log = bench.manager("second", "", "frames = 3", ALL).ends(1);
    let said =
        "receiver `receiver` at unix:./receiver: it says: the node is running: stop its run first";
    assert!(log.contains(said), "{log}");
    assert!(!bench.path("second.json").exists());
    first.ends(0);
    let managed = bench.report("first.json");
    assert_eq!(
        (&managed["end"], &managed["pause_count"]),
        (&json!("finished"), &json!(0))
    );
    assert_eq!(managed["receivers"][0]["frames"], 40);
    // It is the second one's turn.
    bench
        .manager("second", "", "frames = 3\nrate_hz = 20.0", ALL)
        .ends(0);
    source.interrupt();
    receiver.interrupt();
}

/// The run goes on without its manager, until the source has sent its frames and a client stops the
/// receiver.
#[test]
fn a_run_survives_its_manager() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.source(&[]);
    let receiver = bench.receiver("");
    let manager = bench.manager("manager", "", "frames = 20\nrate_hz = 10.0", ALL);
    bench.until_frames("receiver", 3);
    manager.kill();
    bench.until("source", "idle");
    assert_eq!(
        bench.report("source-0001.json")["detector"]["complete"],
        true
    );
    bench.until_frames("receiver", 20);
    assert_eq!(bench.status("receiver")["state"], "running");
    let log = bench.manager("manager", "", "frames = 3", ALL).ends(1);
    assert!(log.contains("stop its run first"), "{log}");
    let reply = bench.ask("receiver", "\"stop\"");
    assert_eq!(reply, json!({"done": {"state": "stopping"}}));
    bench.until("receiver", "idle");
    let built = bench.report("receiver-0001.json");
    assert_eq!(
        (&built["images"]["built"], &built["ledger"]["balanced"]),
        (&json!(20), &json!(true))
    );
    bench
        .manager("manager", "", "frames = 3\nrate_hz = 20.0", ALL)
        .ends(0);
    source.interrupt();
    receiver.interrupt();
}
