//! `pollux generate`.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use pollux_pmd::net::{ParseOptions, Parsed, Udp, parse};
use serde_json::Value;

use crate::support::{Folder, packets, refused, reported, run, text};

/// Generates into a file; what is in it.
fn generated(options: &[&str]) -> (Vec<Vec<u8>>, Value) {
    let folder = Folder::new();
    let sink = folder.sink("out.pcapng");
    let report = reported("generate", &[&[&*sink], options].concat(), 0);
    let frames = packets(&folder.path("out.pcapng"));
    (frames.into_iter().map(|packet| packet.1).collect(), report)
}

fn udp(frame: &[u8]) -> Udp {
    match parse(frame, frame.len(), &ParseOptions::default()) {
        Ok(Parsed::Udp(udp)) => udp,
        other => panic!("{other:?}"),
    }
}

fn le<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().unwrap()
}

/// The bytes behind the header, made by docs/formats/generator.md and not by the program's code.
fn content(seed: u64, flow: u16, sequence: u32, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut table = Vec::new();
    while table.len() < 65_536 + len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table.extend((z ^ (z >> 31)).to_le_bytes());
    }
    let n = (u64::from(flow) * 40_503 + u64::from(sequence)) % (1 << 32);
    let start = (n * 2_654_435_761 % (1 << 32)) / 65_536;
    table[start as usize..][..len].to_vec()
}

#[test]
fn every_byte_is_as_documented() {
    let options = ["--count", "300", "--flows", "7", "--size", "64,1500,9000"];
    let (frames, report) = generated(&[&options[..], &["--seed", "42"]].concat());
    assert_eq!(frames.len(), 300);
    assert_eq!(
        (&report["sent"], &report["unsent"]),
        (&300.into(), &0.into())
    );
    let mut sent = 0;
    for (n, frame) in frames.iter().enumerate() {
        assert_eq!(frame.len(), [64, 1500, 9000][n % 3]);
        let datagram = udp(frame);
        let flow = (n % 7) as u16;
        assert_eq!(datagram.src_port, 1024 + flow);
        assert_eq!(datagram.dst_port, 9000);
        let payload = datagram.payload(frame);
        assert_eq!(payload.len(), frame.len() - 42);
        assert_eq!(&payload[..2], b"PG");
        assert_eq!(u16::from_le_bytes(le(payload, 2)), flow);
        assert_eq!(u32::from_le_bytes(le(payload, 4)), n as u32 / 7);
        let before = std::mem::replace(&mut sent, u64::from_le_bytes(le(payload, 8)));
        assert!(sent >= before);
        let expected = content(42, flow, n as u32 / 7, payload.len() - 16);
        assert!(payload[16..] == expected, "frame {n}");
    }
}

#[test]
fn the_example_of_the_page_is_right() {
    let bytes = [0xdf, 0x2a, 0x05, 0x9a, 0xb9, 0xf7, 0xe7, 0xa4];
    assert_eq!(content(1, 2, 3, 8), bytes);
    let page = include_str!("../../../../docs/formats/generator.md");
    let hex = bytes.map(|byte| format!("{byte:02x}")).join(" ");
    assert!(page.contains(&hex), "{hex}");
}

#[test]
fn patterns_are_what_they_say() {
    let (frames, _) = generated(&["--count", "9", "--pattern", "zeros", "--size", "200"]);
    assert!(frames.iter().all(|frame| frame[58..] == [0; 142]));
    let (frames, _) = generated(&["--count", "9", "--pattern", "increment", "--size", "400"]);
    for frame in &frames {
        let steps = frame[58..]
            .windows(2)
            .map(|pair| pair[1].wrapping_sub(pair[0]));
        assert!(steps.eq(std::iter::repeat_n(1, 341)));
    }
    let same = ["--count", "50", "--size", "60-1514", "--seed", "3"];
    let strip = |frames: Vec<Vec<u8>>| -> Vec<_> {
        // All but checksum and time.
        let parts = |f: Vec<u8>| [&f[..40], &f[42..50], &f[58..]].concat();
        frames.into_iter().map(parts).collect()
    };
    assert!(strip(generated(&same).0) == strip(generated(&same).0));
}

#[test]
fn flows_differ_in_what_is_varied() {
    let tuples = |vary: &str| {
        let (frames, _) = generated(&[
            "--count",
            "8",
            "--flows",
            "4",
            "--vary",
            vary,
            "--src",
            "10.0.0.254:5000",
            "--dst",
            "10.1.0.1:6000",
        ]);
        let tuple = |frame: &Vec<u8>| {
            let udp = udp(frame);
            let ends = (udp.addresses.src(), udp.addresses.dst());
            format!("{}:{} {}:{}", ends.0, udp.src_port, ends.1, udp.dst_port)
        };
        frames.iter().map(tuple).collect::<Vec<_>>()
    };
    let ports = tuples("dst-port");
    assert_eq!(ports[3], "10.0.0.254:5000 10.1.0.1:6003");
    assert_eq!(ports[..4], ports[4..]);
    let all = tuples("src-ip,dst-ip,src-port,dst-port");
    assert_eq!(all[0], "10.0.0.254:5000 10.1.0.1:6000");
    assert_eq!(all[2], "10.0.1.0:5002 10.1.0.3:6002");
}

