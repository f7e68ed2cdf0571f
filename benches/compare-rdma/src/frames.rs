//! Frames of 4096 B of data without protocol: copied in, a CRC, over a loopback, a CRC, copied out.
//!
//! What WRITEs of such packets take at least: the bytes are moved twice and read twice for the CRC. Headers
//! are written from a template, and not looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig, prefetch};
use pollux_pmd::lcore;
use pollux_pmd::{PortConfig, Registry, RxQueue, StartedPort, TxQueue};

/// Bytes of headers, as of a WRITE in the middle of its message.
const HEADERS: usize = 14 + 20 + 8 + 12;
/// Bytes of data.
const DATA: usize = 4096;
const CRC: usize = 4;
const FRAME: usize = HEADERS + DATA + CRC;
/// Frames at a time.
const BURST: usize = 32;
/// Warm-up, which is not counted.
const WARM_UP: Duration = Duration::from_millis(100);

/// Gb/s of data, from one region of `bytes` to another.
pub(super) fn measure((core, other): (usize, usize), bytes: usize, time: Duration) -> Result<f64> {
    ensure!(
        bytes.is_multiple_of(DATA) && bytes > 0,
        "--bytes: a multiple of {DATA}"
    );
    let pool = Mempool::new(PoolConfig {
        buffers: 8192,
        data_room: 4352,
        ..PoolConfig::default()
    })?;
    let port = Registry::builtin().open("loopback")?;
    let started = port.configure(PortConfig::new(pool.clone()))?.start()?;
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = started;
    let (rx, tx) = rx.pop().zip(tx.pop()).context("no queues")?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (stop, cache) = (Arc::clone(&is_over), pool.cache(512)?);
    let source: Vec<u8> = (0..bytes).map(|n| (n ^ n >> 8) as u8).collect();
    let expected = source.clone();
    let sending = lcore::launch("send", Some(core), move || send(tx, cache, &source, &stop))?;
    let cache = pool.cache(512)?;
    let receiving = lcore::launch("receive", Some(other), move || {
        let result = receive(rx, cache, bytes, time);
        is_over.store(true, Ordering::Relaxed);
        result
    })?;
    let (rx, received) = receiving.join()?;
    let tx = sending.join()?;
    port.stop(vec![rx], vec![tx])?;
    let (rate, target) = received?;
    ensure!(target == expected, "the data are not there");
    Ok(rate)
}

fn send(mut tx: TxQueue, mut cache: PoolCache, source: &[u8], stop: &AtomicBool) -> TxQueue {
    let headers = [0x5a; HEADERS];
    let mut chunks = source.chunks_exact(DATA).cycle();
    let mut burst = Burst::<BURST>::new();
    while !stop.load(Ordering::Relaxed) {
        while !burst.is_full()
            && let Some(mut mbuf) = cache.alloc()
        {
            if let (Some(frame), Some(data)) = (mbuf.append(FRAME), chunks.next()) {
                let (covered, crc) = frame.split_at_mut(FRAME - CRC);
                covered[..HEADERS].copy_from_slice(&headers);
                covered[HEADERS..].copy_from_slice(data);
                crc.copy_from_slice(&crc32fast::hash(covered).to_le_bytes());
            }
            // The burst has room.
            drop(burst.push(mbuf));
        }
        tx.tx(&mut cache, &mut burst);
    }
    cache.free_burst(&mut burst);
    tx
}

/// The rate, and what came.
fn receive(
    mut rx: RxQueue,
    mut cache: PoolCache,
    bytes: usize,
    time: Duration,
) -> (RxQueue, Result<(f64, Vec<u8>)>) {
    let mut target = vec![0; bytes];
    let mut burst = Burst::<BURST>::new();
    let (mut at, mut count, mut wrong) = (0, 0_u64, 0);
    let mut begin = Instant::now();
    let mut is_warm = false;
    loop {
        rx.rx(&mut cache, &mut burst);
        for mbuf in &burst[..] {
            prefetch::prefetch_read(mbuf.data_ptr());
        }
        for mbuf in &burst[..] {
            let Some((covered, crc)) = mbuf.data().split_last_chunk::<CRC>() else {
                continue;
            };
            if crc32fast::hash(covered).to_le_bytes() != *crc {
                wrong += 1;
            } else if let Some(to) = target.get_mut(at..at + DATA) {
                to.copy_from_slice(&covered[HEADERS..]);
            }
            at = (at + DATA) % bytes;
            count += 1;
        }
        cache.free_burst(&mut burst);
        let elapsed = begin.elapsed();
        if !is_warm && elapsed >= WARM_UP && count as usize * DATA >= bytes {
            (is_warm, begin, count) = (true, Instant::now(), 0);
        } else if is_warm && elapsed >= time {
            let rate = (count * DATA as u64 * 8) as f64 / 1e9 / elapsed.as_secs_f64();
            let result = if wrong == 0 {
                Ok((rate, target))
            } else {
                Err(anyhow::anyhow!("{wrong} frames have a wrong CRC"))
            };
            return (rx, result);
        }
    }
}
