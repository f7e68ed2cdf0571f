//! Plays and records files, and checks the invariants that hold for any content.

use std::path::Path;

use pollux_mempool::time::WireTime;
use pollux_mempool::{Burst, Mbuf, MbufFlags, Mempool};
use pollux_pmd::{Balance, Ledger, PortError, Registry, RxState, StartedPort, Tally};

pub(crate) use crate::common::{config, pool};

/// A received frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) ordinal: u32,
    pub(crate) time: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    pub(crate) fn of(mbuf: &Mbuf) -> Self {
        assert!(mbuf.flags().contains(MbufFlags::RECORDED));
        let mut bytes = vec![0; mbuf.total_len()];
        assert_eq!(mbuf.copy_to(0, &mut bytes), bytes.len());
        Self {
            ordinal: mbuf.ordinal(),
            time: mbuf.wire_time().unwrap().0,
            bytes,
        }
    }
}

pub(crate) struct Replay {
    /// Frames of each queue, in order.
    pub(crate) queues: Vec<Vec<Frame>>,
    pub(crate) balance: Balance,
    pub(crate) stopped: Result<(), PortError>,
}

impl Replay {
    pub(crate) fn frames(&self) -> Vec<Frame> {
        let mut all = self.queues.concat();
        all.sort_by_key(|frame| frame.ordinal);
        all
    }
}

/// Plays a whole file; the ledger balances and all buffers are returned for any content.
pub(crate) fn replay<const N: usize>(
    spec: &str,
    queues: u16,
    pool: &Mempool,
) -> Result<Replay, PortError> {
    let port = Registry::builtin()
        .open(spec)?
        .configure(config(pool, queues, 0))?;
    let StartedPort { port, mut rx, tx } = port.start()?;
    let mut cache = pool.cache(16).unwrap();
    let (mut ledger, mut sink) = (Ledger::new(), Tally::new());
    ledger.add("sink", sink.view());
    let mut received = Vec::new();
    for queue in &mut rx {
        ledger.add("rx", queue.tally());
        let mut frames = Vec::new();
        let mut burst = Burst::<N>::new();
        while queue.state() == RxState::Live {
            let n = queue.rx(&mut cache, &mut burst);
            assert_eq!(n, burst.len());
            frames.extend(burst.iter().map(Frame::of));
            cache.free_burst(&mut burst);
            sink.count_delivered(n as u64);
        }
        assert_eq!(queue.state(), RxState::Exhausted);
        assert_eq!(
            queue.rx(&mut cache, &mut burst),
            0,
            "nothing comes behind the end"
        );
        received.push(frames);
    }
    let stopped = port.stop(rx, tx).map(drop);
    drop(cache);
    assert_eq!(pool.available(), pool.buffers());
    Ok(Replay {
        queues: received,
        balance: ledger.check().unwrap(),
        stopped,
    })
}

pub(crate) fn play(path: &Path) -> Result<Replay, PortError> {
    replay::<32>(&format!("pcap:rx={}", path.display()), 1, &pool(64))
}

/// Sends frames into a file; `time`: with that time stamp.
pub(crate) fn record(path: &Path, frames: &[(u64, Vec<u8>)]) -> Result<(u64, u64), PortError> {
    let pool = pool(256);
    let port = Registry::builtin()
        .open(&format!("pcap:tx={}", path.display()))?
        .configure(config(&pool, 0, 1))?;
    let StartedPort { port, rx, mut tx } = port.start()?;
    let mut cache = pool.cache(16).unwrap();
    let mut burst = Burst::<4>::new();
    for (time, bytes) in frames {
        let mut mbuf = cache.alloc_from(bytes).unwrap();
        mbuf.set_wire_time(WireTime(*time));
        burst.push(mbuf).unwrap();
        if burst.is_full() {
            assert_eq!(tx[0].tx(&mut cache, &mut burst), 4);
        }
    }
    tx[0].tx(&mut cache, &mut burst);
    assert!(burst.is_empty());
    let sent = tx[0].sent();
    port.stop(rx, tx)?;
    drop(cache);
    assert_eq!(pool.available(), pool.buffers());
    Ok((sent.packets(), sent.errors()))
}

pub(crate) fn bytes_of(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}
