//! Replays of what the boards sent, with nothing wrong and with every fault.
#![allow(clippy::float_cmp)] // quarters of a millimetre are exact

mod faults;

use std::fs;

use crate::common::capture::{
    self, Packet, boards, faulty_boards, packets, pcap, record, single_rings,
};
use crate::common::oracle::facts;
use crate::common::{Folder, drops, number, pcap_port, run};
use pollux_emulator::config::Faults;
use pollux_emulator::foreign;
use pollux_emulator::truth::Truth;
use pollux_mempool::time::WireTime;
use pollux_na62::formats::mtp::MAX_PACKET;
use pollux_na62::l0::{L0_EVENT, L0Record};
use pollux_na62::physics::model::TruthEvent;
use pollux_pmd::event::EventRecord;
use serde_json::Value;

/// How long an event waits for its sources in the built-in configuration, in nanoseconds.
const PATIENCE: u64 = 300_000;

#[test]
fn a_clean_capture_is_counted_and_judged_exactly() {
    let (folder, config) = (Folder::new(), single_rings(5000));
    let capture = folder.path("boards.pcapng");
    let sent = record(&config, &capture);
    let truth = folder.write("truth.toml", config.to_toml().unwrap());
    let ended = run(&["--port", &pcap_port(&capture), "--truth", &truth]).expect(0);
    let report = ended.report();

    let facts = facts(&crate::common::capture::read(&capture), &config, PATIENCE);
    assert_eq!(facts.sum(|board| board.frames), sent.frames_sent);
    assert_eq!(report["end"], "exhausted");
    assert_eq!(number(&report["ledger"], "from_wire"), sent.frames_sent);
    assert_eq!(number(&report["ledger"], "delivered"), sent.frames_sent);
    assert_eq!(drops(report), []);
    assert_eq!(number(report, "missing"), 0);
    let port = &report["ports"][0];
    assert_eq!(port["spec"], pcap_port(&capture));
    assert_eq!(number(port, "rx_packets"), sent.frames_sent);
    assert_eq!(port["arrival_time"], "read");
    assert_eq!(
        number(port, "rx_bytes"),
        sent.bytes_sent + 42 * sent.frames_sent
    );
    assert_eq!(number(port, "tx_packets"), 0);
    for (id, (stream, board)) in report["streams"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&facts.boards)
        .enumerate()
    {
        assert_eq!(number(stream, "id"), id as u64);
        assert_eq!(number(stream, "udp_port"), 58_913 + id as u64);
        assert_eq!(number(stream, "packets"), board.frames);
        assert_eq!(number(stream, "bytes"), board.bytes);
        for key in ["gaps", "duplicates", "late", "missing", "reordered"] {
            assert_eq!(number(stream, key), 0, "{key}");
        }
    }
    let events = &report["events"];
    assert_eq!(number(events, "built"), 5000);
    assert_eq!(number(events, "complete"), 5000);
    assert_eq!(number(events, "incomplete"), 0);
    assert_eq!(
        number(events, "accepted") + number(events, "rejected"),
        5000
    );
    assert_eq!(number(events, "hits"), sent.hits_sent);
    assert_eq!(
        number(&report["answers"], "untold"),
        5000,
        "there is no destination"
    );

    let truth = &report["truth"];
    assert_eq!(number(truth, "events"), 5000);
    assert_eq!(number(truth, "unknown"), 0);
    assert!(truth["efficiency"].as_f64().unwrap() >= 0.95, "{truth}");
    assert!(truth["fake_rate"].as_f64().unwrap() <= 0.02, "{truth}");
}

/// Events from a file: here, the same ones.
#[test]
fn a_truth_of_events_is_judged_as_that_of_the_boards() {
    let (folder, config) = (Folder::new(), boards(2000));
    let capture = folder.path("boards.pcapng");
    record(&config, &capture);
    let truth = Truth::of(&config).unwrap();
    let (mut event, mut lines) = (TruthEvent::default(), foreign::header());
    for n in 0..2000 {
        truth.event(n, &mut event);
        foreign::write_event(truth.timeline().moment(n), &event.rings, &mut lines);
    }
    let toml = folder.write("truth.toml", config.to_toml().unwrap());
    let lines = folder.write("truth.jsonl", lines);
    let judged = [toml, lines].map(|truth| {
        let ended = run(&["--port", &pcap_port(&capture), "--truth", &truth]).expect(0);
        ended.report()["truth"].clone()
    });
    assert_eq!(number(&judged[0], "events"), 2000);
    assert_eq!(judged[0], judged[1]);
}

