//! Frames of all kinds, both ways.

use anyhow::Result;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::SplitMix64;

use super::Test;
use crate::bench::Bench;
use crate::rig::{BOTH_WAYS, Rig, Setup};

/// Shortest frame on Ethernet, and the longest that all of these devices take, with frame check
/// sequence.
const SIZES: std::ops::RangeInclusive<usize> = 64..=9018;

pub(crate) const FRAMES: &[Test] = &[
    Test {
        name: "sizes",
        shows: "frames of 64 bytes to 9 KB arrive whole, both ways",
        run: |bench| exchange(bench, Setup::default(), 4000, &sizes()),
    },
    Test {
        name: "random-sizes",
        shows: "frames of random sizes arrive whole",
        run: |bench| exchange(bench, Setup::default(), 8000, &random_sizes()),
    },
    Test {
        name: "queues",
        shows: "frames pass through all queues",
        run: |bench| {
            let queues = bench.machine.queues;
            exchange(
                bench,
                Setup {
                    queues,
                    ..Setup::default()
                },
                8000,
                &[64, 1518],
            )
        },
    },
    Test {
        name: "wrap",
        shows: "rings of 64 descriptors go round some hundred times",
        run: |bench| {
            exchange(
                bench,
                Setup {
                    ring: 64,
                    ..Setup::default()
                },
                20_000,
                &[64],
            )
        },
    },
];

fn sizes() -> Vec<usize> {
    vec![
        64, 65, 66, 67, 127, 128, 256, 1024, 1514, 1518, 2047, 2048, 2049, 4096, 8192, 9018,
    ]
}

fn random_sizes() -> Vec<usize> {
    let mut random = SplitMix64::seed_from_u64(1);
    (0..512).map(|_| random.random_range(SIZES)).collect()
}

fn exchange(bench: &Bench, setup: Setup, count: u64, sizes: &[usize]) -> Result<()> {
    let mut rig = Rig::open(bench, setup)?;
    for way in BOTH_WAYS {
        rig.exchange(way, count, sizes)?;
    }
    rig.finish()
}
