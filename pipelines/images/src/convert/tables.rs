//! Pedestals and inverse gains as the kernel reads them.

use crate::calibration::{Calibration, Gain};

/// Pixels of a block, which has one word of marks.
pub(super) const BLOCK: usize = 64;
/// Steps of a pedestal of G0 in an ADU.
pub(super) const STEPS: f32 = 4.0;

/// G0 of a block of pixels: 4 bytes a pixel. Nearly all pixels are in G0, and so its table is most of
/// what a conversion reads.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct G0 {
    /// Pedestals, in quarters of an ADU.
    pub(super) pedestals: [u16; BLOCK],
    /// Inverse gains, in units of the block; 0 for a bad pixel.
    pub(super) inverses: [u16; BLOCK],
}

/// G1 and G2 of a block of pixels.
#[derive(Clone, Debug)]
pub(super) struct Others {
    /// Pedestals, in ADU.
    pub(super) pedestals: [[f32; BLOCK]; 2],
    /// Inverse gains, in photons per ADU; NaN for a bad pixel.
    pub(super) inverses: [[f32; BLOCK]; 2],
}

/// Tables of all pixels. Pixels that complete the last block are bad.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) g0: Vec<G0>,
    /// For each block, the photons of one quarter of an ADU times one unit of the inverse gain: a
    /// power of two.
    pub(super) units: Vec<f32>,
    pub(super) others: Vec<Others>,
}

/// A pedestal as the table has it; NaN becomes 0.
#[inline(always)]
pub(super) fn quarters(pedestal: f32) -> u16 {
    // The sum is rounded to a whole number, which its lowest bits hold.
    const WHOLE: f32 = 8_388_608.0;
    (pedestal * STEPS + WHOLE).to_bits() as u16
}

impl Tables {
    pub(super) fn new(calibration: &Calibration) -> Self {
        let pixels = calibration.shape().pixels();
        let blocks = pixels.div_ceil(BLOCK);
        let value = |map: &[f32], pixel: usize, bad: f32| match calibration.bad().get(pixel) {
            Some(false) => map[pixel],
            _ => bad,
        };
        let pedestals = |gain, block: usize| -> [f32; BLOCK] {
            let map = calibration.pedestals(gain);
            std::array::from_fn(|k| value(map, block * BLOCK + k, 0.0))
        };
        let inverses = |gain, block: usize| -> [f32; BLOCK] {
            let map = calibration.gains(gain);
            std::array::from_fn(|k| value(map, block * BLOCK + k, f32::NAN).recip())
        };
        let mut tables = Self {
            g0: Vec::with_capacity(blocks),
            units: Vec::with_capacity(blocks),
            others: Vec::with_capacity(blocks),
        };
        for block in 0..blocks {
            let inverse = inverses(Gain::G0, block);
            let unit = unit(inverse.into_iter().fold(0.0, f32::max));
            tables.g0.push(G0 {
                pedestals: pedestals(Gain::G0, block).map(quarters),
                inverses: inverse.map(|inverse| {
                    // 0 is for bad pixels, of which the inverse is NaN.
                    let units = (inverse / unit).round().max(1.0) as u16;
                    if inverse.is_nan() { 0 } else { units }
                }),
            });
            tables.units.push(unit / STEPS);
            tables.others.push(Others {
                pedestals: [Gain::G1, Gain::G2].map(|gain| pedestals(gain, block)),
                inverses: [Gain::G1, Gain::G2].map(|gain| inverses(gain, block)),
            });
        }
        tables
    }

    /// The tables from a block on.
    #[inline]
    pub(super) fn from(&self, block: usize) -> Blocks<'_> {
        Blocks {
            g0: self.g0.get(block..).unwrap_or_default(),
            units: self.units.get(block..).unwrap_or_default(),
            others: self.others.get(block..).unwrap_or_default(),
        }
    }
}

/// Tables of consecutive blocks.
#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    g0: &'a [G0],
    units: &'a [f32],
    others: &'a [Others],
}

impl<'a> Blocks<'a> {
    /// Each block, with its unit.
    #[inline(always)]
    pub(super) fn iter(self) -> impl Iterator<Item = ((&'a G0, &'a f32), &'a Others)> {
        self.g0.iter().zip(self.units).zip(self.others)
    }
}

/// The power of two of which the largest inverse gain of a block is from 32767 to 65535.
fn unit(largest: f32) -> f32 {
    const EXPONENT: u32 = 0x7F80_0000;
    let unit = largest / f32::from(u16::MAX);
    2.0 * f32::from_bits(unit.to_bits() & EXPONENT)
}