/// The event file of a replay, and the report.
fn replay(folder: &Folder, ports: &[String], options: &[&str]) -> (Vec<u8>, Value) {
    let out = folder.path("events");
    let mut arguments = vec![
        "--force".to_owned(),
        "--events-out".into(),
        out.to_str().unwrap().into(),
    ];
    for port in ports {
        arguments.extend(["--port".into(), port.clone()]);
    }
    arguments.extend(options.iter().map(|&option| option.to_owned()));
    let ended = run(&arguments).expect(0);
    (fs::read(out).unwrap(), ended.report().clone())
}

/// The parts of a report that say what was found, not how fast or where.
fn findings(report: &Value) -> Value {
    let mut report = report.clone();
    for key in [
        "duration_s",
        "ports",
        "cores",
        "latency_ns",
        "deadline",
        "jitter_ns",
        "back_pressure",
        "workers",
    ] {
        assert!(
            report.as_object_mut().unwrap().remove(key).is_some(),
            "{key}"
        );
    }
    // Absent where the trigger's loop receives.
    report.as_object_mut().unwrap().remove("receivers");
    report
}

/// Replays a capture in every way that must make no difference.
fn assert_deterministic(packets: &[Packet]) {
    let folder = Folder::new();
    let whole = pcap_port(folder.write("whole.pcap", pcap(packets)));
    let whole = std::slice::from_ref(&whole);
    let (bytes, report) = replay(&folder, whole, &[]);
    assert!(bytes.len() > 64 * 100);
    let same = |ports: &[String], options: &[&str]| {
        let (again, report_again) = replay(&folder, ports, options);
        assert!(bytes == again, "another event file: {ports:?} {options:?}");
        assert_eq!(
            findings(&report),
            findings(&report_again),
            "{ports:?} {options:?}"
        );
    };
    same(whole, &[]);
    for burst in ["1", "7", "31"] {
        same(whole, &["--burst", burst]);
    }
    for queues in ["2", "3", "4"] {
        same(whole, &["--queues", queues]);
    }
    same(whole, &["--burst", "3", "--queues", "4"]);
    for (workers, burst) in [("1", "32"), ("2", "1"), ("3", "7")] {
        same(whole, &["--workers", workers, "--burst", burst]);
    }
    same(whole, &["--workers", "2", "--queues", "3"]);
    same(whole, &["--workers", "2", "--idle", "pause"]);

    // Each board's frames in a file of its own: any order of the ports, any pairing.
    let of_boards = |name: &str, boards: &[u16]| {
        let board =
            |packet: &&Packet| u16::from_be_bytes([packet.bytes[36], packet.bytes[37]]) - 58_913;
        let part: Vec<_> = packets
            .iter()
            .filter(|packet| boards.contains(&board(packet)))
            .cloned()
            .collect();
        pcap_port(folder.write(name, pcap(&part)))
    };
    let single: Vec<_> = (0..4)
        .map(|board| of_boards(&format!("{board}.pcap"), &[board]))
        .collect();
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
        same(
            &order.map(|board: usize| single[board].clone()),
            &["--burst", "5"],
        );
    }
    let pairs = [of_boards("31.pcap", &[3, 1]), of_boards("02.pcap", &[0, 2])];
    same(&pairs, &["--queues", "2"]);

    // Loops that receive, each on some of the queues.
    same(whole, &["--rx-loops", "2", "--queues", "2"]);
    same(whole, &["--rx-loops", "3", "--queues", "4", "--burst", "7"]);
    same(
        whole,
        &["--rx-loops", "2", "--queues", "3", "--workers", "1"],
    );
    for loops in ["2", "4"] {
        same(&single, &["--rx-loops", loops, "--idle", "pause"]);
    }
}

#[test]
fn replays_of_a_clean_capture_are_identical() {
    let (packets, _) = packets(&boards(2000));
    assert_deterministic(&packets);
}

#[test]
fn replays_of_a_capture_with_all_faults_are_identical() {
    // A late frame comes exactly when others are due: the order of equal stamps is put to test.
    let faults = Faults {
        lost: 0.05,
        late: 0.1,
        late_us: 320,
        duplicated: 0.05,
        reordered: 0.1,
        corrupted: 0.05,
    };
    let (packets, _) = packets(&faulty_boards(2000, faults));
    assert_deterministic(&packets);
}

