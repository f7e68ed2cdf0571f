//! Rings of pointers, on one core and across two.

use std::hint::{black_box, spin_loop};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};
use core_affinity::CoreId;
use pollux_dpdk_sys as dpdk;
use pollux_mempool::ring::{Mpmc, spsc};

use crate::eal;
use crate::measure::{Operation, Row, assume_init, compare, cycles, timed};

/// Slots in each ring.
const SIZE: u32 = 1024;

/// All rows of this module; the last one needs a second core.
pub(crate) fn rows(rounds: usize, second_core: Option<usize>) -> Result<Vec<Row>> {
    let single = dpdk::RING_F_SP_ENQ | dpdk::RING_F_SC_DEQ;
    let mut rows = Vec::new();

    let (producer, consumer) = spsc::channel(SIZE as usize)?;
    let theirs = eal::ring(c"spsc", SIZE, single)?;
    rows.extend(compare(
        &mut Spsc {
            producer,
            consumer,
            theirs,
        },
        rounds,
    )?);

    let theirs = eal::ring(c"mpmc", SIZE, 0)?;
    rows.extend(compare(
        &mut Multi {
            ours: Mpmc::new(SIZE as usize)?,
            theirs,
        },
        rounds,
    )?);

    if let Some(core) = second_core {
        let (producer, consumer) = spsc::channel(SIZE as usize)?;
        let theirs = eal::ring(c"across", SIZE, single)?;
        let mut across = Across {
            producer,
            consumer,
            theirs,
            core: CoreId { id: core },
        };
        rows.extend(compare(&mut across, rounds)?);
    }
    Ok(rows)
}

/// A ring for many between two cores, which is in none of the rows above.
pub(crate) fn mpmc_across(rounds: usize, second_core: Option<usize>) -> Result<Vec<Row>> {
    let core = second_core.context("needs two cores: see --cores")?;
    let mut across = MultiAcross {
        ours: Mpmc::new(SIZE as usize)?,
        theirs: eal::ring(c"mpmc_across", SIZE, 0)?,
        core: CoreId { id: core },
    };
    compare(&mut across, rounds)
}

struct Spsc {
    producer: spsc::Producer<usize>,
    consumer: spsc::Consumer<usize>,
    theirs: *mut dpdk::rte_ring,
}

impl Operation for Spsc {
    const NAME: &'static str = "ring_spsc";

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let mut items = [MaybeUninit::new(0); B];
        timed(turns, || {
            // SAFETY: initialised above, and filled by each pop.
            let full = self
                .producer
                .push_bulk(unsafe { assume_init(black_box(&items)) });
            full && self.consumer.pop_bulk(&mut items)
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        // SAFETY: a live ring without other users.
        unsafe { dpdk::timed_ring_spsc(self.theirs, burst, turns) }
    }
}

struct Multi {
    ours: Mpmc<usize>,
    theirs: *mut dpdk::rte_ring,
}

impl Operation for Multi {
    const NAME: &'static str = "ring_mpmc";

    #[inline(never)]
    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let mut items = [MaybeUninit::new(0); B];
        timed(turns, || {
            // SAFETY: initialised above, and filled by each pop.
            let full = self
                .ours
                .push_bulk(unsafe { assume_init(black_box(&items)) });
            full && self.ours.pop_bulk(&mut items)
        })
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        // SAFETY: a live ring.
        unsafe { dpdk::timed_ring_mpmc(self.theirs, burst, turns) }
    }
}

/// A pair falls into one of several steady states and changes it every few hundred microseconds: a
/// slice must hold many of them, or its best is the luckiest state.
const ACROSS: u64 = 1 << 18;

/// One core pushes, another pops. A slice counts only if both threads run all the while: on a
/// busy machine look at the spread first.
struct Across {
    producer: spsc::Producer<usize>,
    consumer: spsc::Consumer<usize>,
    theirs: *mut dpdk::rte_ring,
    core: CoreId,
}

