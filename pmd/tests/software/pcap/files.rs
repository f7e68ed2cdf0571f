//! Written files are read back, and files of other writers are read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pcap_file::TsResolution;
use pcap_file::pcap::PcapReader;
use pollux_pmd::Cause;
use proptest::prelude::*;
use tempfile::TempDir;

use super::maker::Maker;
use super::support::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_comes_back(
        sizes in prop::collection::vec(
            prop_oneof![0..200_usize, 1400..1600_usize, 2040..2060_usize, 8990..30_000_usize],
            0..60,
        ),
        start in 0..u64::MAX / 2,
    ) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("x.pcapng");
        let frames: Vec<_> = (0..)
            .zip(&sizes)
            .map(|(i, &len)| (start + 7 * u64::from(i), bytes_of(len, i)))
            .collect::<Vec<(u64, Vec<u8>)>>();
        prop_assert_eq!(record(&path, &frames).unwrap(), (frames.len() as u64, 0));
        let got = play(&path).unwrap();
        prop_assert!(got.stopped.is_ok());
        let expected: Vec<_> = (0..)
            .zip(frames)
            .map(|(ordinal, (time, bytes))| Frame { ordinal, time, bytes })
            .collect();
        prop_assert_eq!(got.frames(), expected);
    }
}

#[test]
fn a_file_is_received_in_rounds() {
    let dir = TempDir::new().unwrap();
    let pool = pool(64);
    let files = [(true, 0xa1b2_3c4d), (false, 0xa1b2_3c4d)].map(|(big, magic)| {
        let mut file = Maker::pcap(big, magic, 1);
        for (n, ns) in [100, 110, 160].into_iter().enumerate() {
            file.record(1_700_000_000, ns, 60, &[n as u8; 60]);
        }
        file.save(&dir)
    });
    for path in files {
        let spec = format!("pcap:rx={},loop=3", path.display());
        let frames = replay::<2>(&spec, 1, &pool).unwrap().frames();
        // The mean distance separates the rounds.
        let times = [100, 110, 160, 190, 200, 250, 280, 290, 340];
        for (n, (frame, ns)) in frames.iter().zip(times).enumerate() {
            assert_eq!(frame.ordinal, n as u32);
            assert_eq!(frame.time, 1_700_000_000_000_000_000 + ns);
            assert_eq!(frame.bytes, [n as u8 % 3; 60]);
        }
        assert_eq!(frames.len(), 9);
    }
    // One frame, times that cannot be extended, no frame at all.
    let mut last = Maker::pcap(true, 0xa1b2_3c4d, 1);
    last.record(u32::MAX, u32::MAX, 60, &[1; 60]);
    let spec = format!("pcap:rx={},loop=5", last.save(&dir).display());
    assert_eq!(replay::<2>(&spec, 1, &pool).unwrap().frames().len(), 5);
    let empty = Maker::pcap(true, 0xa1b2_3c4d, 1).save(&dir);
    let spec = format!("pcap:rx={},loop=0", empty.display());
    assert_eq!(replay::<2>(&spec, 1, &pool).unwrap().frames(), []);
}

#[test]
fn every_magic_and_byte_order_is_read() {
    let dir = TempDir::new().unwrap();
    for big in [false, true] {
        for (magic, ns) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let mut file = Maker::pcap(big, magic, 1);
            file.record(1_700_000_000, 999_999, 60, &[1; 60])
                .record(1_700_000_001, 5, 3, &[2; 3]);
            let got = play(&file.save(&dir)).unwrap().frames();
            let first = 1_700_000_000_000_000_000 + 999_999 * ns;
            let second = 1_700_000_001_000_000_000 + 5 * ns;
            assert_eq!(
                got,
                [
                    Frame {
                        ordinal: 0,
                        time: first,
                        bytes: vec![1; 60]
                    },
                    Frame {
                        ordinal: 1,
                        time: second,
                        bytes: vec![2; 3]
                    },
                ]
            );
        }
    }
    // the "modified" format: 8 more bytes in each record header
    let mut file = Maker::pcap(false, 0xa1b2_cd34, 1);
    file.u32(9)
        .u32(1)
        .u32(4)
        .u32(4)
        .bytes(&[0xee; 8])
        .bytes(&[7; 4]);
    let got = play(&file.save(&dir)).unwrap().frames();
    assert_eq!(
        got,
        [Frame {
            ordinal: 0,
            time: 9_000_001_000,
            bytes: vec![7; 4]
        }]
    );
}

