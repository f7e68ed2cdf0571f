//! Captures of sources that stop, jump in time or mislead: the other sources lose nothing.

use crate::bad_input::{at_intervals, replay};
use crate::common::capture::{Packet, boards, packets};
use crate::common::frames::{TRIGGER_PORT, arp_request, board_frame, hits, udp};
use crate::common::{drops, number};
use pollux_emulator::link::CAPTURE_EPOCH;

fn of_board(packet: &Packet, board: u16) -> bool {
    packet.bytes[36..38] == (TRIGGER_PORT + board).to_be_bytes()
}

#[test]
fn a_source_that_stops_or_never_starts_holds_nothing_up() {
    let (all, _) = packets(&boards(640));
    let half = CAPTURE_EPOCH.0 + 320 * 10_000;
    // Board 2 stops half-way; board 3 never starts.
    let there =
        |packet: &&Packet| !(of_board(packet, 3) || of_board(packet, 2) && packet.time > half);
    let some: Vec<_> = all.iter().filter(there).cloned().collect();
    let ended = replay(&some, &[]).expect(0);
    let report = ended.report();
    assert_eq!(drops(report), []);
    assert_eq!(number(report, "missing"), 0, "no number tells of them");
    assert_eq!(number(&report["events"], "built"), 640);
    assert_eq!(number(&report["events"], "incomplete"), 640);
    let absent = |stream: usize| number(&report["streams"][stream], "absent_events");
    assert_eq!([0, 1, 2, 3].map(absent), [0, 0, 320, 640]);
    assert_eq!(number(&report["streams"][3], "packets"), 0);
}

#[test]
fn a_capture_without_a_single_frame_of_a_board_ends_with_its_report() {
    for (frames, status) in [
        (vec![], 0),
        (vec![arp_request([198, 18, 0, 1])], 1),
        (vec![udp(9, b"x"); 100], 1),
    ] {
        let n = frames.len() as u64;
        let ended = replay(&at_intervals(frames), &[]).expect(status);
        let report = ended.report();
        assert_eq!(number(&report["ledger"], "from_wire"), n);
        assert_eq!(number(&report["events"], "built"), 0);
        assert_eq!(number(&report["latency_ns"]["total"], "count"), 0);
        assert!(
            ended.stdout.contains("events     0 built"),
            "{}",
            ended.stdout
        );
    }
}

/// One event in a frame of each board, for each time stamp.
fn all_boards(timestamps: &[u64]) -> Vec<Vec<u8>> {
    let frames = timestamps.iter().zip(0..);
    frames
        .flat_map(|(&timestamp, sequence)| {
            (0..4).map(move |board| board_frame(board, sequence, &[timestamp]))
        })
        .collect()
}

#[test]
fn a_time_stamp_far_ahead_is_refused_and_hurts_no_other() {
    let mut frames = all_boards(&(0..200).map(|n| 1_000_000 + n * 400).collect::<Vec<_>>());
    // Board 1 loses its clock for one frame: seconds ahead, days, the end of time.
    for (place, timestamp) in [(101, 200_000_000), (201, 1 << 45), (301, u64::MAX - 1)] {
        frames[place] = board_frame(1, place as u32 / 4, &[timestamp]);
    }
    let ended = replay(&at_intervals(frames), &[]).expect(0);
    let report = ended.report();
    assert_eq!(drops(report), [("out-of-window", 3)]);
    let events = &report["events"];
    assert_eq!(
        (number(events, "complete"), number(events, "incomplete")),
        (197, 3)
    );
}

#[test]
fn time_stamps_that_jump_or_wrap_are_followed() {
    // The clock of all boards jumps: to days later, back to zero (a new burst), to the end of the
    // 32 bits that a decision's time stamp has and over it, to the end of all time stamps.
    for to in [1 << 45, 0, (1 << 32) - 200 * 400, u64::MAX - 400 * 400] {
        let numbers = 0..400;
        let before = |n: u64| 500_000_000 + n * 400;
        let timestamps: Vec<_> = numbers
            .map(|n| {
                if n < 200 {
                    before(n)
                } else {
                    to + (n - 200) * 400
                }
            })
            .collect();
        // 4 us an event, so that a deadline (300 us) is some 75 events.
        let ended = replay(&at_intervals(all_boards(&timestamps)), &[]).expect(0);
        let report = ended.report();
        let complete = number(&report["events"], "complete");
        let refused: u64 = drops(report).iter().map(|(_, n)| n).sum();
        // A majority jumps, so it is believed, and nothing is lost; some that are in between are torn.
        assert_eq!(refused, 0, "{to}");
        assert!(complete >= 400 - 4, "{to}: {complete}");
        assert_eq!(number(&report["events"], "resyncs"), 1);
        assert_eq!(number(report, "missing"), 0);
    }
}

