//! Table of the shares of all pixels: the sparse matrix from pixels to bins, ordered by pixels.
//!
//! Images are integrated in chunks. The shares of a chunk are not in the order of its pixels, since
//! neighbours in a row are often in the same bin, and each sum would then wait for the last one. A
//! chunk is divided into [`STREAMS`] parts, and a pixel of each part follows one of the last.

use super::config::{IntegrationConfig, IntegrationError, Split};
use super::geometry::{Placed, RadialUnit};
use super::shares::{Bins, Corner, Splitter};
use crate::Shape;

/// Pixels of a chunk.
pub(super) const CHUNK: usize = 1024;
/// Parts of a chunk that are summed by turns.
const STREAMS: usize = 16;
/// Maximum number of shares for each pixel, on average. A pixel that is as wide as a bin has two or
/// three.
const SHARES_PER_PIXEL: usize = 32;

/// Share of a pixel of a chunk in a bin.
pub(super) trait Share: Copy + Send + Sync {
    /// The pixel, counted from the first one of the chunk.
    fn pixel(self) -> usize;
    /// The bin.
    fn bin(self) -> usize;
    /// The part of the pixel that is in the bin; `None` for all of it.
    fn weight(self) -> Option<f32>;
}

/// A pixel that is in a bin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pixel: u16,
    bin: u16,
}

/// A part of a pixel that is in a bin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pixel: u16,
    bin: u16,
    weight: f32,
}

impl Share for Whole {
    #[inline(always)]
    fn pixel(self) -> usize {
        self.pixel.into()
    }

    #[inline(always)]
    fn bin(self) -> usize {
        self.bin.into()
    }

    #[inline(always)]
    fn weight(self) -> Option<f32> {
        None
    }
}

impl Share for Part {
    #[inline(always)]
    fn pixel(self) -> usize {
        self.pixel.into()
    }

    #[inline(always)]
    fn bin(self) -> usize {
        self.bin.into()
    }

    #[inline(always)]
    fn weight(self) -> Option<f32> {
        Some(self.weight)
    }
}

/// Shares of all pixels, chunk by chunk.
pub(super) struct Shares<S> {
    shares: Vec<S>,
    /// End of each chunk in `shares`.
    ends: Vec<usize>,
}

impl<S: Share> Shares<S> {
    /// Shares of one chunk after the other.
    #[inline(always)]
    pub(super) fn chunks(&self) -> impl Iterator<Item = &[S]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        ranges.map(|(start, end)| self.shares.get(start..end).unwrap_or_default())
    }

    /// `add` passes the bins of a pixel, and its part in each.
    fn new(
        pixels: usize,
        mut add: impl FnMut(usize, &mut dyn FnMut(usize, f32)),
        new: impl Fn(u16, u16, f32) -> S,
    ) -> Result<Self, IntegrationError> {
        let most = pixels.saturating_mul(SHARES_PER_PIXEL);
        let (mut shares, mut ends) = (Vec::with_capacity(pixels), Vec::new());
        for chunk in (0..pixels).step_by(CHUNK) {
            for n in 0..CHUNK {
                let pixel = n % STREAMS * (CHUNK / STREAMS) + n / STREAMS;
                if chunk + pixel < pixels {
                    add(chunk + pixel, &mut |bin, part| {
                        shares.push(new(pixel as u16, bin as u16, part));
                    });
                    if shares.len() > most {
                        return Err(IntegrationError::Shares(most));
                    }
                }
            }
            ends.push(shares.len());
        }
        shares.shrink_to_fit();
        Ok(Self { shares, ends })
    }
}

/// Shares of the pixels of a detector, with or without splitting.
pub(super) enum Table {
    Whole(Shares<Whole>),
    Parts(Shares<Part>),
}

impl Table {
    /// Whether no pixel has a share.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Whole(shares) => shares.shares.is_empty(),
            Self::Parts(shares) => shares.shares.is_empty(),
        }
    }
}

/// Coordinates of the pixels, which shares are computed from.
pub(super) struct Pixels<'a> {
    pub(super) shape: Shape,
    pub(super) placed: &'a Placed,
    /// Whether a pixel, by its number, is to be counted.
    pub(super) is_used: &'a dyn Fn(usize) -> bool,
}

impl Pixels<'_> {
    fn centres(&self, unit: RadialUnit) -> Vec<f64> {
        let all = 0..self.shape.pixels();
        all.map(|pixel| {
            let (row, column) = (pixel / self.shape.columns, pixel % self.shape.columns);
            let position = self.placed.position(row as f64 + 0.5, column as f64 + 0.5);
            self.placed.radial(unit, position)
        })
        .collect()
    }

    /// Of all corners, in rows that are one longer than those of the image.
    fn corners(&self, unit: RadialUnit) -> Vec<Corner> {
        let rows = 0..=self.shape.rows;
        rows.flat_map(|row| (0..=self.shape.columns).map(move |column| (row, column)))
            .map(|(row, column)| {
                let position = self.placed.position(row as f64, column as f64);
                let radial = self.placed.radial(unit, position);
                [radial as f32, position[0].atan2(position[1]) as f32]
            })
            .collect()
    }

    /// The corners of a pixel, in turn around it.
    fn around(&self, corners: &[Corner], pixel: usize) -> [Corner; 4] {
        let first = pixel + pixel / self.shape.columns;
        let below = first + self.shape.columns + 1;
        [first, below, below + 1, first + 1].map(|corner| corners[corner])
    }

    /// The shares of all pixels, and the bins.
    pub(super) fn table(
        &self,
        config: &IntegrationConfig,
    ) -> Result<(Table, Bins), IntegrationError> {
        let all = self.shape.pixels();
        let used = (0..all).filter(|&pixel| (self.is_used)(pixel));
        match config.split {
            Split::No => {
                let centres = self.centres(config.unit);
                let bins = bins_over(config, used.map(|pixel| centres[pixel]))?;
                let add = |pixel, add: &mut dyn FnMut(usize, f32)| {
                    let bin = bins.bin(centres[pixel]);
                    if let Some(bin) = bin.filter(|_| (self.is_used)(pixel)) {
                        add(bin, 1.0);
                    }
                };
                let shares = Shares::new(all, add, |pixel, bin, _| Whole { pixel, bin })?;
                Ok((Table::Whole(shares), bins))
            }
            Split::Full => {
                let corners = self.corners(config.unit);
                let radial = used.flat_map(|pixel| self.around(&corners, pixel));
                let bins = bins_over(config, radial.map(|[radial, _]| radial.into()))?;
                let mut splitter = Splitter::new(bins);
                let add = |pixel, add: &mut dyn FnMut(usize, f32)| {
                    if (self.is_used)(pixel) {
                        splitter.split(self.around(&corners, pixel), add);
                    }
                };
                let new = |pixel, bin, weight| Part { pixel, bin, weight };
                Ok((Table::Parts(Shares::new(all, add, new)?), bins))
            }
        }
    }
}

/// Bins over the configured range, or that of the radial coordinates of the pixels that are used.
fn bins_over(
    config: &IntegrationConfig,
    radial: impl Iterator<Item = f64>,
) -> Result<Bins, IntegrationError> {
    let scale = config.unit.scale();
    let (low, high) = if let Some((low, high)) = config.range {
        (low / scale, high / scale)
    } else {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        radial.fold(none, |(low, high), r| (low.min(r), high.max(r)))
    };
    if low > high {
        return Err(IntegrationError::AllMasked);
    }
    Bins::new(low, high, config.bins).ok_or(IntegrationError::Range(low * scale, high * scale))
}
