//! The demonstration: its report, and the fields of the schema.

use crate::common::capture::{boards, record};
use crate::common::{Folder, Run, alone, cpus, drops, number, over_streams, pcap_port, run};
use serde_json::Value;

/// What holds for every demonstration, wherever it was ended.
#[track_caller]
pub(crate) fn assert_demonstration(ended: &Run) -> &Value {
    let report = ended.report();
    // Where the machine takes the emulator's core away for longer than events wait, the frames
    // behind that are late; where it takes the trigger's away at the end, some are left in the
    // queue: counted, and told.
    let dropped = |cause| {
        drops(report)
            .iter()
            .find(|(c, _)| *c == cause)
            .map_or(0, |(_, n)| *n)
    };
    let (late, aborted) = (dropped("late"), dropped("aborted"));
    assert_eq!(late, over_streams(report, "late"));
    assert_eq!(
        drops(report).iter().map(|(_, n)| n).sum::<u64>(),
        late + aborted,
        "{report}"
    );
    assert_eq!(number(report, "missing"), 0);
    assert_eq!(over_streams(report, "gaps"), 0);
    let (emulator, events) = (&report["emulator"], &report["events"]);
    assert_eq!(
        over_streams(report, "packets") + aborted,
        number(emulator, "frames_sent")
    );
    assert_eq!(
        number(events, "accepted") + number(events, "rejected"),
        number(events, "built")
    );
    assert_eq!(
        number(events, "complete") + number(events, "incomplete"),
        number(events, "built")
    );
    let [trigger, boards] = &report["cores"].as_array().unwrap()[..] else {
        panic!("{}", report["cores"]);
    };
    assert_eq!(
        (&trigger["role"], &boards["role"]),
        (&"trigger".into(), &"emulator".into())
    );
    if cpus() >= 2 {
        assert_ne!(trigger["cpu"], boards["cpu"]);
    }
    report
}

#[test]
fn the_demonstration_is_complete_and_good() {
    let _alone = alone();
    let ended = run(&["--events", "30000"]).expect(0);
    let report = assert_demonstration(&ended);
    assert_eq!(report["end"], "complete");
    let (emulator, events) = (&report["emulator"], &report["events"]);
    assert_eq!(emulator["complete"], true);
    assert_eq!(number(events, "built"), 30_000);
    if drops(report).is_empty() {
        assert_eq!(number(events, "complete"), 30_000);
        assert_eq!(number(events, "hits"), number(emulator, "hits_sent"));
    }
    let decisions = &emulator["decisions"];
    assert_eq!(
        number(decisions, "decided"),
        30_000,
        "decisions that came back"
    );
    assert_eq!(number(decisions, "complete"), number(events, "complete"));
    assert_eq!(number(decisions, "accepted"), number(events, "accepted"));
    assert_eq!(
        number(decisions, "missing") + number(decisions, "unknown"),
        0
    );
    assert_eq!(number(&report["answers"], "sent"), 30_000);

    let truth = &report["truth"];
    assert_eq!(truth, &emulator["truth"]);
    assert_eq!(number(truth, "events"), 30_000);
    let of = |key: &str| truth[key].as_f64().unwrap();
    // An event that lacks a late fragment may lack a ring, or have a wrong one.
    let lacking = number(events, "incomplete") as f64 / 30_000.0;
    assert!(
        of("single_ring_efficiency") >= 0.95 - lacking,
        "{truth}, incomplete: {lacking}"
    );
    assert!(
        of("single_ring_fake_rate").max(of("fake_rate")) <= 0.02 + lacking,
        "{truth}, incomplete: {lacking}"
    );

    let total = &report["latency_ns"]["total"];
    assert_eq!(number(total, "count"), 30_000);
    let order = ["p50", "p99", "p999", "p9999", "max"].map(|key| number(total, key));
    assert!(order.is_sorted() && order[0] > 0, "{total}");
    // No absolute time: a machine that was busy shows it in the gaps of the same core.
    let deadline = &report["deadline"];
    assert_eq!(number(deadline, "budget_ns"), 1_000_000);
    if number(deadline, "missed") > 0 {
        assert!(
            number(&report["jitter_ns"], "over_half_budget") > 0,
            "{report}"
        );
    }
}

/// The layout that others rely on: every field, and what kind of value it has.
#[test]
fn the_report_has_every_field_of_its_schema() {
    let _alone = alone();
    let ended = run(&["--events", "3200"]).expect(0);
    let report = ended.report();
    assert_eq!(report["schema"], 1);
    let quantiles = ["p50", "p99", "p999", "p9999", "max"];
    let counts = |value: &Value, keys: &[&str]| keys.iter().for_each(|key| _ = number(value, key));
    assert!(report["duration_s"].as_f64().unwrap() > 0.0);
    counts(report, &["missing"]);
    for port in report["ports"].as_array().unwrap() {
        assert_eq!(port["spec"], "loopback");
        counts(port, &["rx_packets", "rx_bytes", "tx_packets"]);
        assert_eq!(port["arrival_time"], "hardware", "the boards' loop stamps");
    }
    counts(&report["emulator"], &["frames_sent", "hits_sent"]);
    for core in report["cores"].as_array().unwrap() {
        assert!(core["role"].is_string() && core["isolated"].is_boolean());
        assert!(core["cpu"].is_u64() || core["cpu"].is_null());
    }
    let ledger = &report["ledger"];
    counts(ledger, &["from_wire", "delivered"]);
    assert!(ledger["dropped"].is_object() && ledger["balanced"].is_boolean());
    let streams = report["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 4);
    for stream in streams {
        counts(
            stream,
            &[
                "id",
                "udp_port",
                "packets",
                "bytes",
                "gaps",
                "duplicates",
                "late",
            ],
        );
    }
    let events = [
        "built",
        "complete",
        "incomplete",
        "accepted",
        "rejected",
        "rings",
    ];
    counts(&report["events"], &events);
    let latencies = report["latency_ns"].as_object().unwrap();
    for stage in ["decompress", "build", "rings", "decide", "total"] {
        counts(&latencies[stage], &quantiles);
    }
    counts(&report["deadline"], &["budget_ns", "missed"]);
    counts(&report["jitter_ns"], &quantiles);
    for key in ["efficiency", "fake_rate"] {
        assert!(report["truth"][key].is_f64(), "{}", report["truth"]);
    }
}

#[test]
fn without_truth_or_emulator_their_parts_are_left_out() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(32), &capture);
    let ended = run(&["--port", &pcap_port(&capture)]).expect(0);
    let report = ended.report();
    assert!(report.get("emulator").is_none() && report.get("truth").is_none());
    assert_eq!(report["cores"].as_array().unwrap().len(), 1);
}
