//! Conversion of blocks of 64 pixels.

use pollux_pipelines::simd::{Kernel, LANES, Lanes};
use zerocopy::byteorder::little_endian::U16;

use super::output::Output;
use super::tables::{BLOCK, Blocks, G0, Others, STEPS, quarters};
use crate::calibration::raw::{ADU, ERRORS, NO_GAIN, SATURATED};

/// Converts as many blocks as all slices have.
pub(super) struct Convert<'a, P> {
    pub(super) raw: &'a [[U16; BLOCK]],
    pub(super) tables: Blocks<'a>,
    pub(super) out: &'a mut [[P; BLOCK]],
}

/// Converts blocks, counts the pixels that have at least so many photons, and marks them where there
/// are words for it; for several thresholds.
pub(super) struct ConvertAndMark<'a, P, const N: usize> {
    pub(super) blocks: Convert<'a, P>,
    pub(super) least: [f32; N],
    pub(super) marks: [&'a mut [u64]; N],
}

impl<P: Output> Kernel for Convert<'_, P> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Isa) {
        self.each(|_| ());
    }
}

impl<P: Output, const N: usize> Kernel for ConvertAndMark<'_, P, N> {
    /// Number of pixels that reach each threshold.
    type Out = [usize; N];

    #[inline(always)]
    fn run<V: Lanes>(self, isa: V::Isa) -> [usize; N] {
        let least = self.least.map(|least| V::splat(isa, least));
        let mut marks = self.marks.map(<[u64]>::iter_mut);
        let mut counts = [0; N];
        self.blocks.each(|photons| {
            let (lanes, _) = photons.as_chunks::<LANES>();
            for k in 0..N {
                let mut word = 0;
                for (n, lanes) in lanes.iter().enumerate() {
                    let bits = V::bits(least[k].le(V::load(isa, lanes)));
                    word |= u64::from(bits) << (n * LANES);
                }
                if let Some(mark) = marks[k].next() {
                    *mark = word;
                }
                counts[k] += word.count_ones() as usize;
            }
        });
        counts
    }
}

impl<P: Output> Convert<'_, P> {
    /// Converts each block, and hands its photons on: NaN for bad pixels, +infinity for saturated
    /// ones.
    #[inline(always)]
    fn each(self, mut then: impl FnMut(&[f32; BLOCK])) {
        let tables = self.tables.iter();
        for ((raw, out), ((g0, &unit), others)) in self.raw.iter().zip(self.out).zip(tables) {
            let mut photons = [0.0; BLOCK];
            let mut bits = 0;
            for k in 0..BLOCK {
                let raw = raw[k].get();
                bits |= raw;
                let charge = i32::from(raw) * STEPS as i32 - i32::from(g0.pedestals[k]);
                let value = charge as f32 * f32::from(g0.inverses[k]) * unit;
                photons[k] = if g0.inverses[k] == 0 { f32::NAN } else { value };
            }
            if bits > ADU {
                other_gains(raw, others, &mut photons);
            }
            for k in 0..BLOCK {
                out[k] = P::from_photons(photons[k]);
            }
            then(&photons);
        }
    }
}

/// Photons of the pixels of a block that are not in G0.
#[inline(always)]
fn other_gains(raw: &[U16; BLOCK], others: &Others, photons: &mut [f32; BLOCK]) {
    for k in 0..BLOCK {
        let raw = raw[k].get();
        // Both, and then a choice: with a choice of the table, the compiler gathers.
        let [g1, g2] = [0, 1].map(|gain| {
            (f32::from(raw & ADU) - others.pedestals[gain][k]) * others.inverses[gain][k]
        });
        let value = if raw >= SATURATED { g2 } else { g1 };
        // The value of a bad pixel is NaN, and remains so.
        let value = if raw == SATURATED {
            value.abs() + f32::INFINITY
        } else {
            value
        };
        let invalid = raw & SATURATED == NO_GAIN || raw == ERRORS[0] || raw == ERRORS[1];
        let value = if invalid { f32::NAN } else { value };
        photons[k] = if raw > ADU { value } else { photons[k] };
    }
}

/// Replaces the pedestals of G0, in ADU; NaN, which a bad pixel has, becomes 0.
pub(super) struct SetPedestals<'a> {
    pub(super) blocks: &'a mut [G0],
    pub(super) pedestals: &'a [f32],
}

impl Kernel for SetPedestals<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Isa) {
        let (whole, rest) = self.pedestals.as_chunks::<BLOCK>();
        let mut blocks = self.blocks.iter_mut();
        for (pedestals, block) in whole.iter().zip(blocks.by_ref()) {
            block.pedestals = pedestals.map(quarters);
        }
        if let Some(block) = blocks.next() {
            for (to, &pedestal) in block.pedestals.iter_mut().zip(rest) {
                *to = quarters(pedestal);
            }
        }
    }
}
