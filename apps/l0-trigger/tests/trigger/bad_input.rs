//! Captures of what should not come: each frame is counted under its cause, and the run ends.

use crate::common::capture::{Packet, boards, packets, pcap};
use crate::common::frames::{
    TRIGGER_PORT, arp_request, board_frame, ethernet, hits, ipv4, udp, udp_over_ipv6,
};
use crate::common::{Folder, Run, drops, number, over_streams, pcap_port, run};
use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::link::CAPTURE_EPOCH;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Replays packets from a file.
pub(crate) fn replay(packets: &[Packet], options: &[&str]) -> Run {
    replay_file(&pcap(packets), options)
}

fn replay_file(bytes: &[u8], options: &[&str]) -> Run {
    let folder = Folder::new();
    let port = pcap_port(folder.write("bad.pcap", bytes));
    run(&[&["--port", &port][..], options].concat())
}

/// Frames at one microsecond from each other.
pub(crate) fn at_intervals(frames: impl IntoIterator<Item = Vec<u8>>) -> Vec<Packet> {
    let stamped = |(bytes, n): (_, u64)| Packet {
        time: CAPTURE_EPOCH.0 + n * 1000,
        bytes,
    };
    frames.into_iter().zip(0..).map(stamped).collect()
}

/// The boards' frames of some events, with others strewn in between.
fn among_good(frames: &[Vec<u8>]) -> (Vec<Packet>, u64) {
    let (good, sent) = packets(&boards(640));
    let mut mixed = good.clone();
    for (n, bytes) in frames.iter().enumerate() {
        let place = (n * 7919) % (mixed.len() + 1);
        let time = mixed.get(place).or(mixed.last()).unwrap().time;
        mixed.insert(
            place,
            Packet {
                time,
                bytes: bytes.clone(),
            },
        );
    }
    (mixed, sent.frames_sent)
}

/// Strews frames among those of a good run, of which nothing may be lost for that.
#[track_caller]
fn assert_dropped(frames: &[Vec<u8>], causes: &[(&str, u64)]) {
    let (mixed, good) = among_good(frames);
    let ended = replay(&mixed, &[]).expect(0);
    let report = ended.report();
    assert_eq!(drops(report), causes);
    assert_eq!(number(&report["ledger"], "delivered"), good);
    assert_eq!(number(&report["events"], "complete"), 640);
    assert_eq!(number(&report["events"], "incomplete"), 0);
    assert_eq!(number(report, "missing"), 0);
}

#[test]
fn truncated_frames_are_malformed() {
    let whole = board_frame(0, 0, &[1_000_000, 1_000_400]);
    // Each length from nothing to one byte short of the frame: never what was sent.
    let frames: Vec<_> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
    assert_dropped(&frames, &[("malformed", whole.len() as u64)]);
}

#[test]
fn truncated_payloads_with_right_checksums_are_malformed() {
    let payload = hits(0, 0, &[1_000_000, 1_000_400]);
    let cut = |len: usize| udp(TRIGGER_PORT, &payload[..len]);
    let frames: Vec<_> = (0..payload.len()).map(cut).collect();
    assert_dropped(&frames, &[("malformed", payload.len() as u64)]);
}

#[test]
fn other_versions_boards_and_detectors_are_told_apart() {
    let with = |at: usize, byte: u8| {
        let mut payload = hits(0, 0, &[1_000_000]);
        payload[at] = byte;
        udp(TRIGGER_PORT, &payload)
    };
    let frames = [
        with(4, 0),    // version
        with(4, 2),    // version
        with(5, 0x24), // another detector
        with(6, 4),    // board 4 of four
        with(6, 255),  // board
        with(0, b'p'), // magic
        with(7, 1),    // reserved
    ];
    assert_dropped(
        &frames,
        &[("bad-version", 2), ("malformed", 2), ("unsupported", 3)],
    );
}

#[test]
fn other_protocols_are_counted_and_ports_without_stream_too() {
    let mut frames = vec![
        arp_request([198, 18, 0, 1]),
        ipv4(6, 0x4000, &[0; 40]),                   // TCP
        ipv4(1, 0, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]), // a ping, which a capture cannot answer
        ethernet(0x88cc, &[0; 46]),                  // LLDP
        ethernet(0x0026, &[0; 38]),                  // IEEE 802.3 with a length
        udp_over_ipv6(58, TRIGGER_PORT, b"icmp"),
    ];
    // IPv6 datagrams have a stream if their port has.
    frames.push(udp_over_ipv6(17, 4000, b"nobody"));
    frames.extend((0..500).map(|n| udp(4000 + n % 7, b"a flood")));
    assert_dropped(&frames, &[("demux-miss", 501), ("not-for-us", 6)]);
}

#[test]
fn fragments_are_counted() {
    let body = [
        &30_000_u16.to_be_bytes()[..],
        &TRIGGER_PORT.to_be_bytes(),
        &[0; 60],
    ]
    .concat();
    let frames = [
        ipv4(17, 0x2000, &body), // the first
        ipv4(17, 0x2008, &body), // one in the middle
        ipv4(17, 0x0010, &body), // the last
        udp_over_ipv6(44, TRIGGER_PORT, &body),
    ];
    assert_dropped(&frames, &[("ip-fragment", 4)]);
}

