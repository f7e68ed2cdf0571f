//! Sums of an image in the bins of a curve.

use pollux_mempool::prefetch::prefetch_read;
use pollux_pipelines::simd::{Kernel, Lanes};

use super::curve::Sums;
use super::table::{CHUNK, Share, Shares};
use crate::Pixel;

/// Variance of the pixels of an image.
#[derive(Clone, Copy, Debug, Default)]
pub enum Variance<'a> {
    /// That of a Poisson distribution: the number of photons, at least 1, as in pyFAI.
    #[default]
    Poisson,
    /// One for each pixel, in photons^2. A pixel whose variance is not finite is bad.
    Image(&'a [f32]),
}

/// What the shares of a pixel are multiplied by: signal, normalisation, variance, and 1. A pixel
/// that does not count has four zeros.
pub(super) type Record = [f32; 4];

/// Cache lines of shares that are fetched before they are needed.
const LINES_AHEAD: usize = 16;

/// Adds an image to the sums.
pub(super) struct Add<'a, P, S> {
    pub(super) image: &'a [P],
    pub(super) variance: Variance<'a>,
    /// Normalisation of each pixel.
    pub(super) normalisation: &'a [f32],
    pub(super) shares: &'a Shares<S>,
    /// Of one chunk.
    pub(super) records: &'a mut [Record; CHUNK],
    pub(super) sums: &'a mut [Sums],
}

impl<P: Pixel, S: Share> Kernel for Add<'_, P, S> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Isa) {
        let chunks = self
            .image
            .chunks(CHUNK)
            .zip(self.normalisation.chunks(CHUNK));
        match self.variance {
            Variance::Poisson => {
                for ((pixels, normalisation), shares) in chunks.zip(self.shares.chunks()) {
                    let each = pixels.iter().zip(normalisation);
                    for (record, (pixel, &normalisation)) in self.records.iter_mut().zip(each) {
                        let photons = pixel.photons();
                        *record = of(photons, normalisation, photons.max(1.0));
                    }
                    add(shares, self.records, self.sums, (pixels, normalisation));
                }
            }
            Variance::Image(variance) => {
                let chunks = chunks.zip(variance.chunks(CHUNK));
                for (((pixels, normalisation), variance), shares) in
                    chunks.zip(self.shares.chunks())
                {
                    let each = pixels.iter().zip(normalisation).zip(variance);
                    for (record, ((pixel, &normalisation), &variance)) in
                        self.records.iter_mut().zip(each)
                    {
                        *record = of(pixel.photons(), normalisation, variance);
                    }
                    add(shares, self.records, self.sums, (pixels, normalisation));
                }
            }
        }
    }
}

/// Record of a pixel.
#[inline(always)]
fn of(photons: f32, normalisation: f32, variance: f32) -> Record {
    let counts = photons.is_finite() & variance.is_finite();
    let only = |value| if counts { value } else { 0.0 };
    [
        only(photons),
        only(normalisation),
        only(variance),
        only(1.0),
    ]
}

/// Adds a chunk. Sums are in double precision: those of 4 million terms of single precision have a
/// relative error of 1e-10 or less, without compensation.
///
/// Meanwhile the next chunk's pixels and normalisation are fetched from memory, and the shares some
/// lines ahead: at the start of a page, the CPU itself does not prefetch.
#[inline(always)]
fn add<P: Pixel, S: Share>(
    shares: &[S],
    records: &[Record; CHUNK],
    sums: &mut [Sums],
    (pixels, normalisation): (&[P], &[f32]),
) {
    let next = (pixels.as_ptr_range().end, normalisation.as_ptr_range().end);
    for (line, shares) in shares.chunks(per_line::<S>()).enumerate() {
        prefetch_read(shares.as_ptr().wrapping_add(LINES_AHEAD * per_line::<S>()));
        if line < CHUNK / per_line::<f32>() {
            prefetch_read(next.0.wrapping_add(line * per_line::<P>()));
            prefetch_read(next.1.wrapping_add(line * per_line::<f32>()));
        }
        for share in shares {
            let record = records[share.pixel() % CHUNK].map(f64::from);
            // The table has only bins that there are.
            if let Some(sums) = sums.get_mut(share.bin()) {
                let addend = share.weight().map_or(record, |weight| {
                    let weight = f64::from(weight);
                    let [signal, normalisation, variance, one] = record.map(|value| value * weight);
                    [signal, normalisation, variance * weight, one]
                });
                for (sum, addend) in sums.iter_mut().zip(addend) {
                    *sum += addend;
                }
            }
        }
    }
}

/// Elements in a cache line of 64 bytes.
const fn per_line<T>() -> usize {
    64 / size_of::<T>()
}
