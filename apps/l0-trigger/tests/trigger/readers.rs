//! Replays of what NA62's boards send: multi-event packets with TEL62 data, and primitives.

use std::fs;

use crate::common::capture::{Packet, packets, pcap, single_rings};
use crate::common::frames::{TRIGGER_PORT, udp};
use crate::common::{Folder, drops, number, over_streams, pcap_port, run, start};
use pollux_na62::formats::hits::{HitsFrame, MAX_HITS};
use pollux_na62::formats::mep::MepWriter;
use pollux_na62::formats::mtp::{MtpWriter, Primitive, SOURCE_RICH};
use pollux_na62::formats::tel62::{Edge, write_tel62};
use pollux_na62::rich::Hit;
use pollux_na62::rich::geometry::PMS;
use serde_json::Value;

const EVENTS: u64 = 2000;
const BOARDS: u8 = 4;
/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

/// A frame of an emulated board.
struct Sent {
    time: u64,
    board: u8,
    /// Number of its first event.
    first: u32,
    events: Vec<(u32, Vec<Hit>)>,
}

/// What the boards of a run sent.
fn sent() -> (Vec<Packet>, Vec<Sent>) {
    let config = single_rings(EVENTS);
    let (packets, _) = packets(&config);
    let frames = packets.iter().map(|packet| {
        let frame = HitsFrame::parse(&packet.bytes[HEADERS..]).unwrap();
        let mut hits = [Hit::default(); MAX_HITS];
        let (mut each, mut events) = (frame.events(), Vec::new());
        while let Some((timestamp, hits)) = each.next_into(&mut hits) {
            events.push((u32::try_from(timestamp).unwrap(), hits.to_vec()));
        }
        let first = (frame.first_timestamp() - config.first_timestamp) / config.spacing();
        Sent {
            time: packet.time,
            board: frame.sub_id(),
            first: first as u32,
            events,
        }
    });
    let frames = frames.collect();
    (packets, frames)
}

/// Frames with what `payload` makes of each of the boards'.
fn frames(sent: &[Sent], payload: impl Fn(&Sent) -> Vec<u8>) -> Vec<Packet> {
    let frame = |sent: &Sent| Packet {
        time: sent.time,
        bytes: udp(TRIGGER_PORT + u16::from(sent.board), &payload(sent)),
    };
    sent.iter().map(frame).collect()
}