#[test]
fn wrong_checksums_are_counted() {
    let whole = board_frame(0, 0, &[1_000_000]);
    let flipped = |at: usize| {
        let mut frame = whole.clone();
        frame[at] ^= 0x10;
        frame
    };
    // IPv4: time to live, source. UDP: source port, checksum, the payload to its last byte.
    let frames: Vec<_> = [22, 26, 34, 40, 42, 50, whole.len() - 1]
        .map(flipped)
        .into();
    assert_dropped(&frames, &[("bad-checksum", 7)]);
}

#[test]
fn oversize_frames_are_chained_or_counted_never_cut() {
    // A container that spans buffers of 256 bytes is as good as any.
    let (good, sent) = packets(&boards(640));
    let folder = Folder::new();
    let small = folder.write("small.toml", "[memory]\ndata_room = 256\nbuffers = 4096\n");
    let ended = replay(&good, &["--config", &small]).expect(0);
    let report = ended.report();
    assert_eq!(drops(report), []);
    assert_eq!(number(&report["events"], "complete"), 640);
    assert_eq!(number(&report["ledger"], "delivered"), sent.frames_sent);

    // The longest datagrams, though not of this format: whole, and so checked to the last byte.
    let mut jumbo = udp(TRIGGER_PORT, &vec![7; 65_507]);
    let whole = jumbo.clone();
    *jumbo.last_mut().unwrap() ^= 1;
    let (mixed, delivered) = among_good(&[whole, jumbo]);
    let ended = replay(&mixed, &["--config", &small]).expect(0);
    assert_eq!(
        drops(ended.report()),
        [("bad-checksum", 1), ("malformed", 1)]
    );
    assert_eq!(number(&ended.report()["ledger"], "delivered"), delivered);

    // Longer than the longest chain (1024 buffers of 256 bytes), and cut off by the capture.
    let mut file = pcap(&good);
    let header = |captured: u32, original: u32| {
        [(good[0].time / 1_000_000_000) as u32, 0, captured, original]
            .map(u32::to_le_bytes)
            .concat()
    };
    file.extend(header(300_000, 300_000));
    file.extend(ethernet(0x0800, &vec![0; 300_000 - 14]));
    file.extend(header(100, 1514));
    file.extend(&good[0].bytes[..100]);
    let ended = replay_file(&file, &["--config", &small]).expect(0);
    assert_eq!(drops(ended.report()), [("oversize", 2)]);
    assert_eq!(
        number(&ended.report()["ledger"], "delivered"),
        sent.frames_sent
    );
}

/// Something that may be in a frame.
fn nasty_frame(rng: &mut impl Rng, n: u32) -> Vec<u8> {
    let board = rng.random_range(0..5);
    let timestamp = match rng.random_range(0..8) {
        0 => rng.random(),
        1 => rng.random_range(0..10),
        _ => 1_000_000 + u64::from(n) * 100 + rng.random_range(0..2000),
    };
    let mut frame = match rng.random_range(0..12) {
        0 => {
            let mut noise = vec![0; rng.random_range(0..2000)];
            rng.fill_bytes(&mut noise);
            return noise;
        }
        1 => udp(rng.random(), &[1; 30]),
        2 => udp_over_ipv6(
            17,
            TRIGGER_PORT + u16::from(board),
            &hits(0, n, &[timestamp]),
        ),
        3 => arp_request(rng.random()),
        4 => ipv4(rng.random(), rng.random(), &[0; 50]),
        5 => {
            let mut payload = hits(board, n, &[timestamp]);
            let at = rng.random_range(0..payload.len());
            payload[at] = rng.random();
            udp(TRIGGER_PORT + u16::from(board), &payload)
        }
        6 => board_frame(board, rng.random(), &[timestamp]),
        7 => {
            let count = rng.random_range(0..40);
            let timestamps: Vec<_> = (0..count).map(|i| (timestamp >> 1) + i * 7).collect();
            board_frame(board, n / 5, &timestamps)
        }
        _ => board_frame(board, n / 5, &[timestamp]),
    };
    match rng.random_range(0..10) {
        0 => frame.truncate(rng.random_range(0..=frame.len())),
        1 => {
            let at = rng.random_range(0..frame.len());
            frame[at] = rng.random();
        }
        2 => frame.extend(vec![0; rng.random_range(0..60)]), // padding, or worse
        _ => {}
    }
    frame
}

