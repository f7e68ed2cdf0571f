//! Pools and packet buffers.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use anyhow::{Result, ensure};
use pollux_dpdk_sys as dpdk;
use pollux_mempool::ring::Mpmc;
use pollux_mempool::{Burst, Mempool, ObjectCache, PoolCache, PoolConfig};

use crate::eal;
use crate::measure::{Operation, Row, assume_init, compare, timed};

/// Buffers that stay allocated while others come and go.
const LIVE: usize = 4096;

/// All rows of this module.
pub(crate) fn rows(rounds: usize) -> Result<Vec<Row>> {
    let pool = our_pool()?;
    let mut rows = Vec::new();

    let theirs = eal::object_pool(c"objects", eal::CACHE)?;
    let dpdk_cache = eal::default_cache(theirs);
    let handles = Arc::new(Mpmc::new(eal::BUFFERS as usize)?);
    ensure!(
        (0..eal::BUFFERS as usize).all(|handle| handles.push(handle)),
        "the ring is too small"
    );
    let cache = ObjectCache::new(Arc::clone(&handles), eal::CACHE as usize)?;
    let mut cached = Cached {
        cache,
        theirs,
        dpdk_cache,
    };
    rows.extend(compare(&mut cached, rounds)?);
    drop(cached);

    let theirs = eal::object_pool(c"uncached", 0)?;
    rows.extend(compare(
        &mut Uncached {
            pool: handles,
            theirs,
        },
        rounds,
    )?);

    let theirs = eal::buffer_pool(c"buffers")?;
    rows.extend(compare(
        &mut Buffers {
            cache: our_cache(&pool)?,
            theirs,
        },
        rounds,
    )?);

    let mut live = vec![ptr::null_mut(); LIVE];
    eal::alloc(theirs, &mut live)?;
    rows.extend(compare(
        &mut Live {
            cache: our_cache(&pool)?,
            theirs,
            their_frames: &mut live,
        },
        rounds,
    )?);
    eal::free(&mut live);
    Ok(rows)
}

/// A pool like DPDK's: as many buffers of the same room.
pub(crate) fn our_pool() -> Result<Mempool> {
    Ok(Mempool::new(PoolConfig {
        buffers: eal::BUFFERS as usize,
        ..PoolConfig::default()
    })?)
}

pub(crate) fn our_cache(pool: &Mempool) -> Result<PoolCache> {
    Ok(pool.cache(eal::CACHE as usize)?)
}

/// At the start of a cache line, as the C loops have it: else the result would depend on where the
/// stack begins in this run.
#[repr(align(64))]
struct OnLine<T>(T);

/// Both sides move handles of 8 bytes, and look at nothing behind them.
struct Cached {
    cache: ObjectCache<usize>,
    theirs: *mut dpdk::rte_mempool,
    dpdk_cache: *mut dpdk::rte_mempool_cache,
}

impl Operation for Cached {
    const NAME: &'static str = "mempool_cached";

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let OnLine(handles) = &mut OnLine([MaybeUninit::uninit(); B]);
        timed(turns, || {
            let full = self.cache.get_bulk(handles);
            // SAFETY: `get_bulk` filled all of them.
            full && self
                .cache
                .put_bulk(unsafe { assume_init(black_box(&*handles)) })
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        // SAFETY: a live pool and its cache for this thread.
        unsafe { dpdk::timed_mempool(self.theirs, self.dpdk_cache, burst, turns) }
    }
}

/// Without a cache, a pool of handles is the ring that holds them, on both sides.
struct Uncached {
    pool: Arc<Mpmc<usize>>,
    theirs: *mut dpdk::rte_mempool,
}

impl Operation for Uncached {
    const NAME: &'static str = "mempool_uncached";

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let OnLine(handles) = &mut OnLine([MaybeUninit::uninit(); B]);
        timed(turns, || {
            let full = self.pool.pop_bulk(handles);
            // SAFETY: `pop_bulk` filled all of them.
            full && self
                .pool
                .push_bulk(unsafe { assume_init(black_box(&*handles)) })
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        // SAFETY: a live pool, used without a cache.
        unsafe { dpdk::timed_mempool(self.theirs, ptr::null_mut(), burst, turns) }
    }
}

struct Buffers {
    cache: PoolCache,
    theirs: *mut dpdk::rte_mempool,
}

impl Operation for Buffers {
    const NAME: &'static str = "mbuf_alloc_free";

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let mut burst = Burst::<B>::new();
        timed(turns, || {
            let full = self.cache.alloc_burst(&mut burst, B) == B;
            self.cache.free_burst(black_box(&mut burst));
            full
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        // SAFETY: a live pool of packet buffers.
        unsafe { dpdk::timed_mbuf(self.theirs, burst, turns) }
    }
}

/// The oldest burst of 4096 live buffers is freed and replaced, in each turn.
struct Live<'a> {
    cache: PoolCache,
    theirs: *mut dpdk::rte_mempool,
    their_frames: &'a mut [*mut dpdk::rte_mbuf],
}

impl Operation for Live<'_> {
    const NAME: &'static str = "mbuf_alloc_free_live4096";

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let mut live: Vec<Burst<B>> = (0..LIVE / B).map(|_| Burst::new()).collect();
        for burst in &mut live {
            self.cache.alloc_burst(burst, B);
        }
        let mut at = 0;
        let cycles = timed(turns, || {
            let burst = &mut live[at];
            self.cache.free_burst(burst);
            at = if at + 1 == LIVE / B { 0 } else { at + 1 };
            self.cache.alloc_burst(black_box(burst), B) == B
        });
        for burst in &mut live {
            self.cache.free_burst(burst);
        }
        cycles
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        let (live, count) = (
            self.their_frames.as_mut_ptr(),
            self.their_frames.len() as u32,
        );
        // SAFETY: a live pool, and `count` live buffers of it; the burst divides the count.
        unsafe { dpdk::timed_mbuf_live(self.theirs, live, count, burst, turns) }
    }
}
