//! What is in a file, against what is known of it and what tshark says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{report, run};
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
        report(&["--port", &file(&path)]),
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
        "source    port  packets  bytes  packets/s  Mbit/s\n\
         10.0.0.1  7502        3  46875        1.5   0.188\n\
         \n\
         4 frames from the wire, 3 delivered, 1 dropped\n           \
         1  not-for-us: another protocol, or another host's address\n\
         The loss ledger balances.\n"
    );
}