/// Answers too, packet by packet.
#[test]
fn answers_of_replays_are_identical() {
    let folder = Folder::new();
    let (packets, _) = packets(&boards(3000));
    let capture = pcap_port(folder.write("boards.pcap", pcap(&packets)));
    let answers = |options: &[&str]| {
        let out = folder.arg("answers.pcapng");
        let port = format!("{capture},tx={out}");
        run(&[&["--port", &port], options].concat()).expect(0);
        let packets = capture::read(&folder.path("answers.pcapng")).into_iter();
        packets.map(|packet| packet.bytes).collect::<Vec<_>>()
    };
    let once = answers(&[]);
    // Full packets but for the last: two words for the header, and two for each decision, whose time
    // has another high part than the one before.
    assert_eq!(once.len(), 3000_usize.div_ceil(MAX_PACKET / 8 - 1));
    for options in [
        &["--burst", "1"][..],
        &["--burst", "7", "--queues", "3"],
        &["--workers", "1"],
        &["--workers", "3", "--burst", "5"],
        &["--rx-loops", "2", "--queues", "2"],
        &["--rx-loops", "3", "--queues", "4", "--workers", "1"],
    ] {
        assert!(answers(options) == once, "other answers: {options:?}");
    }
}

#[test]
fn the_event_file_is_as_documented() {
    let (folder, config) = (Folder::new(), boards(300));
    let capture = folder.path("boards.pcapng");
    record(&config, &capture);
    let (bytes, report) = replay(&folder, &[pcap_port(&capture)], &[]);
    assert_eq!(number(&report["recording"], "written"), 300);
    assert_eq!(number(&report["recording"], "lost"), 0);
    let (header, records) = bytes.split_at(64);
    assert_eq!(header[..16], *b"PXEVENTS\x01\0\0\0\x40\0\0\0");
    assert_eq!(header[16..], [0; 48]);
    assert_eq!(records.len(), 300 * 64);
    let (mut rings, mut accepted) = (0, 0);
    for (n, bytes) in records.as_chunks::<64>().0.iter().enumerate() {
        // By the table of docs/formats/event-record.md.
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let (index, length) = (word(8), word(12));
        let event = EventRecord {
            wire: WireTime(u64::from(word(0)) | u64::from(word(4)) << 32),
            index,
            length,
            payload: bytes[16..56].try_into().unwrap(),
            sequence: n as u32,
            stream: 0b1111,
            kind: L0_EVENT,
            ..EventRecord::default()
        };
        // No clock of the run is in the file, and no place in its memory.
        assert_eq!(event.to_bytes(), *bytes);
        let record = L0Record::from_event(&event).unwrap();
        assert_eq!(
            record.timestamp,
            config.first_timestamp + n as u64 * config.spacing()
        );
        assert_eq!((record.sources, record.complete), (0b1111, true));
        rings += u64::from(record.ring_count);
        accepted += u64::from(record.accepted);
        assert_eq!(half(0), record.hits);
        assert_eq!(bytes[2], record.ring_count);
        assert_eq!(bytes[3], u8::from(record.accepted) | 1 << 1);
        // Of the first set of rules, the one that there is.
        assert_eq!(word(4), u32::from(record.accepted));
        assert_eq!(bytes[8..16], record.timestamp.to_le_bytes());
        assert_eq!(bytes[60..64], [0b1111, 0, 0x80, 0]);
        for (bytes, ring) in bytes[16..56].chunks(5).zip(record.rings()) {
            let word = bytes
                .iter()
                .rev()
                .fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
            let signed = |bits: u64| (bits ^ 0x400) as f32 - 1024.0;
            let lengths = [
                signed(word & 0x7ff),
                signed(word >> 11 & 0x7ff),
                (word >> 22 & 0x3ff) as f32,
            ];
            assert_eq!(lengths.map(|length| length / 4.0), [ring.x, ring.y, ring.r]);
            assert_eq!((word >> 32 & 1) as u8, ring.disk);
            assert_eq!(word >> 33, u64::from(ring.hits));
        }
        assert!(
            bytes[16 + 5 * record.rings().len()..56]
                .iter()
                .all(|&byte| byte == 0),
            "rings that are not there"
        );
    }
    assert_eq!(rings, number(&report["events"], "rings"));
    assert_eq!(accepted, number(&report["events"], "accepted"));
}
