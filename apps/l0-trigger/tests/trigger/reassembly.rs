//! `trigger.reassemble`: boards whose frames come in fragments.

use std::fs;

use pollux_pmd_testkit::netns::fragments;
use serde_json::Value;

use crate::common::capture::{Packet, boards, packets, pcap};
use crate::common::{Folder, drops, number, pcap_port, run};

const CONFIG: &str = "[trigger]\nreassemble = true\n[reassembly]\ntimeout_ms = 50\n";

/// The event file of a replay, and the report.
fn replay(packets: &[Packet], config: &str, options: &[&str]) -> (Vec<u8>, Value) {
    let folder = Folder::new();
    let port = pcap_port(folder.write("boards.pcap", pcap(packets)));
    let (config, events) = (folder.write("config.toml", config), folder.arg("events"));
    let named = [
        "--port",
        &port,
        "--config",
        &config,
        "--events-out",
        &events,
    ];
    let ended = run(&[&named[..], options].concat()).expect(0);
    (fs::read(events).unwrap(), ended.report().clone())
}

/// The same frames in fragments, and how many of each.
fn fragmented(packets: &[Packet]) -> (Vec<Packet>, Vec<usize>) {
    let cut = |(packet, id): (&Packet, u16)| {
        let parts = fragments(&packet.bytes, id, 256);
        let of = |bytes| Packet {
            time: packet.time,
            bytes,
        };
        parts.into_iter().map(of).collect::<Vec<_>>()
    };
    let all: Vec<_> = packets.iter().zip(0..).map(cut).collect();
    let counts = all.iter().map(Vec::len).collect();
    (all.concat(), counts)
}

#[test]
fn events_are_those_of_whole_frames() {
    let (whole, _) = packets(&boards(640));
    let (cut, _) = fragmented(&whole);
    assert!(cut.len() > 2 * whole.len());
    let (expected, _) = replay(&whole, "", &[]);
    for options in [
        &[][..],
        &["--burst", "3"],
        &["--queues", "3"],
        &["--rx-loops", "2", "--queues", "3"],
    ] {
        let (events, report) = replay(&cut, CONFIG, options);
        assert!(events == expected, "{options:?}");
        assert_eq!(drops(&report), []);
        let delivered = number(&report["ledger"], "delivered");
        assert_eq!(delivered, cut.len() as u64);
        assert_eq!(number(&report["events"], "complete"), 640);
    }
}

#[test]
fn without_the_option_they_are_counted() {
    let (cut, _) = fragmented(&packets(&boards(64)).0);
    let folder = Folder::new();
    let port = pcap_port(folder.write("boards.pcap", pcap(&cut)));
    let ended = run(&["--port", &port]).expect(1);
    let ended = ended.expect_message(&["ip-fragment: trigger.reassemble = true"]);
    let report = ended.report();
    assert_eq!(drops(report), [("ip-fragment", cut.len() as u64)]);
    assert_eq!(number(&report["events"], "built"), 0);
}

#[test]
fn a_frame_that_lacks_a_fragment_is_lost_with_all_of_them() {
    let (mut cut, counts) = fragmented(&packets(&boards(640)).0);
    cut.remove(counts[..7].iter().sum::<usize>() + 1);
    let (_, report) = replay(&cut, CONFIG, &[]);
    let others = counts[7] as u64 - 1;
    assert_eq!(drops(&report), [("reassembly-timeout", others)]);
    assert!(number(&report["events"], "incomplete") > 0);
}

#[test]
fn a_datagram_of_no_stream_is_dropped_with_all_its_fragments() {
    let (mut cut, _) = fragmented(&packets(&boards(64)).0);
    let stray = crate::common::frames::udp(4000, &[0; 900]);
    let time = cut[0].time;
    let strays = fragments(&stray, 60_000, 256).into_iter();
    cut.splice(0..0, strays.map(|bytes| Packet { time, bytes }));
    let (_, report) = replay(&cut, CONFIG, &[]);
    assert_eq!(drops(&report), [("demux-miss", 4)]);
}
