//! Damaged files, exhausted pools, invalid specs.

use std::collections::BTreeMap;
use std::fs;

use pollux_mempool::Burst;
use pollux_pmd::{Balance, Cause, PortError, Registry, RxState, StartedPort};
use proptest::prelude::*;
use tempfile::TempDir;

use super::maker::Maker;
use super::support::*;

#[test]
fn snapped_and_overlong_frames_are_counted_never_cut() {
    let dir = TempDir::new().unwrap();
    let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
    file.record(1, 0, 1500, &[1; 96]).record(2, 0, 64, &[2; 64]);
    // 32 of the 64 buffers hold 64 KiB
    file.record(3, 0, 65_536, &vec![3; 65_536])
        .record(4, 0, 65_537, &vec![4; 65_537]);
    let got = play(&file.save(&dir)).unwrap();
    let lengths: Vec<_> = got
        .frames()
        .iter()
        .map(|f| (f.ordinal, f.bytes.len()))
        .collect();
    assert_eq!(lengths, [(1, 64), (2, 65_536)]);
    assert_eq!(
        got.balance.drops().collect::<Vec<_>>(),
        [(Cause::Oversize, 2)]
    );
    assert_eq!(got.balance.bytes, 1500 + 64 + 65_536 + 65_537);
}

#[test]
fn an_empty_pool_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
    for i in 0..40 {
        file.record(i, 0, 5000, &bytes_of(5000, i as u8));
    }
    let path = file.save(&dir);
    let pool = pool(8);
    let port = Registry::builtin()
        .open(&format!("pcap:rx={}", path.display()))
        .unwrap();
    let StartedPort { port, mut rx, tx } = port
        .configure(config(&pool, 1, 0))
        .unwrap()
        .start()
        .unwrap();
    let mut cache = pool.cache(2).unwrap();
    let mut burst = Burst::<8>::new();
    let mut got = Vec::new();
    while rx[0].state() == RxState::Live {
        rx[0].rx(&mut cache, &mut burst);
        assert!(
            burst.len() <= 2,
            "8 buffers hold no more than 2 frames of 3 buffers"
        );
        // one frame is freed at a time, so that the pool is often empty
        burst.take_front(1, |mbuf| got.push(Frame::of(&mbuf)));
    }
    burst.take_all(|mbuf| got.push(Frame::of(&mbuf)));
    assert_eq!(got.len(), 40);
    assert!(
        got.iter()
            .enumerate()
            .all(|(i, f)| f.ordinal == i as u32 && f.bytes == bytes_of(5000, i as u8))
    );
    assert_eq!(rx[0].tally().balance().dropped_total(), 0);
    port.stop(rx, tx).unwrap();
}

#[test]
fn a_file_that_ends_early_is_survived_wherever_it_ends() {
    let dir = TempDir::new().unwrap();
    let mut classic = Maker::pcap(true, 0xa1b2_3c4d, 1);
    let mut pcapng = Maker {
        big: false,
        out: Vec::new(),
    };
    let section = pcapng.section().out.len();
    pcapng.interface(1, Some(9));
    // positions at which a file may end without loss, and the number of frames before each
    let mut whole_at = [
        BTreeMap::from([(classic.out.len(), 0)]),
        BTreeMap::from([(section, 0), (pcapng.out.len(), 0)]),
    ];
    for i in 0..3_u8 {
        classic.record(u32::from(i), 0, 61, &[i; 61]);
        whole_at[0].insert(classic.out.len(), usize::from(i) + 1);
        pcapng.packet(0, u64::from(i), &[i; 61]);
        whole_at[1].insert(pcapng.out.len(), usize::from(i) + 1);
    }
    let path = dir.path().join("cut.pcap");
    for (file, whole_at) in [classic.out, pcapng.out].iter().zip(whole_at) {
        for end in 0..=file.len() {
            fs::write(&path, &file[..end]).unwrap();
            let frames = whole_at
                .range(..=end)
                .last()
                .map_or(0, |(_, &frames)| frames);
            let damaged = !whole_at.contains_key(&end);
            match play(&path) {
                Err(error) => {
                    assert!(matches!(error, PortError::Device { .. }), "{error}");
                    assert!(damaged && frames == 0, "at {end}: {error}");
                }
                Ok(got) => {
                    assert_eq!(got.frames().len(), frames, "at {end}");
                    let counted = got.balance.dropped_for(Cause::DeviceError);
                    assert_eq!(counted, u64::from(damaged), "at {end}");
                    assert_eq!(got.stopped.is_err(), damaged);
                }
            }
        }
    }
}

