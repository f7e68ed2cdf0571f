//! Distribution of a file over queues, pace, and restarts.

use std::path::PathBuf;

use pollux_mempool::{Burst, Mempool};
use pollux_pmd::{Cause, Registry, RxState, StartedPort};
use tempfile::TempDir;

use super::maker::Maker;
use super::support::*;

/// A UDP datagram over IPv4 without checksums.
fn udp(src: [u8; 4], dst_port: u16, len: usize) -> Vec<u8> {
    let mut frame = [&[2; 12][..], &[8, 0, 0x45, 0]].concat();
    frame.extend((28 + len as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(src);
    frame.extend([10, 0, 0, 1, 0x12, 0x34]);
    frame.extend(dst_port.to_be_bytes());
    frame.extend((8 + len as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(bytes_of(len, src[3]));
    frame
}

#[test]
fn queues_partition_the_file_for_any_burst_size() {
    let dir = TempDir::new().unwrap();
    let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
    for i in 0..2000_u32 {
        let data = match i % 10 {
            0 => bytes_of(60, i as u8), // no UDP
            _ => udp(
                [10, 0, 1, (i * 7 % 11) as u8],
                7000 + (i % 5) as u16,
                (i % 200) as usize,
            ),
        };
        // time stamps out of order, and some truncated records
        let original = data.len() as u32 + u32::from(i % 97 == 0);
        file.record(i ^ 3, 0, original, &data);
    }
    let path = file.save(&dir);
    let spec = format!("pcap:rx={}", path.display());
    let pool = pool(256);
    let whole = replay::<32>(&spec, 1, &pool).unwrap();
    assert_eq!(whole.balance.from_wire, 2000);
    for queues in [2, 3, 16] {
        let split = replay::<32>(&spec, queues, &pool).unwrap();
        assert_eq!(split.frames(), whole.frames(), "{queues} queues");
        assert_eq!(split.balance, whole.balance);
        assert!(
            split
                .queues
                .iter()
                .filter(|frames| !frames.is_empty())
                .count()
                > 1
        );
        for frames in &split.queues {
            assert!(frames.is_sorted_by_key(|frame| (frame.time, frame.ordinal)));
        }
        assert_eq!(
            replay::<1>(&spec, queues, &pool).unwrap().queues,
            split.queues
        );
        assert_eq!(
            replay::<64>(&spec, queues, &pool).unwrap().queues,
            split.queues
        );
    }
    let too_many = replay::<32>(&spec, 17, &pool).err().unwrap().to_string();
    assert!(too_many.contains("at most 16"), "{too_many}");
}

/// A hundred datagrams of one flow, received without end by so many queues.
fn one_flow(dir: &TempDir, flow: u8, queues: u16, pool: &Mempool) -> (PathBuf, StartedPort) {
    let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
    for i in 0..100 {
        let frame = udp([10, 0, 1, flow], 7000, 20);
        file.record(i, 0, frame.len() as u32, &frame);
    }
    let path = file.save(dir);
    let spec = format!("pcap:rx={},loop=0", path.display());
    let configured = Registry::builtin().open(&spec).unwrap();
    let configured = configured.configure(config(pool, queues, 0)).unwrap();
    (path, configured.start().unwrap())
}

#[test]
fn a_queue_without_flows_ends_where_passes_do_not() {
    let (dir, pool) = (TempDir::new().unwrap(), pool(64));
    let (_, StartedPort { port, mut rx, .. }) = one_flow(&dir, 1, 4, &pool);
    let mut cache = pool.cache(16).unwrap();
    let mut received = [0; 4];
    // Four passes by 32 frames a poll, of which each looks at 256 records.
    for _ in 0..13 {
        for (rx, received) in rx.iter_mut().zip(&mut received) {
            let mut burst = Burst::<32>::new();
            *received += rx.rx(&mut cache, &mut burst);
            cache.free_burst(&mut burst);
        }
    }
    received.sort_unstable();
    assert_eq!(received, [0, 0, 0, 13 * 32]);
    let ended = rx.iter().filter(|rx| rx.state() == RxState::Exhausted);
    assert_eq!(ended.count(), 3);
    port.stop(rx, Vec::new()).unwrap();
}

#[test]
fn a_damaged_file_counts_once_for_all_queues() {
    let dir = TempDir::new().unwrap();
    let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
    file.record(1, 0, 60, &[0; 60]).bytes(&[0; 5]);
    let spec = format!("pcap:rx={}", file.save(&dir).display());
    let got = replay::<8>(&spec, 4, &pool(64)).unwrap();
    assert_eq!(got.balance.from_wire, 2);
    assert_eq!(got.balance.dropped_for(Cause::DeviceError), 1);
}

/// Also where the first queue has no frames, and has ended before.
#[test]
fn damage_in_a_later_pass_is_counted_whichever_queue_comes_there() {
    for flow in 0..8 {
        let (dir, pool) = (TempDir::new().unwrap(), pool(64));
        let (path, StartedPort { port, mut rx, .. }) = one_flow(&dir, flow, 2, &pool);
        let mut ledger = pollux_pmd::Ledger::new();
        for rx in &rx {
            ledger.add("queue", rx.tally());
        }
        let mut cache = pool.cache(16).unwrap();
        let mut poll = |rx: &mut Vec<pollux_pmd::RxQueue>| {
            for rx in rx {
                let mut burst = Burst::<32>::new();
                rx.rx(&mut cache, &mut burst);
                cache.free_burst(&mut burst);
            }
        };
        for _ in 0..8 {
            poll(&mut rx);
        }
        let whole = std::fs::metadata(&path).unwrap().len();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(whole - 10).unwrap();
        for _ in 0..1000 {
            poll(&mut rx);
        }
        assert!(rx.iter().all(|rx| rx.state() == RxState::Exhausted));
        assert_eq!(
            ledger.balance().dropped_for(Cause::DeviceError),
            1,
            "flow {flow}"
        );
        let error = port.stop(rx, Vec::new()).err().unwrap().to_string();
        assert!(error.contains("truncated"), "{error}");
    }
}

#[test]
fn recorded_pace_keeps_the_order_and_does_not_run_ahead() {
    let dir = TempDir::new().unwrap();
    let mut file = Maker::pcap(false, 0xa1b2_3c4d, 1);
    for i in 0..20 {
        file.record(1_700_000_000, i * 2_000_000, 60, &[i as u8; 60]);
    }
    let spec = format!("pcap:rx={},pace=recorded", file.save(&dir).display());
    let began = std::time::Instant::now();
    let got = replay::<32>(&spec, 2, &pool(64)).unwrap().frames();
    assert!(
        began.elapsed() >= std::time::Duration::from_millis(38),
        "the last is 38 ms behind the first"
    );
    assert_eq!(got.len(), 20);
    assert!(got.is_sorted_by_key(|frame| frame.time));
}

#[test]
fn a_port_starts_again_from_the_first_frame() {
    let dir = TempDir::new().unwrap();
    let path = Maker::pcap(false, 0xa1b2_c3d4, 1)
        .record(1, 0, 60, &[5; 60])
        .save(&dir);
    let pool = pool(64);
    let mut port = Registry::builtin()
        .open(&format!("pcap:rx={}", path.display()))
        .unwrap()
        .configure(config(&pool, 1, 0))
        .unwrap();
    for _ in 0..3 {
        let StartedPort {
            port: started,
            mut rx,
            tx,
        } = port.start().unwrap();
        let mut cache = pool.cache(16).unwrap();
        let mut burst = Burst::<4>::new();
        assert_eq!(rx[0].rx(&mut cache, &mut burst), 1);
        port = started.stop(rx, tx).unwrap();
    }
}
