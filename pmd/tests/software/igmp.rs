//! Messages of a multicast group member, as decoded by tshark.

use std::fs::File;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use pcap_file::pcap::{PcapPacket, PcapWriter};
use pollux_mempool::time::Ns;
use pollux_pmd::net::MacAddr;
use pollux_pmd::net::igmp::{IgmpHost, MAX_GROUPS};
use pollux_pmd_testkit::guard::listen;

const GROUPS: [Ipv4Addr; 2] = [Ipv4Addr::new(239, 1, 2, 3), Ipv4Addr::new(239, 1, 2, 4)];

/// A query of version 2 for all groups, from 10.77.0.254, as a Linux bridge sends it.
const V2_QUERY: [u8; 46] = [
    1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, // Ethernet
    0x46, 0xc0, 0, 32, 0, 0, 0x40, 0, 1, 2, 0xf8, 0xcb, 10, 77, 0, 254, 224, 0, 0, 1, // IPv4
    0x94, 4, 0, 0, // Router Alert
    0x11, 100, 0xee, 0x9b, 0, 0, 0, 0,
];

/// All messages of a host from a time on.
fn said(host: &mut IgmpHost, frames: &mut Vec<Vec<u8>>) {
    while host.due() < Ns(u64::MAX) {
        host.poll(host.due(), |frame| {
            frames.push(frame.to_vec());
            true
        });
    }
}

/// Receiving and sending never allocates, frees or enters the kernel.
#[test]
fn a_member_does_nothing_but_work() {
    let noise = listen(|ear| {
        let mut host = IgmpHost::new(MacAddr([2, 0, 0, 0, 0, 2]), Ipv4Addr::LOCALHOST, 1);
        let mut now = Ns(0);
        let said = |host: &mut IgmpHost, now: &mut Ns| {
            while host.due() < Ns(u64::MAX) {
                *now = host.due();
                assert!(host.poll(*now, |frame| !frame.is_empty()));
            }
        };
        ear.during(|| {
            for last in 0..MAX_GROUPS {
                host.join(Ipv4Addr::new(239, 0, 0, last as u8), now)
                    .unwrap();
            }
            for _ in 0..2 {
                said(&mut host, &mut now);
                host.observe(&V2_QUERY, now).unwrap();
            }
            assert!(host.observe(&V2_QUERY[..45], now).is_err());
            said(&mut host, &mut now);
            host.leave_all(now);
            said(&mut host, &mut now);
        });
        // Of version 3: two of the joins. Of version 2: two answers and a leave of each.
        assert_eq!(host.counts().reports.get(), 2 + 3 * MAX_GROUPS as u64);
        assert!(host.has_left());
    });
    noise.1.assert_none();
}

#[test]
fn tshark_reads_what_a_member_says() {
    let mut host = IgmpHost::new(MacAddr([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 77, 0, 2), 1);
    let mut frames = Vec::new();
    let second = |n: u64| Ns(n * 1_000_000_000);
    host.join(GROUPS[0], second(0)).unwrap();
    host.join(GROUPS[1], second(0)).unwrap();
    said(&mut host, &mut frames);
    host.observe(&V2_QUERY, second(10)).unwrap();
    said(&mut host, &mut frames);
    host.leave_all(second(30));
    said(&mut host, &mut frames);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("igmp.pcap");
    let mut file = PcapWriter::new(File::create(&path).unwrap()).unwrap();
    for frame in frames.iter().map(Vec::as_slice).chain([&V2_QUERY[..]]) {
        let packet = PcapPacket::new(Duration::ZERO, frame.len() as u32, frame);
        file.write_packet(&packet).unwrap();
    }
    drop(file);
    let mut tshark = Command::new("tshark");
    tshark.args([
        "-o",
        "ip.check_checksum:TRUE",
        "-T",
        "fields",
        "-E",
        "aggregator=+",
        "-r",
    ]);
    tshark.arg(&path);
    for field in [
        "eth.dst",
        "ip.dst",
        "ip.ttl",
        "ip.opt.ra",
        "ip.checksum.status",
        "igmp.checksum.status",
        "igmp.type",
        "igmp.record_type",
        "igmp.maddr",
    ] {
        tshark.args(["-e", field]);
    }
    let Ok(output) = tshark.output() else {
        println!("skipped: tshark is not installed");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let mut lines: Vec<_> = text.lines().map(|line| line.replace('\t', " ")).collect();
    // In version 2 each group is reported at a random time of its own.
    lines[2..4].sort();
    let to =
        |station: &str, ip: &str, rest: &str| format!("01:00:5e:{station} {ip} 1 0 1 1 {rest}");
    let join = to("00:00:16", "224.0.0.22", "0x22 4+4 239.1.2.3+239.1.2.4");
    let expected = [
        join.clone(),
        join,
        to("01:02:03", "239.1.2.3", "0x16  239.1.2.3"),
        to("01:02:04", "239.1.2.4", "0x16  239.1.2.4"),
        to("00:00:02", "224.0.0.2", "0x17  239.1.2.3"),
        to("00:00:02", "224.0.0.2", "0x17  239.1.2.4"),
        to("00:00:01", "224.0.0.1", "0x11  0.0.0.0"),
    ];
    assert_eq!(lines, expected);
}