#[test]
fn garbage_is_refused_or_counted() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("garbage");
    for bytes in [
        &b""[..],
        b"\n",
        b"GET / HTTP/1.1\r\n",
        &[0; 4096],
        &[0x0a, 0x0d, 0x0d, 0x0a],
    ] {
        fs::write(&path, bytes).unwrap();
        let error = play(&path).err().unwrap().to_string();
        assert!(error.contains("garbage"), "names the file: {error}");
    }
    let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
    file.record(1, 0, 60, &[0; 60]).bytes(&[0xff; 100]);
    let got = play(&file.save(&dir)).unwrap();
    assert_eq!(
        (
            got.frames().len(),
            got.balance.dropped_for(Cause::DeviceError)
        ),
        (1, 1)
    );
    let error = got.stopped.unwrap_err().to_string();
    assert!(
        error.contains("in.pcap") && error.contains("damaged at byte 100"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_are_survived(
        ng in any::<bool>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let dir = TempDir::new().unwrap();
        let mut file = if ng {
            let mut file = Maker { big: false, out: Vec::new() };
            file.section().interface(1, Some(9)).packet(0, 1, &[1; 60]).packet(0, 2, &[2; 60]);
            file
        } else {
            let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
            file.record(1, 0, 60, &[1; 60]).record(1, 0, 60, &[2; 60]);
            file
        };
        for (index, value) in flips {
            let at = index.index(file.out.len());
            file.out[at] = value;
        }
        // `replay` checks the ledger and the pool
        if let Ok(got) = play(&file.save(&dir)) {
            prop_assert!(got.frames().len() <= 3);
        }
    }
}

#[test]
fn a_capture_without_frames_ends_at_once() {
    let dir = TempDir::new().unwrap();
    let got = play(&Maker::pcap(false, 0xa1b2_c3d4, 1).save(&dir)).unwrap();
    assert_eq!(got.balance, Balance::default());
    assert!(got.stopped.is_ok());
}

#[test]
fn a_spec_that_cannot_work_says_what_to_do() {
    let dir = TempDir::new().unwrap();
    let error = |spec: &str| match Registry::builtin().open(spec) {
        Ok(_) => panic!("{spec} opened"),
        Err(error) => error.to_string(),
    };
    assert!(error("pcap").contains("needs rx=FILE, tx=FILE or both"));
    assert!(error("pcap:file").contains("takes no `file`"));
    assert!(error("pcap:rx=a,paec=fast").contains("no option `paec`"));
    assert!(error("pcap:rx=a,pace=slow").contains("fast or recorded"));
    let missing = error("pcap:rx=/no/such/file.pcap");
    assert!(missing.contains("/no/such/file.pcap") && missing.contains("check the path"));
    assert!(error(&format!("pcap:rx={}", dir.path().display())).contains("not a regular file"));
    // The open of a pipe would wait for a writer.
    let pipe = dir.path().join("pipe");
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, 0o600.into(), 0).unwrap();
    assert!(error(&format!("pcap:rx={}", pipe.display())).contains("not a regular file"));

    let path = Maker::pcap(false, 0xa1b2_c3d4, 1).save(&dir);
    let pool = pool(64);
    let start = |spec: String, rx, tx| {
        let port = Registry::builtin()
            .open(&spec)?
            .configure(config(&pool, rx, tx))?;
        port.start().map(drop)
    };
    let name = path.display();
    let same = start(format!("pcap:rx={name},tx={name}"), 1, 1).unwrap_err();
    assert!(same.to_string().contains("the same file"));
    assert_eq!(fs::read(&path).unwrap().len(), 24, "and it is still there");
    let folder = start("pcap:tx=/no/such/folder/x".into(), 0, 1).unwrap_err();
    assert!(
        folder
            .to_string()
            .contains("cannot create /no/such/folder/x")
    );
    let queues = start(format!("pcap:tx={name}"), 0, 2).unwrap_err();
    assert!(queues.to_string().contains("at most 1"));
}