impl Operation for Across {
    const NAME: &'static str = "ring_spsc_2core";
    const ELEMENTS: u64 = ACROSS;

    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let (producer, consumer) = (&mut self.producer, &mut self.consumer);
        on_two_cores(
            self.core,
            || produce::<B>(turns, |items| producer.push_bulk(items)),
            || consume::<B>(turns, |items| consumer.pop_bulk(items)),
        )
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        let (ours, theirs) = (self.theirs, Shared(self.theirs));
        on_two_cores(
            self.core,
            // SAFETY: a live ring with this one producer.
            || unsafe { dpdk::timed_ring_produce(ours, burst, turns) },
            move || {
                let Shared(ring) = { theirs };
                // SAFETY: a live ring with this one consumer.
                unsafe { dpdk::timed_ring_consume(ring, burst, turns) }
            },
        )
    }
}

/// As [`Across`], with rings that could have more of either side.
struct MultiAcross {
    ours: Mpmc<usize>,
    theirs: *mut dpdk::rte_ring,
    core: CoreId,
}

impl Operation for MultiAcross {
    const NAME: &'static str = "ring_mpmc_2core";
    const ELEMENTS: u64 = ACROSS;

    fn ours<const B: usize>(&mut self, turns: u64) -> u64 {
        let ring = &self.ours;
        on_two_cores(
            self.core,
            || produce::<B>(turns, |items| ring.push_bulk(items)),
            || consume::<B>(turns, |items| ring.pop_bulk(items)),
        )
    }

    fn dpdk(&mut self, burst: u32, turns: u64) -> u64 {
        let (ours, theirs) = (self.theirs, Shared(self.theirs));
        on_two_cores(
            self.core,
            // SAFETY: a live ring.
            || unsafe { dpdk::timed_ring_mp_produce(ours, burst, turns) },
            move || {
                let Shared(ring) = { theirs };
                // SAFETY: a live ring.
                unsafe { dpdk::timed_ring_mc_consume(ring, burst, turns) }
            },
        )
    }
}

/// A DPDK ring, for the thread on the other core.
struct Shared(*mut dpdk::rte_ring);
// SAFETY: one thread enqueues, the other dequeues: what any ring is for.
unsafe impl Send for Shared {}

/// Between two looks at a ring that is empty or full, as in the C loops: a poll loop has other
/// things to do in between, and a side that looks all the time takes the line of the other's index
/// away from it.
#[inline(always)]
fn stand_off() {
    for _ in 0..8 {
        spin_loop();
    }
}

#[inline(never)]
fn produce<const B: usize>(turns: u64, mut push: impl FnMut(&[usize; B]) -> bool) -> u64 {
    let items = [0; B];
    timed(turns, || {
        // An array, not a slice: its length must stay a constant.
        let items: &[usize; B] = black_box(&items);
        while !push(items) {
            stand_off();
        }
        true
    })
}

#[inline(never)]
fn consume<const B: usize>(
    turns: u64,
    mut pop: impl FnMut(&mut [MaybeUninit<usize>; B]) -> bool,
) -> u64 {
    let mut items = [MaybeUninit::uninit(); B];
    timed(turns, || {
        let items: &mut [MaybeUninit<usize>; B] = black_box(&mut items);
        while !pop(items) {
            stand_off();
        }
        true
    })
}

/// Runs one closure here and one on `core`; returns the cycles from the start of the first to the
/// end of the second, or 0 if either failed.
fn on_two_cores(
    core: CoreId,
    here: impl FnOnce() -> u64,
    there: impl FnOnce() -> u64 + Send,
) -> u64 {
    let ready = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let pinned = core_affinity::set_for_current(core);
            // Release pairs with the Acquire below: the thread is where it belongs.
            ready.store(true, Ordering::Release);
            let moved = there();
            if pinned && moved != 0 { cycles() } else { 0 }
        });
        // Acquire pairs with the Release above.
        while !ready.load(Ordering::Acquire) {
            spin_loop();
        }
        let start = cycles();
        let moved = here();
        match other.join() {
            Ok(end) if moved != 0 && end > start => end - start,
            _ => 0,
        }
    })
}