fn mep(sent: &Sent) -> Vec<u8> {
    let mut writer = MepWriter::new(vec![0; 9000], SOURCE_RICH, sent.board, sent.first).unwrap();
    for (timestamp, hits) in &sent.events {
        let edges = hits.iter().flat_map(|hit| {
            let channel = hit.pm - u16::from(sent.board) * (PMS as u16 / u16::from(BOARDS));
            let leading = Edge {
                fpga: (channel >> 7) as u8,
                tdc: (channel >> 5) as u8 & 3,
                channel: channel as u8 & 31,
                leading: true,
                time: u64::from(*timestamp) << 8 | u64::from(hit.fine),
            };
            // The end of the signal, some 8 ns later.
            let trailing = Edge {
                leading: false,
                time: leading.time + 80,
                ..leading
            };
            [leading, trailing]
        });
        let mut edges: Vec<_> = edges.collect();
        edges.sort_by_key(|edge| (edge.fpga, edge.time));
        let mut data = [0; 4096];
        let len = write_tel62(&mut data, sent.board, 1, *timestamp, &edges).unwrap();
        writer.push(*timestamp, false, &data[..len]).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

/// A primitive of each event of which the detector saw something, as far as `sees` says.
fn mtp(sent: &Sent, sees: impl Fn(u8, u32) -> bool) -> Vec<u8> {
    let mut writer = MtpWriter::new(vec![0; 1472], 0x10 + sent.board, 0).unwrap();
    for (number, (timestamp, _)) in (sent.first..).zip(&sent.events) {
        let id = if sees(sent.board, number) {
            0x0140
        } else {
            0x0200
        };
        let primitive = Primitive {
            id,
            timestamp: *timestamp,
            fine: 17,
        };
        writer.push(primitive).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

/// The event file and the report of a replay.
fn replay(packets: &[Packet], stages: &str) -> (Vec<u8>, Value) {
    let folder = Folder::new();
    let capture = pcap_port(folder.write("boards.pcap", pcap(packets)));
    let config = folder.write("trigger.toml", stages);
    let events = folder.arg("events");
    let ended = run(&[
        "--port",
        &capture,
        "--config",
        &config,
        "--events-out",
        &events,
    ]);
    let ended = ended.expect(0);
    (fs::read(events).unwrap(), ended.report().clone())
}

const RINGS: &str = "[[stage]]\nname = \"rings\"\n[[stage]]\nname = \"decide\"\n";

#[test]
fn tdc_data_are_decided_as_the_same_hits_in_containers() {
    let (containers, sent) = sent();
    for builder in ["build", "merge"] {
        let rest = format!("[[stage]]\nname = \"{builder}\"\n{RINGS}");
        let by = |reader: &str| format!("{reader}{rest}");
        let (expected, before) = replay(&containers, &by("[[stage]]\nname = \"decompress\"\n"));
        let reader = "[[stage]]\nname = \"read-mep\"\n[[stage]]\nname = \"read-tel62\"\n";
        let (events, report) = replay(&frames(&sent, mep), &by(reader));
        assert_eq!(number(&report["events"], "complete"), EVENTS, "{builder}");
        assert!(number(&report["events"], "accepted") > EVENTS / 2);
        assert_eq!(before["events"], report["events"], "{builder}");
        assert!(events == expected, "{builder}: another event file");
        assert_eq!(drops(&report), []);
        assert_eq!(over_streams(&report, "missing"), 0);
    }
}

/// The boards of the demonstration send containers, of which no packet can be read.
#[test]
fn metrics_of_a_stage_are_on_the_page() {
    let folder = Folder::new();
    let reader = "[[stage]]\nname = \"read-mep\"\n[[stage]]\nname = \"read-tel62\"\n";
    let stages = format!("{reader}[[stage]]\nname = \"build\"\n{RINGS}");
    let config = folder.write("trigger.toml", stages);
    let arguments = ["--events", "50000000", "--metrics", "127.0.0.1:0"];
    let arguments = [&["--config", &config][..], &arguments].concat();
    let mut running = start(&arguments);
    let page = running.metrics().unwrap();
    running.signal("TERM");
    running.wait();
    for name in ["unconnected_edges", "outside_edges"] {
        let sample = format!("pollux_stage_{name}_total{{stage=\"read-tel62\"}} 0\n");
        assert!(page.contains(&sample), "{page}");
    }
    assert!(page.contains("# HELP pollux_stage_outside_edges Leading edges outside"));
}

/// One packet is lost, one comes twice, one is of a board that there is not, and one has half of a
/// word.
#[test]
fn each_packet_that_is_wrong_is_counted_by_its_cause() {
    let (_, sent) = sent();
    let mut packets = frames(&sent, mep);
    let mut payload = mep(&sent[10]);
    payload.truncate(payload.len() - 2);
    let len = (payload.len() as u16).to_le_bytes();
    payload[4..6].copy_from_slice(&len);
    packets[10].bytes = udp(TRIGGER_PORT + u16::from(sent[10].board), &payload);
    let mut payload = mep(&sent[20]);
    payload[7] = 99;
    packets[20].bytes = udp(TRIGGER_PORT + u16::from(sent[20].board), &payload);
    packets.insert(31, packets[30].clone());
    packets.remove(50);
    let stages = "[[stage]]\nname = \"read-mep\"\n[[stage]]\nname = \"read-tel62\"\n\
                  [[stage]]\nname = \"build\"\n";
    let (_, report) = replay(&packets, &format!("{stages}{RINGS}"));
    let expected = [("duplicate", 1), ("malformed", 1), ("unsupported", 1)];
    assert_eq!(drops(&report), expected);
    // The damaged one cannot be read, the one of another board is of no source: three are missing.
    assert_eq!(over_streams(&report, "missing"), 3);
    assert_eq!(number(&report["events"], "built"), EVENTS);
    assert_eq!(
        number(&report["ledger"], "delivered"),
        packets.len() as u64 - 3
    );
}

#[test]
fn primitives_of_detectors_are_decided_by_their_coincidence() {
    let (_, sent) = sent();
    // Detector 3 sees every fifth event; detector 1 sees another kind of thing in every second.
    let sees = |detector, event| match detector {
        1 => event % 2 == 0,
        3 => event % 5 == 0,
        _ => true,
    };
    let mut packets = frames(&sent, |sent| mtp(sent, sees));
    let mut payload = mtp(&sent[4], sees);
    payload[6] -= 1;
    packets.push(Packet {
        time: sent.last().unwrap().time,
        bytes: udp(TRIGGER_PORT + u16::from(sent[4].board), &payload),
    });
    let stages = r#"
[[stage]]
name = "read-mtp"
detectors = [0x10, 0x11, 0x12, 0x13]
select = [
    { source = 1, mask = 0xff00, value = 0x0100 },
    { source = 3, mask = 0xff00, value = 0x0100 },
]

[[stage]]
name = "build"

[[stage]]
name = "rings"

[[stage]]
name = "decide"

[[stage.rule]]
name = "all"
min_rings = 0
min_sources = 4

[[stage.rule]]
name = "0 and 3"
min_rings = 0
sources = [0, 3]
"#;
    let (_, report) = replay(&packets, stages);
    let events = &report["events"];
    assert_eq!(number(events, "built"), EVENTS);
    assert_eq!(number(events, "complete"), EVENTS / 10);
    assert_eq!(number(events, "accepted"), EVENTS / 5);
    assert_eq!(number(events, "rejected"), EVENTS - EVENTS / 5);
    assert_eq!(drops(&report), [("malformed", 1)]);
    assert_eq!(number(&report["ledger"], "delivered"), sent.len() as u64);
    let rules = report["rules"].to_string();
    assert!(rules.contains("with source 3"), "{rules}");
}