/// One board of four is a millisecond ahead, behind, or on the port of another.
#[test]
fn a_board_that_is_wrong_is_named_and_costs_the_others_nothing() {
    const EVENTS: u64 = 5000;
    let run = |wrong: &dyn Fn(u64) -> Vec<u8>| {
        let packets = (0..EVENTS).flat_map(|n| {
            (0..4u8)
                .map(move |board| (n, board))
                .map(|(n, board)| Packet {
                    time: CAPTURE_EPOCH.0 + n * 10_000 + u64::from(board) * 100,
                    bytes: match board {
                        1 => wrong(n),
                        _ => board_frame(board, n as u32, &[5_000_000 + 400 * n]),
                    },
                })
        });
        let ended = replay(&packets.collect::<Vec<_>>(), &[]).expect(0);
        let report = ended.report().clone();
        for board in [0, 2, 3] {
            let stream = &report["streams"][board];
            assert_eq!(stream["faults"], serde_json::json!([]), "{stream}");
            assert_eq!(number(stream, "missed_events"), 0, "{stream}");
        }
        assert!(
            ended.stdout.contains("WRONG      stream 1 (board 1): "),
            "{}",
            ended.stdout
        );
        report
    };
    for offset in [-40_000, 40_000] {
        let time = |n: u64| (5_000_000 + 400 * n).saturating_add_signed(offset);
        let report = run(&|n| board_frame(1, n as u32, &[time(n)]));
        let stream = &report["streams"][1];
        let faults = stream["faults"].as_array().unwrap();
        assert!(faults.contains(&"clock".into()), "{stream}");
        assert!(number(stream, "clock_skew") > EVENTS - 200, "{stream}");
        assert_eq!(stream["clock_off"], true);
    }
    // Frames to the port of board 1 carry the number of board 2.
    let report = run(&|n| {
        let payload = hits(2, n as u32, &[5_000_000 + 400 * n]);
        udp(TRIGGER_PORT + 1, &payload)
    });
    let stream = &report["streams"][1];
    assert_eq!(stream["faults"], serde_json::json!(["absent", "identity"]));
    assert_eq!(drops(&report), [("misrouted", EVENTS)]);
    // Frames of board 1 are of a later version of the format.
    let report = run(&|n| {
        let mut payload = hits(1, n as u32, &[5_000_000 + 400 * n]);
        payload[4] = 9;
        udp(TRIGGER_PORT + 1, &payload)
    });
    let stream = &report["streams"][1];
    assert_eq!(
        stream["faults"],
        serde_json::json!(["absent", "unreadable"])
    );
    assert_eq!(number(stream, "unreadable"), EVENTS);
    assert_eq!(drops(&report), [("bad-version", EVENTS)]);
}

#[test]
fn a_single_frame_is_one_event() {
    let ended = replay(&at_intervals([board_frame(2, 77, &[5])]), &[]).expect(0);
    let events = &ended.report()["events"];
    assert_eq!(
        (number(events, "built"), number(events, "incomplete")),
        (1, 1)
    );
}

#[test]
fn stamps_of_the_capture_that_step_back_or_stand_still_are_survived() {
    let (good, sent) = packets(&boards(640));
    for stamp in [
        |_| 0,
        |n| u64::from(u32::MAX - n) * 1_000_000_000,
        |_| u64::from(u32::MAX) * 1_000_000_000,
    ] {
        let restamped = good.iter().zip(0..).map(|(packet, n)| {
            let time: fn(u32) -> u64 = stamp;
            Packet {
                time: time(n),
                ..packet.clone()
            }
        });
        let ended = replay(&restamped.collect::<Vec<_>>(), &[]).expect(0);
        let report = ended.report();
        assert_eq!(drops(report), []);
        assert_eq!(number(&report["ledger"], "delivered"), sent.frames_sent);
        assert_eq!(number(&report["events"], "complete"), 640);
    }
}
