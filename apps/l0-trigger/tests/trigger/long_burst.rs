//! Bursts longer than the 32 bits of an answer's time stamp: 107 s.

use pollux_emulator::config::EmulatorConfig;
use pollux_na62::formats::mtp::MtpPacket;
use pollux_na62::l0::PrimitiveId;

use crate::common::capture::{boards, record};
use crate::common::{Folder, assert_balanced, number, pcap_port, run};

const EVENTS: u64 = 10_000;

/// Slots of 25 ns before the first bit that answers lack; the run takes twice as many.
const BEFORE: u64 = 200 * EVENTS;

/// Windows by the hits' own times, instead of events by the boards' time stamps.
const MERGE: &str = r#"
[[stage]]
name = "decompress"
[[stage]]
name = "merge"
[[stage]]
name = "rings"
[[stage]]
name = "decide"
"#;

fn crossing(times: u64) -> EmulatorConfig {
    EmulatorConfig {
        first_timestamp: (times << 32) - BEFORE,
        ..boards(EVENTS)
    }
}

/// Time stamps of the records in a file.
fn timestamps(folder: &Folder) -> Vec<u64> {
    let bytes = std::fs::read(folder.path("records")).unwrap();
    let records = bytes[64..].as_chunks::<64>().0.iter();
    let timestamp = |record: &[u8; 64]| record[8..16].try_into().map(u64::from_le_bytes);
    records.map(|record| timestamp(record).unwrap()).collect()
}

/// Decisions come back across the edge, and each finds its event.
#[test]
fn decisions_find_their_events_across_the_edge_of_32_bits() {
    let folder = Folder::new();
    let truth = folder.write("truth.toml", crossing(1).to_toml().unwrap());
    let ended = run(&["--truth", &truth]).expect(0);
    let report = ended.report();
    assert_balanced(report);
    assert_eq!(report["end"], "complete");
    let decisions = &report["emulator"]["decisions"];
    assert_eq!(number(decisions, "unknown"), 0, "{report}");
    assert_eq!(number(decisions, "forgotten"), 0);
    // A machine with few cores may hold the trigger up for longer than events wait.
    assert!(number(decisions, "decided") * 10 >= EVENTS * 9, "{report}");
    assert_eq!(number(&report["truth"], "unknown"), 0);
    assert_eq!(number(&report["events"], "resyncs"), 0);
}

/// Records keep 64 bits; nothing is lost, held up or taken for older than it is.
#[test]
fn events_and_their_records_go_on_across_the_edge() {
    for (times, stages) in [(1, ""), (3, ""), (1, MERGE)] {
        let folder = Folder::new();
        let (config, capture) = (crossing(times), folder.path("boards.pcapng"));
        record(&config, &capture);
        let truth = folder.write("truth.toml", config.to_toml().unwrap());
        let trigger = folder.write("trigger.toml", stages);
        let ended = run(&[
            "--port",
            &pcap_port(&capture),
            "--config",
            &trigger,
            "--truth",
            &truth,
            "--events-out",
            &folder.arg("records"),
        ])
        .expect(0);
        let report = ended.report();
        assert_balanced(report);
        let events = &report["events"];
        assert_eq!(number(events, "resyncs"), 0, "{report}");
        let stamps = timestamps(&folder);
        assert_eq!(stamps.len() as u64, number(events, "built"));
        assert!(stamps.is_sorted());
        let edge = times << 32;
        let before = stamps.iter().filter(|&&stamp| stamp < edge).count() as u64;
        let behind = stamps.len() as u64 - before;
        // Windows of events without hits are not made.
        assert!(before.min(behind) > EVENTS / 4, "{before}, {behind}");
        assert!(before.abs_diff(behind) < EVENTS / 20, "{before}, {behind}");
        assert!(stamps.iter().all(|stamp| stamp.abs_diff(edge) < 2 * BEFORE));
        if stages.is_empty() {
            assert_eq!(number(events, "complete"), EVENTS);
            assert_eq!(number(&report["truth"], "unknown"), 0);
        }
    }
}

/// Answers have the low 32 bits: the last before the edge, and the first behind it.
#[test]
fn answers_carry_the_low_bits() {
    let folder = Folder::new();
    let (config, capture) = (crossing(1), folder.path("boards.pcapng"));
    record(&config, &capture);
    let answers = folder.path("answers.pcapng");
    let trigger = folder.write(
        "trigger.toml",
        "[answer]\nto = \"10.0.0.2:58900\"\nmac = \"02:00:00:00:00:02\"\n",
    );
    let port = format!("{},tx={}", pcap_port(&capture), answers.display());
    run(&["--port", &port, "--config", &trigger]).expect(0);
    let mut stamps = Vec::new();
    for packet in crate::common::capture::read(&answers) {
        let packet = MtpPacket::parse(&packet.bytes[42..]).unwrap();
        for primitive in packet.primitives() {
            assert!(PrimitiveId::from_bits(primitive.id).is_some());
            stamps.push(primitive.timestamp);
        }
    }
    assert_eq!(stamps.len() as u64, EVENTS);
    let wraps: Vec<_> = (1..stamps.len())
        .filter(|&n| stamps[n] < stamps[n - 1])
        .collect();
    assert_eq!(wraps.len(), 1, "once, from the highest to the lowest");
    assert!(stamps[wraps[0] - 1] > u32::MAX - 10_000 && stamps[wraps[0]] < 10_000);
}
