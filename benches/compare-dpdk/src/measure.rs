//! How two sides of one operation are timed: in slices of some hundred microseconds, in turns.
//!
//! A slice is short so that, on a machine that others use too, some slices of each side run
//! undisturbed; the best one of each side is what the code costs. The spread says how far the
//! median slice was from it: a large one means that the machine was busy, and that the run is to
//! be repeated rather than believed.

use std::hint::black_box;
use std::mem::MaybeUninit;

use anyhow::{Result, ensure};

/// Burst sizes, each compiled as a constant on both sides.
pub(crate) const BURSTS: [u32; 4] = [1, 8, 32, 128];

/// One operation, on both sides, on the same data.
pub(crate) trait Operation {
    /// Name of the row.
    const NAME: &'static str;
    /// Elements (frames, buffers, items) that a slice moves: enough to make the readings of the
    /// clock negligible.
    const ELEMENTS: u64 = 1 << 15;
    /// Elements that one turn moves for each of its burst.
    const PER_BURST: u64 = 1;

    /// Runs `turns` turns with bursts of `B`; returns TSC cycles, 0 if a turn fell short.
    fn ours<const B: usize>(&mut self, turns: u64) -> u64;

    /// As `ours`, with DPDK.
    fn dpdk(&mut self, burst: u32, turns: u64) -> u64;
}

/// One line of the result, in TSC cycles an element.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) burst: u32,
    pub(crate) ours: f64,
    pub(crate) dpdk: f64,
    /// Medians of the same slices.
    pub(crate) medians: [f64; 2],
    /// How far the median slice of the more disturbed side lies above its best one, relative.
    pub(crate) spread: f64,
}

impl Row {
    pub(crate) const UNIT: &'static str = "TSC cycles per element";

    pub(crate) fn ratio(&self) -> f64 {
        self.ours / self.dpdk
    }
}

/// Times an operation at all burst sizes, `rounds` slices of each side in turns.
pub(crate) fn compare<O: Operation>(operation: &mut O, rounds: usize) -> Result<Vec<Row>> {
    BURSTS
        .iter()
        .map(|&burst| compare_at(operation, burst, rounds))
        .collect()
}

fn compare_at<O: Operation>(operation: &mut O, burst: u32, rounds: usize) -> Result<Row> {
    let turns = O::ELEMENTS / u64::from(burst);
    let elements = (turns * u64::from(burst) * O::PER_BURST) as f64;
    let (mut ours, mut dpdk) = (Vec::new(), Vec::new());
    // The first round warms caches and branch predictors, and is not counted.
    for round in 0..=rounds {
        let a = elsewhere(round, || run_ours(operation, burst, turns));
        let b = elsewhere(round, || operation.dpdk(burst, turns));
        ensure!(
            a != 0,
            "{} at burst {burst}: our side moved less than a full burst",
            O::NAME
        );
        ensure!(
            b != 0,
            "{} at burst {burst}: DPDK moved less than a full burst",
            O::NAME
        );
        if round > 0 {
            ours.push(a as f64 / elements);
            dpdk.push(b as f64 / elements);
        }
    }
    let (ours, our_median) = best_and_median(&mut ours);
    let (dpdk, dpdk_median) = best_and_median(&mut dpdk);
    Ok(Row {
        name: O::NAME,
        burst,
        ours,
        dpdk,
        medians: [our_median, dpdk_median],
        spread: (our_median / ours).max(dpdk_median / dpdk) - 1.0,
    })
}

/// Runs a slice with its stack at one of eight places in a page. A load waits for an earlier store
/// whose address has the same low twelve bits, so an array on the stack and the memory of a pool
/// can lie badly to each other for a whole process: in one of eight rounds, then, and not in all.
fn elsewhere(round: usize, slice: impl FnOnce() -> u64) -> u64 {
    #[inline(never)]
    fn at<const BYTES: usize>(slice: impl FnOnce() -> u64) -> u64 {
        let room = black_box([0u8; BYTES]);
        let cycles = slice();
        black_box(&room);
        cycles
    }
    match round % 8 {
        0 => at::<0>(slice),
        1 => at::<512>(slice),
        2 => at::<1024>(slice),
        3 => at::<1536>(slice),
        4 => at::<2048>(slice),
        5 => at::<2560>(slice),
        6 => at::<3072>(slice),
        _ => at::<3584>(slice),
    }
}

/// The burst becomes a constant here, as it does in the C loops.
fn run_ours<O: Operation>(operation: &mut O, burst: u32, turns: u64) -> u64 {
    match burst {
        1 => operation.ours::<1>(turns),
        8 => operation.ours::<8>(turns),
        32 => operation.ours::<32>(turns),
        128 => operation.ours::<128>(turns),
        _ => 0,
    }
}

fn best_and_median(samples: &mut [f64]) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    (samples[0], samples[samples.len() / 2])
}

/// The counter that both sides are timed with, read as DPDK's `rte_rdtsc_precise` reads it: not
/// before what was asked for earlier is done.
#[inline(always)]
pub(crate) fn cycles() -> u64 {
    // SAFETY: SSE2 and the time stamp counter are part of x86_64; Linux lets user space read it.
    unsafe {
        core::arch::x86_64::_mm_mfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// Runs `turns` turns of `turn`, which says whether it moved a full burst.
#[inline(always)]
pub(crate) fn timed(turns: u64, mut turn: impl FnMut() -> bool) -> u64 {
    let start = cycles();
    for _ in 0..turns {
        if !turn() {
            return 0;
        }
    }
    cycles() - start
}

/// # Safety
/// All items are initialised.
#[inline(always)]
pub(crate) unsafe fn assume_init<const B: usize>(items: &[MaybeUninit<usize>; B]) -> &[usize; B] {
    // SAFETY: MaybeUninit has its content's layout; initialised by the caller's promise.
    unsafe { &*std::ptr::from_ref(items).cast() }
}
