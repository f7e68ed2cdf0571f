//! Parser on recorded traffic: every frame is a datagram or has a drop cause, and the counts equal
//! those of an independent tool.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use pcap_file::pcap::PcapReader;
use pollux_pmd::net::{ParseOptions, Parsed, Reject, parse};

/// Datagrams of one capture by (source, destination port), and refused frames.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    frames: usize,
    udp: BTreeMap<(IpAddr, u16), usize>,
    fragments: usize,
    others: usize,
}

/// The recorded captures; empty where the data is not available.
fn captures() -> Vec<PathBuf> {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    );
    let Ok(folder) = std::fs::read_dir(data.join("pcap")) else {
        println!("skipped: no recorded data at {}", data.display());
        return Vec::new();
    };
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "pcap")
    });
    files.sort();
    files
}

/// Parses a capture whose frames have a first segment of `segment` bytes and a second one.
fn count(path: &Path, segment: usize) -> Counts {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let mut counts = Counts::default();
    while let Some(packet) = reader.next_packet() {
        let frame = packet.unwrap().data;
        let (first, rest) = frame.split_at(segment.min(frame.len()));
        counts.frames += 1;
        match parse(first, frame.len(), &ParseOptions::default()) {
            Ok(Parsed::Udp(udp)) => {
                udp.verify([first, rest])
                    .expect("recorded checksums are right");
                *counts
                    .udp
                    .entry((udp.addresses.src(), udp.dst_port))
                    .or_default() += 1;
            }
            Ok(_) => counts.others += 1,
            Err(Reject::IpFragment) => counts.fragments += 1,
            Err(reject) => panic!("{}: frame {}: {reject}", path.display(), counts.frames),
        }
    }
    counts
}

/// Counts of tshark for the same file, without reassembly. `None` where it is not installed.
fn tshark(path: &Path) -> Option<Counts> {
    let mut command = Command::new("tshark");
    command
        .args(["-o", "ip.defragment:FALSE", "-T", "fields", "-r"])
        .arg(path);
    for field in ["ip.src", "udp.dstport", "ip.flags.mf", "ip.frag_offset"] {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut counts = Counts::default();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let fields: Vec<_> = line.split('\t').collect();
        counts.frames += 1;
        if matches!(fields[2], "1" | "True") || !matches!(fields[3], "0" | "") {
            counts.fragments += 1;
        } else if fields[1].is_empty() {
            counts.others += 1;
        } else {
            let key = (fields[0].parse().unwrap(), fields[1].parse().unwrap());
            *counts.udp.entry(key).or_default() += 1;
        }
    }
    Some(counts)
}

#[test]
fn counts_equal_those_of_tshark() {
    for path in captures() {
        let counts = count(&path, usize::MAX);
        assert!(counts.frames > 0, "{}", path.display());
        for segment in [60, 2048] {
            assert_eq!(
                count(&path, segment),
                counts,
                "{}: segments of {segment}",
                path.display()
            );
        }
        match tshark(&path) {
            Some(expected) => assert_eq!(counts, expected, "{}", path.display()),
            None => println!("skipped: tshark is not installed"),
        }
    }
}

#[test]
fn fragments_are_counted_and_whole_datagrams_kept() {
    for path in captures() {
        if path
            .file_name()
            .is_some_and(|name| name == "same_ports.pcap")
        {
            let counts = count(&path, usize::MAX);
            assert_eq!(counts.fragments, 21);
            assert_eq!(
                counts.udp.keys().map(|(_, port)| *port).collect::<Vec<_>>(),
                [7502, 7502]
            );
            assert_eq!(counts.udp.values().sum::<usize>(), 2);
        }
    }
}
