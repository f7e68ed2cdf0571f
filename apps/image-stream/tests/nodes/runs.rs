//! Runs that end as they should.

use std::fs::{self, File};
use std::io::Read as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::pixels::{IMAGE, ROW, assert_whole, truth};
use crate::programs::Bench;

/// A region of 20 rows and 30 columns.
const PART: &str = "[[receiver.transfer]]\nname = \"part\"\nevery = 2\n\
                    region = [{ first_row = 100, rows = 20, first_column = 500, columns = 30 }]\n";
const ALL: &str = "[[receiver.transfer]]\nname = \"all\"\nbuffers = 64\n";

/// What was sent was received, or is in the ledger.
#[track_caller]
fn assert_accounted(source: &Value, receiver: &Value) {
    assert_eq!(receiver["ledger"]["balanced"], true, "{receiver}");
    let sent = source["detector"]["packets_sent"].as_u64().unwrap();
    let lost = &receiver["ledger"]["dropped"]["kernel-drop"];
    let come = receiver["ledger"]["from_wire"].as_u64().unwrap();
    assert!(come >= sent, "{come} of {sent} packets, {lost} lost");
}

#[test]
fn several_runs_of_one_process_each_have_their_regions_and_reports() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.source(&[]);
    let receiver = bench.receiver("");
    for (run, frames, tables) in [(1, 12, [ALL, PART].concat()), (2, 6, ALL.to_owned())] {
        let keys = format!("frames = {frames}\nrate_hz = 20.0");
        bench.manager("manager", "", &keys, &tables).ends(0);
        let managed = bench.report("manager.json");
        assert_eq!(managed["end"], "finished", "{managed}");
        assert_eq!(managed["source"]["frames"], frames);
        assert_eq!(managed["receivers"][0]["frames"], frames);
        assert_eq!(managed["receivers"][0]["finished"], true);
        let sent = bench.report(&format!("source-{run:04}.json"));
        let built = bench.report(&format!("receiver-{run:04}.json"));
        assert_eq!(sent["detector"]["complete"], true);
        assert_eq!(built["images"]["built"], frames);
        assert_eq!(built["receivers"], managed["receivers"][0]["transfers"]);
        assert_accounted(&sent, &built);
        let all = fs::read(bench.path(&format!("all-{run:04}.raw"))).unwrap();
        assert_eq!(assert_whole(&all), frames);
        bench.until("source", "idle");
        assert_eq!(bench.status("source")["counts"]["frames"], frames);
    }
    // Frames 2, 4, ... show images 2, 1, 0, ... of the stack.
    let (all, part) = (bench.path("all-0001.raw"), bench.path("part-0001.raw"));
    let (all, part) = (fs::read(all).unwrap(), fs::read(part).unwrap());
    let rows = (0..6).flat_map(|n| (100..120).map(move |row| (2 * n + 1) * IMAGE + row * ROW));
    let expected: Vec<u8> = rows
        .flat_map(|row| all[row + 1000..row + 1060].to_vec())
        .collect();
    assert_eq!(part, expected);
    assert_eq!(all[IMAGE..2 * IMAGE], truth()[2]);
    source.interrupt();
    let log = receiver.interrupt();
    assert_eq!(log.matches("a run is armed").count(), 2, "{log}");
    assert!(!bench.path("source").exists() && !bench.path("receiver").exists());
}

/// A pipe whose reader is held up: the receiver is overrun, the manager pauses the source until the reader
/// goes on, and what was written is whole.
#[test]
fn an_overrun_pauses_the_source_and_mixes_no_images() {
    let Some(bench) = Bench::new() else { return };
    let pipe = bench.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let reads = Arc::new(AtomicBool::new(false));
    let (reader, goes_on) = (pipe.clone(), Arc::clone(&reads));
    let reader = thread::spawn(move || {
        let mut pipe = File::open(reader).unwrap();
        while !goes_on.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        let mut all = Vec::new();
        pipe.read_to_end(&mut all).unwrap();
        all
    });
    let source = bench.source(&[]);
    let receiver =
        bench.receiver("[[receiver]]\nfile = \"pipe\"\ntransfer = { name = \"slow\" }\n");
    let slow = "[[receiver.transfer]]\nname = \"slow\"\nbuffers = 2\n";
    let keys = "frames = 30\nrate_hz = 20.0";
    let mut manager = bench.manager("manager", "", keys, slow);
    manager.wait_until("no pause", |manager| {
        manager.log().contains("slow lost") && manager.log().contains("the source is paused")
    });
    bench.until("source", "paused");
    // The frame that was begun is completed, and no further one is begun.
    thread::sleep(Duration::from_millis(200));
    let paused = bench.status("source")["counts"]["frames"].clone();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(bench.status("source")["counts"]["frames"], paused);
    assert!(paused.as_u64() < Some(30), "{paused}");
    reads.store(true, Ordering::SeqCst);
    let log = manager.ends(0);
    assert!(log.contains("the source resumes: room"), "{log}");
    let managed = bench.report("manager.json");
    let first = &managed["pauses"][0];
    assert_eq!(
        (&first["node"], &first["receiver"], &first["ended_by"]),
        (&json!("receiver"), &json!("slow"), &json!("room"))
    );
    assert_eq!(managed["source"]["frames"], 30);
    let transfer = &managed["receivers"][0]["transfers"][0];
    let [images, overrun] = ["images", "overrun"].map(|key| transfer[key].as_u64().unwrap());
    assert_eq!((images + overrun, overrun > 0), (30, true), "{transfer}");
    assert_accounted(
        &bench.report("source-0001.json"),
        &bench.report("receiver-0001.json"),
    );
    assert_eq!(assert_whole(&reader.join().unwrap()), images);
    source.interrupt();
    receiver.interrupt();
}

/// A signal to a node ends the run in order, with the reports of all, and then its program.
#[test]
fn a_signal_to_a_node_ends_the_run_in_order() {
    for (signalled, signal) in [("source", Signal::TERM), ("receiver", Signal::INT)] {
        let Some(bench) = Bench::new() else { return };
        let source = bench.source(&[]);
        let receiver = bench.receiver("");
        let manager = bench.manager("manager", "", "frames = 0\nrate_hz = 20.0", ALL);
        bench.until_frames("receiver", 3);
        let (node, other) = match signalled {
            "source" => (source, receiver),
            _ => (receiver, source),
        };
        node.signal(signal);
        node.ends(0);
        manager.ends(0);
        let managed = bench.report("manager.json");
        assert_eq!(managed["end"], "finished", "{managed}");
        assert_eq!(managed["receivers"][0]["finished"], true);
        let sent = bench.report("source-0001.json");
        assert_eq!(sent["detector"]["complete"], false);
        let built = bench.report("receiver-0001.json");
        assert_eq!(
            (&built["end"], &built["ledger"]["balanced"]),
            (&json!("stopped"), &json!(true))
        );
        assert_whole(&fs::read(bench.path("all-0001.raw")).unwrap());
        other.interrupt();
    }
}

/// The receiver has no image of those that were sent, which is a failure.
#[test]
fn a_run_without_images_is_a_failure() {
    let Some(bench) = Bench::new() else { return };
    let source = bench.source_through("null", &[]);
    let receiver = bench.receiver("");
    let log = bench
        .manager("manager", "", "frames = 3\nrate_hz = 20.0", ALL)
        .ends(1);
    let said = "it has built no image of the 3 that the source sent; compare its [detector]";
    assert!(log.contains(said), "{log}");
    assert_eq!(bench.report("manager.json")["end"], "failed");
    source.interrupt();
    receiver.interrupt();
}