#[test]
fn any_mix_of_frames_keeps_the_books() {
    let folder = Folder::new();
    let unchecked = folder.write("unchecked.toml", "[trigger]\nchecksums = false\n");
    for seed in 0..6 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut time = CAPTURE_EPOCH.0;
        let frames: Vec<_> = (0..2000)
            .map(|n| {
                time = match rng.random_range(0..200) {
                    0 => time + 1_000_000_000,
                    1 => time - 500_000_000,
                    _ => time + rng.random_range(0..20_000),
                };
                Packet {
                    time,
                    bytes: nasty_frame(&mut rng, n),
                }
            })
            .collect();
        for options in [&[][..], &["--config", &unchecked]] {
            let out = folder.arg("events");
            let with_events = [options, &["--force", "--events-out", &out]].concat();
            let ended = replay(&frames, &with_events).expect(0);
            let report = ended.report();
            assert_eq!(number(&report["ledger"], "from_wire"), 2000);
            assert!(drops(report).len() >= 5, "{:?}", drops(report));
            let (events, built) = (&report["events"], number(&report["events"], "built"));
            assert!(built > 100, "{events}");
            assert_eq!(
                number(events, "complete") + number(events, "incomplete"),
                built
            );
            assert_eq!(
                number(events, "accepted") + number(events, "rejected"),
                built
            );
            // A fragment that comes again under another number makes a duplicate as well.
            let duplicates = drops(report)
                .iter()
                .find(|(cause, _)| *cause == "duplicate")
                .map(|(_, n)| *n);
            assert!(over_streams(report, "duplicates") <= duplicates.unwrap_or(0));
            let bytes = std::fs::read(&out).unwrap();
            assert_eq!(bytes.len() as u64, 64 * (1 + built));
            // However the frames are read.
            let again = [&with_events[..], &["--burst", "3", "--queues", "3"]].concat();
            replay(&frames, &again).expect(0);
            assert!(
                bytes == std::fs::read(&out).unwrap(),
                "seed {seed}: another event file"
            );
        }
    }
}

#[test]
fn a_damaged_capture_is_reported_and_fails() {
    let (good, sent) = packets(&boards(640));
    let file = pcap(&good);
    let cut_record = &file[..file.len() - 10];
    let cut_header = &file[..file.len() - good.last().unwrap().bytes.len() - 3];
    let mut absurd = file.clone();
    absurd.extend([0xff; 16]);
    for (bytes, frames, what) in [
        (cut_record, sent.frames_sent - 1, "truncated"),
        (cut_header, sent.frames_sent - 1, "truncated"),
        (&absurd, sent.frames_sent, "damaged"),
    ] {
        for queues in ["1", "3"] {
            let ended = replay_file(bytes, &["--queues", queues]).expect(1);
            let ended = ended.expect_message(&["bad.pcap", what]);
            let report = ended.report();
            // One stands for whatever the rest was.
            assert_eq!(number(&report["ledger"], "from_wire"), frames + 1);
            assert_eq!(number(&report["ledger"], "delivered"), frames);
            assert_eq!(drops(report), [("device-error", 1)]);
            assert!(
                ended.stdout.contains("ledger"),
                "the report comes first: {}",
                ended.stdout
            );
        }
    }
}

#[test]
fn a_pool_that_is_too_small_for_all_that_could_be_read_ahead_is_enough() {
    let folder = Folder::new();
    let config = EmulatorConfig {
        events_per_frame: 60,
        ..boards(3000)
    };
    let (frames, sent) = packets(&config);
    let port = pcap_port(folder.write("boards.pcap", pcap(&frames)));
    // Twelve ports read ahead 32 frames of six buffers each: more than there are.
    let small = folder.write("small.toml", "[memory]\ndata_room = 256\nbuffers = 1024\n");
    let mut arguments = vec!["--config", &small];
    (0..12).for_each(|_| arguments.extend(["--port", &port]));
    let ended = run(&arguments).expect(0);
    let report = ended.report();
    assert_eq!(
        number(&report["ledger"], "from_wire"),
        12 * sent.frames_sent
    );
    assert_eq!(drops(report), [("duplicate", 11 * sent.frames_sent)]);
    assert_eq!(number(&report["events"], "complete"), 3000);
}

#[test]
fn a_capture_of_which_nothing_is_used_is_a_failure() {
    let others: Vec<_> = (0..3).map(|_| udp(9, &[0; 64])).collect();
    let unreadable: Vec<_> = (0..3).map(|_| udp(TRIGGER_PORT, &[0xff; 64])).collect();
    let of_another: Vec<_> = (0..3).map(|_| ethernet(0x88b5, &[0; 64])).collect();
    for (frames, cause) in [
        (others, "demux-miss"),
        (unreadable, "malformed"),
        (of_another, "not-for-us"),
    ] {
        let ended = replay(&at_intervals(frames), &[]).expect(1);
        let said = format!("no event was built; of 3 frames 3 were dropped as {cause}: ");
        let ended = ended.expect_message(&[&said]);
        assert!(ended.stdout.contains(&said), "{}", ended.stdout);
        assert_eq!(drops(ended.report()), [(cause, 3)]);
    }
    // Without frames there is nothing to fail at, nor where those of others are among frames without events.
    replay(&[], &[]).expect(0);
    let empty = (0..9).map(|n| board_frame(0, n, &[]));
    let stray = udp(9, b"x");
    let ended = replay(&at_intervals(empty.chain([stray])), &[]).expect(0);
    assert_eq!(number(&ended.report()["events"], "built"), 0);
    assert_eq!(number(&ended.report()["ledger"], "delivered"), 9);
}
