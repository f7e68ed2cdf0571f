//! What is in a file, against what is known of it and what tshark says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{counts_alone, report, run};
use crate::support::{Capture, datagram, file, text};

/// (packets, bytes of payload) by (source, destination port).
type Counts = BTreeMap<(String, u64), (u64, u64)>;

fn counts(report: &Value) -> Counts {
    let streams = report["streams"].as_array().unwrap();
    let number = |stream: &Value, key| stream[key].as_u64().unwrap();
    streams
        .iter()
        .map(|stream| {
            let src = stream["src_ip"].as_str().unwrap().to_owned();
            let counts = (number(stream, "packets"), number(stream, "bytes"));
            ((src, number(stream, "dst_port")), counts)
        })
        .collect()
}

/// The recorded captures; none where the data is not there.
pub(super) fn recorded() -> Vec<PathBuf> {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let Ok(folder) = std::fs::read_dir(data.join("pcap")) else {
        println!("skipped: no recorded data at {}", data.display());
        return Vec::new();
    };
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "pcap"));
    files.sort();
    files
}

/// Counts by tshark, without reassembly, and all frames. `None` where it is not installed.
fn tshark(path: &Path) -> Option<(Counts, u64)> {
    let mut command = Command::new("tshark");
    command
        .args(["-o", "ip.defragment:FALSE", "-T", "fields", "-r"])
        .arg(path);
    for field in [
        "ip.src",
        "udp.dstport",
        "udp.length",
        "ip.flags.mf",
        "ip.frag_offset",
    ] {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (mut counts, mut frames) = (Counts::new(), 0);
    for line in text(&output.stdout).lines() {
        frames += 1;
        let fields: Vec<_> = line.split('\t').collect();
        let fragment = matches!(fields[3], "1" | "True") || !matches!(fields[4], "0" | "");
        if !fragment && !fields[1].is_empty() {
            let key = (fields[0].to_owned(), fields[1].parse().unwrap());
            let (packets, bytes) = counts.entry(key).or_default();
            *packets += 1;
            *bytes += fields[2].parse::<u64>().unwrap() - 8;
        }
    }
    Some((counts, frames))
}

#[test]
fn counts_equal_those_of_tshark() {
    for path in recorded() {
        let Some((expected, frames)) = tshark(&path) else {
            println!("skipped: tshark is not installed");
            return;
        };
        let report = report(&["--port", &file(&path)]);
        assert_eq!(counts(&report), expected, "{}", path.display());
        assert_eq!(report["from_wire"], frames, "{}", path.display());
        assert!(report.get("other").is_none());
    }
}

#[test]
fn fragments_are_counted_one_by_one_and_whole_datagrams_kept() {
    let named = |path: &&PathBuf| path.ends_with("same_ports.pcap");
    let Some(path) = recorded().iter().find(named).cloned() else {
        return;
    };
    assert_eq!(
        counts_alone(report(&["--port", &file(&path)])),
        json!({
            "streams": [
                {"src_ip": "169.254.92.158", "dst_port": 7502, "packets": 1, "bytes": 48},
                {"src_ip": "169.254.238.111", "dst_port": 7502, "packets": 1, "bytes": 48},
            ],
            "dropped": {"ip-fragment": 21},
            "from_wire": 23,
            "delivered": 2,
            "balanced": true,
        })
    );
}

/// A frame in VLANs, the outermost first.
fn tagged(frame: &[u8], tags: &[u16]) -> Vec<u8> {
    let tags = tags.iter().map(|id| [[0x81, 0], id.to_be_bytes()].concat());
    let tags: Vec<_> = tags.flatten().collect();
    [&frame[..12], &tags, &frame[12..]].concat()
}

/// To another address, without checksums of UDP.
fn to(frame: &[u8], dst: [u8; 4]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[30..34].copy_from_slice(&dst);
    frame[24..26].fill(0);
    frame[40..42].fill(0);
    let header = frame[14..34].chunks(2);
    let sum: u32 = header
        .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn a_stream_has_its_destinations_and_its_rate() {
    let one = datagram(0x0a00_0001, 7502, &[0; 1000]);
    let two = datagram(0x0a00_0002, 7502, &[0; 10]);
    let mut frames = vec![
        (0, tagged(&one, &[5 | 3 << 13])),
        (1, tagged(&one, &[5])),
        (2, one.clone()),
        (3, tagged(&to(&one, [239, 1, 1, 1]), &[100, 7])),
        (4, tagged(&one, &[5])),
    ];
    frames.extend((0..5).map(|n| (4, to(&two, [10, 1, 0, n]))));
    let capture = Capture::new(&frames);
    let report = report(&["--port", &capture.spec()]);
    let streams = report["streams"].as_array().unwrap();
    assert_eq!(
        streams[0]["to"],
        json!([
            {"dst_ip": "10.0.0.2", "vlans": [5]},
            {"dst_ip": "10.0.0.2", "vlans": []},
            {"dst_ip": "239.1.1.1", "vlans": [100, 7]},
        ])
    );
    assert!(streams[0].get("to_more").is_none());
    assert_eq!(
        (&streams[0]["rate_pps"], &streams[0]["rate_bps"]),
        (&1.25.into(), &10_000.0.into())
    );
    assert_eq!(streams[1]["to"].as_array().unwrap().len(), 4);
    assert_eq!(streams[1]["to_more"], true);
    let table = text(&run(&["--port", &capture.spec()]).stdout);
    let words = |line: &str| {
        line.split_whitespace()
            .map(String::from)
            .collect::<Vec<_>>()
    };
    let lines: Vec<_> = table.lines().take(3).map(words).collect();
    assert_eq!(
        lines[1],
        [
            "10.0.0.1", "10.0.0.2", "+2", "5", "7502", "5", "5000", "1.2", "0.010"
        ]
    );
    assert_eq!(lines[2][1..6], ["10.1.0.0", "+4", "or", "more", "-"]);
    // Of one moment there is no rate.
    let capture = Capture::of_frames(&[two]);
    let one = self::report(&["--port", &capture.spec()]);
    assert!(one["streams"][0]["rate_pps"].is_null());
}

#[test]
fn the_senders_of_several_files_are_summed() {
    let one = Capture::new(&[(0, datagram(1, 10, &[0; 5])), (1, datagram(2, 10, &[0; 5]))]);
    let two = Capture::new(&[(5, datagram(1, 10, &[0; 7])), (6, datagram(1, 11, &[]))]);
    let report = report(&["--port", &one.spec(), "--port", &two.spec()]);
    let stream = |ip: &str, port, packets, bytes| ((ip.to_owned(), port), (packets, bytes));
    let expected = [
        stream("0.0.0.1", 10, 2, 12),
        stream("0.0.0.1", 11, 1, 0),
        stream("0.0.0.2", 10, 1, 5),
    ];
    assert_eq!(counts(&report), expected.into());
    assert_eq!(report["from_wire"], 4);
}

#[test]
fn long_datagrams_are_verified_over_all_their_buffers() {
    let good = datagram(1, 7502, &vec![7; 24_832]);
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    let capture = Capture::new(&[(0, good), (0, bad)]);
    let strict = report(&["--port", &capture.spec()]);
    assert_eq!(strict["streams"][0]["bytes"], 24_832);
    assert_eq!(strict["dropped"], json!({"bad-checksum": 1}));
    let trusting = report(&["--port", &capture.spec(), "--trust-checksums"]);
    assert_eq!(trusting["streams"][0]["packets"], 2);
    assert_eq!(trusting["dropped"], json!({}));
}

#[test]
fn other_traffic_has_its_causes() {
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 46]].concat();
    let capture = Capture::new(&[
        (0, arp),
        (0, vec![1; 60]),
        (0, datagram(1, 10, &[])[..30].to_vec()),
        (0, Vec::new()),
    ]);
    let report = report(&["--port", &capture.spec()]);
    assert_eq!(report["dropped"], json!({"not-for-us": 2, "malformed": 2}));
    assert_eq!(report["streams"], json!([]));
}

