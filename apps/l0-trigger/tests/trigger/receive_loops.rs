//! Receiving by several loops: who received what, the end by a signal, and what is refused.

use crate::common::capture::{boards, packets, pcap, record};
use crate::common::{Folder, alone, drops, number, pcap_port, run, start};
use serde_json::Value;

/// The roles of the report's cores.
fn roles(report: &Value) -> Vec<&str> {
    let cores = report["cores"].as_array().unwrap().iter();
    cores.map(|core| core["role"].as_str().unwrap()).collect()
}

#[test]
fn the_report_says_what_each_loop_received() {
    let folder = Folder::new();
    let (packets, sent) = packets(&boards(2000));
    let capture = pcap_port(folder.write("boards.pcap", pcap(&packets)));
    let options = ["--port", &capture, "--rx-loops", "2", "--queues", "4"];
    let ended = run(&options).expect(0);
    let report = ended.report();
    assert_eq!(report["end"], "exhausted");
    assert_eq!(roles(report), ["trigger", "receiver 0", "receiver 1"]);
    let receivers = report["receivers"].as_array().unwrap();
    let frames: Vec<_> = receivers.iter().map(|r| number(r, "frames")).collect();
    assert_eq!(frames.iter().sum::<u64>(), sent.frames_sent);
    for (n, receiver) in receivers.iter().enumerate() {
        assert_eq!(receiver["core"], format!("receiver {n}"));
        assert_eq!(number(receiver, "dropped"), 0);
        assert!(number(&receiver["jitter_ns"], "count") > 0);
    }
    assert_eq!(drops(report), []);
    assert!(ended.stdout.contains("receiver 1"), "{}", ended.stdout);
    // Without the option there is no such loop.
    let ended = run(&["--port", &capture]).expect(0);
    assert_eq!(roles(ended.report()), ["trigger"]);
    assert_eq!(ended.report().get("receivers"), None);
}

/// What a loop drops is in its own count, and in the ledger.
#[test]
fn losses_are_counted_by_the_loop_that_has_them() {
    let folder = Folder::new();
    let (mut packets, sent) = packets(&boards(500));
    let bad = packets.len() / 10;
    for packet in packets.iter_mut().step_by(10).take(bad) {
        // A wrong checksum.
        *packet.bytes.last_mut().unwrap() ^= 1;
    }
    let capture = pcap_port(folder.write("boards.pcap", pcap(&packets)));
    let options = ["--port", &capture, "--rx-loops", "3", "--queues", "3"];
    let ended = run(&options).expect(0);
    let report = ended.report();
    let receivers = report["receivers"].as_array().unwrap().iter();
    let dropped: u64 = receivers.map(|r| number(r, "dropped")).sum();
    assert_eq!(dropped, bad as u64);
    assert_eq!(
        number(&report["ledger"]["dropped"], "bad-checksum"),
        bad as u64
    );
    assert_eq!(number(&report["ledger"], "from_wire"), sent.frames_sent);
}

/// A recording at its own pace, which takes far longer than the test.
#[test]
fn a_signal_ends_a_run_with_receive_loops_in_order() {
    let _alone = alone();
    let folder = Folder::new();
    let mut slow = boards(200_000);
    slow.rate = 1000;
    let capture = folder.path("boards.pcapng");
    record(&slow, &capture);
    let port = format!("{},pace=recorded", pcap_port(&capture));
    let options = [
        "--port",
        &port,
        "--rx-loops",
        "2",
        "--queues",
        "2",
        "--metrics",
        "127.0.0.1:0",
    ];
    let mut running = start(&options);
    running.wait_until("frames are received", |running| {
        let page = running.metrics().unwrap_or_default();
        ["0", "1"].iter().all(|n| {
            let sample = format!("pollux_l0_receiver_frames_total{{core=\"receiver {n}\"}} ");
            let sample = page.lines().find_map(|line| line.strip_prefix(&sample));
            sample.is_some_and(|n| n.parse::<u64>().unwrap() > 10)
        })
    });
    running.signal("INT");
    let ended = running.wait().expect(0);
    let report = ended.report();
    assert_eq!(report["end"], "stopped");
    assert_eq!(report["ledger"]["balanced"], true);
    let receivers = report["receivers"].as_array().unwrap();
    assert!(receivers.iter().all(|r| number(r, "frames") > 10));
    let lost: Vec<_> = drops(report)
        .into_iter()
        .filter(|(cause, _)| *cause != "aborted")
        .collect();
    assert_eq!(lost, []);
}

#[test]
fn loops_without_a_queue_or_without_buffers_are_refused() {
    let folder = Folder::new();
    let (packets, _) = packets(&boards(10));
    let capture = pcap_port(folder.write("boards.pcap", pcap(&packets)));
    let options = ["--port", &capture, "--rx-loops", "3", "--queues", "2"];
    let message = ["--rx-loops 3", "2 receive queues", "--queues"];
    run(&options).expect(1).expect_message(&message);
    let small = folder.write("small.toml", "[memory]\nbuffers = 1024\n");
    let options = [
        "--port",
        &capture,
        "--rx-loops",
        "2",
        "--queues",
        "2",
        "--config",
        &small,
    ];
    let message = ["--rx-loops 2", "memory.buffers = 1024", "at least"];
    run(&options).expect(1).expect_message(&message);
}
