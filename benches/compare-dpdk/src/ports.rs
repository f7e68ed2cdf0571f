//! Ports: null, loopback against net_ring, io forwarding.

use std::hint::black_box;
use std::ptr;

use anyhow::{Context, Result};
use pollux_dpdk_sys as dpdk;
use pollux_mempool::{Burst, Mempool, PoolCache};
use pollux_pmd::{MemoryGrant, PortConfig, Registry, RxQueue, TxQueue};

use crate::eal;
use crate::measure::{Operation, Row, compare, timed};
use crate::memory::{our_cache, our_pool};

/// Bytes of each frame.
const FRAME: usize = 64;

/// All rows of this module.
pub(crate) fn rows(rounds: usize) -> Result<Vec<Row>> {
    let theirs = eal::buffer_pool(c"ports")?;
    for port in [eal::NULL0, eal::NULL1, eal::LOOP] {
        eal::start_port(port, theirs)?;
    }
    let pool = our_pool()?;
    let mut rows = Vec::new();

    let mut null = NullPort {
        port: open("null:size=64", &pool)?,
        cache: our_cache(&pool)?,
    };
    rows.extend(compare(&mut null, rounds)?);

    let mut wire = Wire {
        port: open("loopback", &pool)?,
        cache: our_cache(&pool)?,
        theirs,
    };
    rows.extend(compare(&mut wire, rounds)?);

    let ports = [open("null:size=64", &pool)?, open("null:size=64", &pool)?];
    rows.extend(compare(
        &mut Forward {
            ports,
            cache: our_cache(&pool)?,
        },
        rounds,
    )?);
    Ok(rows)
}

/// The driver `dpdk`: a null device of DPDK as a port of ours, against the same device by itself.
pub(crate) fn dpdk_rows(rounds: usize) -> Result<Vec<Row>> {
    let theirs = eal::buffer_pool(c"ports")?;
    eal::start_port(eal::NULL0, theirs)?;
    let pool = our_pool()?;
    let mut port = DpdkPort(NullPort {
        port: open("dpdk:net_null_port", &pool)?,
        cache: our_cache(&pool)?,
    });
    compare(&mut port, rounds)
}

/// The two queues of one started port.
struct Queues {
    rx: RxQueue,
    tx: TxQueue,
}

fn open(spec: &str, pool: &Mempool) -> Result<Queues> {
    let config = PortConfig::new(pool.clone());
    // SAFETY: a port of DPDK, which is a part of this process, or none that writes by itself.
    let registry = Registry::builtin().granting(unsafe { MemoryGrant::new() });
    let mut started = registry.open(spec)?.configure(config)?.start()?;
    let rx = started.rx.pop().context("no receive queue")?;
    let tx = started.tx.pop().context("no transmit queue")?;
    Ok(Queues { rx, tx })
}

struct NullPort {
    port: Queues,
    cache: PoolCache,
}

impl Operation for NullPort {
    const NAME: &'static str = "null_rx_tx";

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let Self { port, cache } = self;
        let mut burst = Burst::<B>::new();
        timed(turns, || {
            port.rx.rx(cache, &mut burst) == B && port.tx.tx(cache, &mut burst) == B
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        // SAFETY: a started port, polled by this thread alone.
        unsafe { dpdk::timed_rx_tx(eal::NULL0, burst, turns) }
    }
}

/// As [`NullPort`], but our side is the same device of DPDK.
struct DpdkPort(NullPort);

impl Operation for DpdkPort {
    const NAME: &'static str = "dpdk_port_null";

    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        self.0.ours::<B>(turns)
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        self.0.dpdk(burst, turns)
    }
}

/// A burst goes out and comes back. DPDK's port moves pointers; ours also stamps each frame with
/// its arrival, port, queue and number, and counts bytes.
struct Wire {
    port: Queues,
    cache: PoolCache,
    theirs: *mut dpdk::rte_mempool,
}

impl Operation for Wire {
    const NAME: &'static str = "loopback_vs_net_ring";

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let Self { port, cache, .. } = self;
        let mut burst = Burst::<B>::new();
        if cache.alloc_burst(&mut burst, B) != B
            || !burst.iter_mut().all(|frame| frame.append(FRAME).is_some())
        {
            return 0;
        }
        timed(turns, || {
            port.tx.tx(cache, &mut burst) == B && port.rx.rx(cache, black_box(&mut burst)) == B
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        let mut frames = vec![ptr::null_mut(); burst as usize];
        if eal::alloc(self.theirs, &mut frames).is_err() {
            return 0;
        }
        // SAFETY: a started port, polled by this thread alone, and `burst` buffers.
        let cycles = unsafe { dpdk::timed_tx_rx(eal::LOOP, frames.as_mut_ptr(), burst, turns) };
        eal::free(&mut frames);
        cycles
    }
}

/// testpmd's io mode over two ports: what one receives, the other sends.
struct Forward {
    ports: [Queues; 2],
    cache: PoolCache,
}

impl Operation for Forward {
    const NAME: &'static str = "io_forward";
    /// Each way.
    const PER_BURST: u64 = 2;

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let Self {
            ports: [a, b],
            cache,
        } = self;
        let mut forwarded = 0;
        let cycles = timed(turns, || {
            forwarded += forward::<B>(&mut a.rx, &mut b.tx, cache);
            forwarded += forward::<B>(&mut b.rx, &mut a.tx, cache);
            true
        });
        if forwarded as u64 == 2 * turns * B as u64 {
            cycles
        } else {
            0
        }
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        // SAFETY: two started ports, polled by this thread alone.
        unsafe { dpdk::timed_io_forward(eal::NULL0, eal::NULL1, burst, turns) }
    }
}

#[inline(always)]
fn forward<const B: usize>(from: &mut RxQueue, to: &mut TxQueue, cache: &mut PoolCache) -> usize {
    let mut burst = Burst::<B>::new();
    if from.rx(cache, &mut burst) == 0 {
        return 0;
    }
    let sent = to.tx(cache, &mut burst);
    if !burst.is_empty() {
        cache.free_burst(&mut burst);
    }
    sent
}