#[test]
fn flows_are_of_ipv6_where_an_end_is() {
    let ends = ["--src", "[fd00::ffff:fffe]:5000", "--dst", "[fd00::1]:6000"];
    let more = [
        "--flows",
        "4",
        "--count",
        "400",
        "--vary",
        "src-ip,dst-port",
    ];
    let (frames, _) = generated(&[&ends[..], &more].concat());
    assert_eq!(frames.len(), 400);
    for (n, frame) in frames.iter().enumerate() {
        // The least that has both headers: 14, 40, 8 and 16 bytes.
        assert_eq!((frame.len(), &frame[12..14]), (78, &[0x86, 0xdd][..]));
        let udp = udp(frame);
        assert_ne!(udp.checksum, 0);
        let src = std::net::Ipv6Addr::from_bits((0xfd00 << 112) + 0xffff_fffe + n as u128 % 4);
        assert_eq!(udp.addresses.src(), src);
        assert_eq!((udp.src_port, udp.dst_port), (5000, 6000 + n as u16 % 4));
        let expected = content(1, n as u16 % 4, n as u32 / 4, 0);
        assert_eq!(&udp.payload(frame)[..2], b"PG");
        assert!(udp.payload(frame)[16..] == expected);
    }
    // One end is enough, a tag may be in front, and sizes are as asked for.
    let (frames, _) = generated(&["--dst", "[fd00::1]:9", "--vlan", "5", "--count", "3"]);
    assert!(
        frames
            .iter()
            .all(|frame| frame.len() == 82 && frame[16..18] == [0x86, 0xdd])
    );
    let (frames, _) = generated(&["--src", "[fd00::2]:9", "--size", "900", "--count", "3"]);
    for frame in &frames {
        assert_eq!(frame.len(), 900);
        assert_eq!(udp(frame).addresses.dst().to_string(), "2001:2::1");
    }
    let refused = |args: &[&str], what: &str| {
        let message = refused("generate", &[&["null"], args].concat(), 2);
        assert!(message.contains(what), "{message}");
    };
    refused(
        &["--dst", "[fd00::1]:9", "--no-checksum"],
        "over IPv6 every datagram",
    );
    refused(
        &["--dst", "[fd00::1]:9", "--src", "10.0.0.1:9"],
        "of two kinds",
    );
    refused(
        &["--dst", "[fd00::1]:9", "--size", "64"],
        "at least 78 bytes",
    );
    let highest = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:9";
    refused(
        &["--dst", highest, "--flows", "2", "--vary", "dst-ip"],
        "above the highest",
    );
}

/// Lengths, checksums and addresses are those that another program reads.
#[test]
fn another_program_finds_ipv6_right() {
    let folder = Folder::new();
    let path = folder.path("out.pcapng");
    let sink = folder.sink("out.pcapng");
    let args = [
        &*sink,
        "--dst",
        "[fd00::1]:9000",
        "--count",
        "20",
        "--size",
        "78,601,1514",
    ];
    reported("generate", &args, 0);
    let mut tcpdump = Command::new("tcpdump");
    let Ok(output) = tcpdump.args(["-nnvv", "-r"]).arg(&path).output() else {
        println!("skipped: no tcpdump");
        return;
    };
    let read = text(&output.stdout);
    assert_eq!(read.matches("[udp sum ok]").count(), 20, "{read}");
    assert!(read.contains("2001:2::2.1024 > fd00::1.9000"), "{read}");
}

#[test]
fn imix_and_ranges_have_their_sizes() {
    let (frames, _) = generated(&["--count", "1200", "--size", "imix"]);
    let mut sizes = BTreeMap::new();
    for frame in &frames {
        *sizes.entry(frame.len()).or_insert(0) += 1;
    }
    assert_eq!(sizes, BTreeMap::from([(60, 700), (590, 400), (1514, 100)]));
    let (frames, _) = generated(&["--count", "500", "--size", "70-80"]);
    assert!(frames.iter().all(|frame| (70..=80).contains(&frame.len())));
}