#[test]
fn pcapng_interfaces_have_their_own_units_and_sections_their_byte_order() {
    let dir = TempDir::new().unwrap();
    let mut file = Maker {
        big: false,
        out: Vec::new(),
    };
    file.section()
        .interface(1, None)
        .interface(1, Some(9))
        .interface(1, Some(0x80 | 0x14));
    file.packet(0, 1_000_000, b"microseconds");
    file.packet(1, 2_000_000_000, b"nanoseconds");
    file.block(5, |statistics| {
        statistics.bytes(&[0; 12]);
    });
    file.packet(2, 3 << 20, b"binary");
    file.block(3, |simple| {
        simple.u32(5).bytes(b"plain");
    });
    file.block(2, |obsolete| {
        obsolete
            .u16(0)
            .u16(0)
            .u32(0)
            .u32(4_000_000)
            .u32(3)
            .u32(3)
            .bytes(b"old");
    });
    file.big = true;
    file.section().interface(1, Some(3)).packet(0, 5000, b"big");
    let got: Vec<_> = play(&file.save(&dir))
        .unwrap()
        .frames()
        .into_iter()
        .map(|f| (f.time, f.bytes))
        .collect();
    let s = 1_000_000_000;
    assert_eq!(
        got,
        [
            (s, b"microseconds".to_vec()),
            (2 * s, b"nanoseconds".to_vec()),
            (3 * s, b"binary".to_vec()),
            (3 * s, b"plain".to_vec()),
            (4 * s, b"old".to_vec()),
            (5 * s, b"big".to_vec()),
        ]
    );
}

#[test]
fn stamps_never_step_back() {
    let dir = TempDir::new().unwrap();
    let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
    for s in [5, 3, 4, 7, 6] {
        file.record(s, 0, 1, &[0]);
    }
    let seconds = play(&file.save(&dir))
        .unwrap()
        .frames()
        .into_iter()
        .map(|f| f.time / 1_000_000_000);
    assert_eq!(seconds.collect::<Vec<_>>(), [5, 5, 5, 7, 7]);
}

#[test]
fn frames_without_ethernet_get_a_header_or_a_cause() {
    let dir = TempDir::new().unwrap();
    let mut file = Maker {
        big: false,
        out: Vec::new(),
    };
    file.section()
        .interface(1, None)
        .interface(105, None)
        .interface(101, None);
    file.packet(0, 1, &[9; 20])
        .packet(1, 2, &[8; 20])
        .packet(2, 3, &[0x45, 7])
        .packet(2, 4, &[]);
    let got = play(&file.save(&dir)).unwrap();
    let ip = [&[0; 12][..], &[8, 0, 0x45, 7]].concat();
    assert_eq!(
        got.frames()
            .into_iter()
            .map(|f| f.bytes)
            .collect::<Vec<_>>(),
        [vec![9; 20], ip]
    );
    let drops: Vec<_> = got.balance.drops().collect();
    assert_eq!(drops, [(Cause::Malformed, 1), (Cause::Unsupported, 1)]);

    let wifi = Maker::pcap(false, 0xa1b2_c3d4, 105)
        .record(0, 0, 4, &[0; 4])
        .save(&dir);
    let refused = play(&wifi).err().unwrap().to_string();
    assert!(
        refused.contains("link type 105") && refused.contains("Ethernet (1)"),
        "{refused}"
    );
}

#[test]
fn real_captures_are_read_as_another_reader_reads_them() {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    );
    let Ok(folder) = fs::read_dir(data.join("pcap")) else {
        println!("skipped: no recorded data at {}", data.display());
        return;
    };
    for path in folder.map(|entry| entry.unwrap().path()) {
        let got = play(&path).unwrap();
        let mut reader = PcapReader::new(fs::File::open(&path).unwrap()).unwrap();
        let mut expected = BTreeMap::new();
        let unit = match reader.header().ts_resolution {
            TsResolution::MicroSecond => 1000,
            TsResolution::NanoSecond => 1,
        };
        let mut ordinal = 0;
        let mut latest = 0;
        while let Some(packet) = reader.next_raw_packet() {
            let packet = packet.unwrap();
            let time = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * unit;
            latest = time.max(latest);
            expected.insert(ordinal, (latest, packet.data.into_owned()));
            ordinal += 1;
        }
        assert_eq!(
            got.balance.from_wire,
            u64::from(ordinal),
            "{}",
            path.display()
        );
        let oversize = got.balance.dropped_for(Cause::Oversize);
        assert_eq!(got.balance.dropped_total(), oversize, "{}", path.display());
        assert_eq!(got.frames().len() as u64 + oversize, u64::from(ordinal));
        for frame in got.frames() {
            assert_eq!(
                (frame.time, frame.bytes),
                expected.remove(&frame.ordinal).unwrap()
            );
        }
    }
}

#[test]
fn another_program_reads_what_is_written() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("out.pcapng");
    let frames: Vec<_> = [
        (1_700_000_000_000_000_001, 60),
        (1_700_000_000_123_456_789, 9001),
    ]
    .map(|(time, len)| (time, bytes_of(len, 1)))
    .into();
    record(&path, &frames).unwrap();
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "frame.len",
        "-e",
        "frame.cap_len",
    ];
    let tshark = std::process::Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(fields)
        .output();
    let Ok(output) = tshark else {
        println!("skipped: no tshark");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1700000000.000000001\t60\t60\n1700000000.123456789\t9001\t9001\n"
    );
}