#[test]
fn the_busiest_come_first_and_the_others_are_summed() {
    let frames = (0..6).flat_map(|sender: u16| {
        let frame = (0, datagram(u32::from(sender), 7000, &[0; 10]));
        std::iter::repeat_n(frame, usize::from(sender) + 1)
    });
    let capture = Capture::new(&frames.collect::<Vec<_>>());
    let report = report(&["--port", &capture.spec(), "--top", "2"]);
    let packets = |stream: usize| &report["streams"][stream]["packets"];
    assert_eq!((packets(0), packets(1)), (&json!(6), &json!(5)));
    assert_eq!(report["streams"].as_array().unwrap().len(), 2);
    assert_eq!(report["other"], json!({"packets": 10, "bytes": 100}));
    assert_eq!(report["delivered"], 21);
}

#[test]
fn a_flood_of_senders_is_counted_without_being_told_apart() {
    let senders = (1 << 16) + 1000;
    let frames: Vec<_> = (0..senders)
        .map(|src| (0, datagram(src, 9, &[1, 2])))
        .collect();
    let report = report(&["--port", &Capture::new(&frames).spec()]);
    assert_eq!(report["streams"].as_array().unwrap().len(), 1 << 16);
    assert_eq!(report["other"], json!({"packets": 1000, "bytes": 2000}));
    assert_eq!(report["delivered"], senders);
}

#[test]
fn the_table_is_for_people() {
    let frames = [0, 1, 2].map(|second| (second, datagram(0x0a00_0001, 7502, &[0; 125_000 / 8])));
    let capture = Capture::new(&[&frames[..], &[(2, vec![0; 60])]].concat());
    let output = run(&["--port", &capture.spec()]);
    assert!(output.status.success());
    assert_eq!(
        text(&output.stdout),
        "source    destination  vlan  port  packets  bytes  packets/s  Mbit/s\n\
         10.0.0.1  10.0.0.2        -  7502        3  46875        1.5   0.188\n\
         \n\
         4 frames from the wire, 3 delivered, 1 dropped\n           \
         1  not-for-us: another protocol, or another host's address\n\
         The loss ledger balances.\n"
    );
}