#[test]
fn headers_are_right_for_tshark_too() {
    let folder = Folder::new();
    let sink = folder.sink("out.pcapng");
    let options = [
        "--count", "200", "--flows", "5", "--size", "imix", "--vlan", "7",
    ];
    let macs = [
        "--src-mac",
        "02:00:00:00:00:aa",
        "--dst-mac",
        "02:00:00:00:00:bb",
    ];
    // A tag leaves less than 60 bytes no room for the header.
    let message = refused("generate", &[&[&*sink][..], &options].concat(), 2);
    assert!(
        message.contains("--size 60: a frame has at least 62 bytes"),
        "{message}"
    );
    let options = options.map(|option| {
        if option == "imix" {
            "64,65,1514"
        } else {
            option
        }
    });
    reported("generate", &[&[&*sink][..], &options, &macs].concat(), 0);
    let checks = ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE"];
    let mut tshark = Command::new("tshark");
    tshark.args([
        "-r",
        folder.path("out.pcapng").to_str().unwrap(),
        "-T",
        "fields",
    ]);
    tshark.args(checks.iter().flat_map(|check| ["-o", check]));
    for field in [
        "eth.src",
        "eth.dst",
        "vlan.id",
        "ip.checksum.status",
        "udp.checksum.status",
    ] {
        tshark.args(["-e", field]);
    }
    let Ok(output) = tshark.output() else {
        println!("skipped: tshark is not installed");
        return;
    };
    let lines = text(&output.stdout);
    assert_eq!(lines.lines().count(), 200, "{}", text(&output.stderr));
    let expected = "02:00:00:00:00:aa\t02:00:00:00:00:bb\t7\t1\t1";
    assert!(lines.lines().all(|line| line == expected), "{lines}");
}

#[test]
fn a_datagram_without_checksum_says_so() {
    let (frames, _) = generated(&["--count", "3", "--no-checksum"]);
    assert!(frames.iter().all(|frame| frame[40..42] == [0, 0]));
}

#[test]
fn a_checksum_is_left_to_no_device_that_does_not_finish_it() {
    let error = refused("generate", &["null", "--offload-checksum"], 2);
    assert!(error.contains("complete the checksums"), "{error}");
}

#[test]
fn a_rate_is_not_exceeded() {
    let since = Instant::now();
    let options = ["null", "--count", "2000", "--rate", "10k"];
    let report = reported("generate", &options, 0);
    // The last frame is due a tenth of a millisecond before the end of its slot.
    assert!(since.elapsed().as_secs_f64() > 0.1999);
    let rate = report["rate_pps"].as_f64().unwrap();
    assert!(rate <= 10_001.0, "{rate}");
    assert_eq!(report["rate_asked"], "10000pps");
    // Ten frames of 1000 bytes in 0.1 s, by groups of five.
    let groups = [
        "null", "--count", "10", "--rate", "800kbit", "--size", "1000", "--burst", "5",
    ];
    let since = Instant::now();
    let bits = reported("generate", &groups, 0)["rate_bps"]
        .as_f64()
        .unwrap();
    assert!(since.elapsed().as_secs_f64() > 0.0499 && bits <= 800_010.0);
}

#[test]
fn a_rate_is_kept_but_for_what_held_the_loop_up() {
    for (rate, asked) in [("10k", 1e4), ("1M", 1e6)] {
        let report = reported("generate", &["null", "--rate", rate, "--seconds", "0.3"], 0);
        let figure = |name: &str| report[name].as_f64().unwrap();
        // A loop makes up for 10 ms and reports the rest, so that this holds on any machine: what
        // was sent last is that far behind its time at most.
        let most = figure("sent") / asked + figure("held_up_s") + 0.010 + 1e-6;
        assert!(figure("rate_pps") * most >= figure("sent"), "{report}");
    }
}

#[test]
fn loops_share_flows_and_frames() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skipped: two loops need two CPUs");
        return;
    }
    let two = ["null", "--cores", "0,1", "--flows", "3", "--rate", "max"];
    let report = reported("generate", &[&two[..], &["--count", "100001"]].concat(), 0);
    assert_eq!(report["sent"], 100_001);
    let one_flow = refused("generate", &["null", "--cores", "0,1"], 2);
    assert!(one_flow.contains("1 flows for 2 loops"), "{one_flow}");
}

#[test]
fn what_cannot_be_is_refused() {
    let says = |args: &[&str], what: &str| {
        let message = refused("generate", args, 2);
        assert!(message.contains(what), "{args:?}: {message}");
    };
    says(&[], "<PORT>");
    says(&["null", "--rate", "fast"], "1.5Mpps");
    says(&["null", "--size", "59"], "at least 60 bytes");
    says(&["null", "--size", "9-1"], "9 is above 1");
    says(&["pcap:tx=/tmp/x", "--burst", "65"], "--burst");
    says(&["null", "--flows", "0"], "--flows");
    says(
        &["null", "--flows", "60000", "--src", "1.2.3.4:9000"],
        "above 65535",
    );
    says(
        &[
            "null",
            "--flows",
            "2",
            "--vary",
            "dst-ip",
            "--dst",
            "255.255.255.255:1",
        ],
        "--flows",
    );
    says(&["null", "--vlan", "4095"], "--vlan");
    says(&["null", "--dst-mac", "x"], "--dst-mac");
    says(&["null", "--pattern", "ones"], "increment");
    says(
        &["pcap:rx=/nowhere,tx=/tmp/x,pace=slow"],
        "not a valid pace",
    );
    let missing = refused("generate", &["pcap:tx=/nowhere/x.pcapng"], 1);
    assert!(missing.contains("No such file"), "{missing}");
    let help = text(&run("generate", &["--help"]).stdout);
    for part in [
        "Examples:",
        "imix",
        "pollux verify",
        "generator.md",
        "Port specs:",
    ] {
        assert!(help.contains(part), "no {part}");
    }
}
