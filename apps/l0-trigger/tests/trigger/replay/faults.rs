//! Replays of faulty boards: every injected fault is accounted for.

use crate::common::capture::{Packet, boards, faulty_boards, packets, pcap};
use crate::common::oracle::{Facts, facts};
use crate::common::{Folder, drops, number, over_streams, pcap_port, run};
use pollux_emulator::config::{EmulatorConfig, Faults};

use super::PATIENCE;

/// Replays the boards with faults, and compares what the injector says that it did with what the
/// trigger says that it saw.
#[track_caller]
fn assert_faults_are_accounted_for(faults: Faults) -> Facts {
    let config: EmulatorConfig = faulty_boards(4800, faults);
    let (packets, sent) = packets(&config);
    let folder = Folder::new();
    let capture = folder.write("faulty.pcap", pcap(&packets));
    let ended = run(&["--port", &pcap_port(&capture)]).expect(0);
    let report = ended.report();
    let (facts, injected) = (facts(&packets, &config, PATIENCE), sent.faults);

    // The injector's account.
    let mut expected = vec![
        ("bad-checksum", injected.corrupted),
        ("duplicate", injected.duplicated),
        ("late", injected.late),
    ];
    expected.retain(|(_, n)| *n > 0);
    assert_eq!(drops(report), expected, "{injected:?}");
    assert_eq!(number(&report["ledger"], "from_wire"), sent.frames_sent);
    // A frame with a wrong byte has no number that could be believed: it is missing as well. What
    // is lost before the first or behind the last frame of a board leaves no gap.
    let unseen = facts.sum(|board| board.unseen);
    assert_eq!(
        number(report, "missing"),
        injected.lost + injected.corrupted - unseen
    );
    assert_eq!(over_streams(report, "duplicates"), injected.duplicated);
    assert_eq!(over_streams(report, "late"), injected.late);

    // The account of the capture.
    let streams = report["streams"].as_array().unwrap();
    for (stream, board) in streams.iter().zip(&facts.boards) {
        for (key, expected) in [
            ("packets", board.frames),
            ("bytes", board.bytes),
            ("gaps", board.gaps),
            ("missing", board.missing),
            ("duplicates", board.duplicates),
            ("reordered", board.reordered),
        ] {
            assert_eq!(number(stream, key), expected, "{key} of {stream}");
        }
    }
    let events = &report["events"];
    assert_eq!(number(events, "built"), facts.built);
    assert_eq!(number(events, "complete"), facts.complete);
    assert_eq!(number(events, "incomplete"), facts.built - facts.complete);
    assert_eq!(over_streams(report, "absent_events"), {
        // Each frame that is not there in time is one source less for its sixteen events.
        (injected.lost + injected.corrupted + injected.late) * 16
    });
    facts
}

/// A late frame comes behind the deadline of its events, also where most frames of them were sent
/// behind the next ones.
const NONE: Faults = Faults {
    lost: 0.0,
    late: 0.0,
    late_us: 700,
    duplicated: 0.0,
    reordered: 0.0,
    corrupted: 0.0,
};

#[test]
fn lost_frames_are_missing() {
    let facts = assert_faults_are_accounted_for(Faults { lost: 0.1, ..NONE });
    assert!(facts.sum(|board| board.missing) > 50);
}

#[test]
fn late_frames_are_late() {
    let facts = assert_faults_are_accounted_for(Faults { late: 0.1, ..NONE });
    assert!(facts.late > 50);
}

#[test]
fn frames_that_come_twice_are_duplicates() {
    assert_faults_are_accounted_for(Faults {
        duplicated: 0.1,
        ..NONE
    });
}

#[test]
fn frames_out_of_order_are_used() {
    let facts = assert_faults_are_accounted_for(Faults {
        reordered: 0.1,
        ..NONE
    });
    assert!(facts.sum(|board| board.reordered) > 50);
    assert_eq!(facts.complete, 4800);
}

#[test]
fn corrupted_frames_are_bad_checksums() {
    let facts = assert_faults_are_accounted_for(Faults {
        corrupted: 0.1,
        ..NONE
    });
    assert!(facts.corrupted > 50);
}

#[test]
fn all_faults_at_once_are_told_apart() {
    let rate = 0.05;
    assert_faults_are_accounted_for(Faults {
        lost: rate,
        late: rate,
        duplicated: rate,
        reordered: rate,
        corrupted: rate,
        ..NONE
    });
}

#[test]
fn the_last_frames_of_a_board_can_be_lost_unseen() {
    let config = boards(3200);
    let (mut packets, _) = packets(&config);
    // The last ten frames of board 0 never came: no later number tells.
    let of_board_0 = |packet: &Packet| packet.bytes[36..38] == 58_913_u16.to_be_bytes();
    let places: Vec<_> = (0..packets.len())
        .filter(|&i| of_board_0(&packets[i]))
        .collect();
    for &place in places.iter().rev().take(10) {
        packets.remove(place);
    }
    let folder = Folder::new();
    let capture = folder.write("short.pcap", pcap(&packets));
    let ended = run(&["--port", &pcap_port(&capture)]).expect(0);
    let report = ended.report();
    assert_eq!(number(report, "missing"), 0);
    assert_eq!(number(&report["events"], "built"), 3200);
    assert_eq!(number(&report["events"], "incomplete"), 320);
    assert_eq!(number(&report["streams"][0], "absent_events"), 320);
    assert_eq!(drops(report), []);
}

#[test]
fn corrupted_frames_whose_checksum_is_not_verified_never_break_the_books() {
    let config = faulty_boards(
        4800,
        Faults {
            corrupted: 0.3,
            ..NONE
        },
    );
    let (packets, sent) = packets(&config);
    let folder = Folder::new();
    let capture = folder.write("corrupt.pcap", pcap(&packets));
    let toml = folder.write("trigger.toml", "[trigger]\nchecksums = false\n");
    let ended = run(&["--port", &pcap_port(&capture), "--config", &toml]).expect(0);
    let report = ended.report();
    assert_eq!(number(&report["ledger"], "from_wire"), sent.frames_sent);
    let dropped = drops(report);
    assert!(
        dropped
            .iter()
            .any(|&(cause, n)| cause == "malformed" && n > 0),
        "{dropped:?}"
    );
    assert!(
        dropped.iter().all(|&(cause, _)| cause != "bad-checksum"),
        "{dropped:?}"
    );
}
