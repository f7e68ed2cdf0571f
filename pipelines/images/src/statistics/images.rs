//! Sum and maximum of each pixel over a run.

use pollux_pipelines::simd::{Kernel, Lanes, Simd};

use super::sum::SumPixel;
use crate::Shape;

/// Pixels that are added together.
const GROUP: usize = 32;
/// Pixels whose photons are added up in [`SumPixel::Recent`].
const BLOCK: usize = 1024;
/// Maximum number of images after which a recent sum is moved to the total.
const MAX_CYCLE: usize = 1 << 15;

/// Why statistics cannot be made, or an image not be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatisticsError {
    /// The shape has no pixels, or too many.
    #[error("shape {0}: an image must have 1 to 2^32 - 1 pixels")]
    Shape(Shape),
    /// The factor is out of range.
    #[error("factor {factor} for images of {shape}: it must be 1 to the longer side")]
    Factor {
        /// Pixels of a side that become one.
        factor: usize,
        /// Shape of the images.
        shape: Shape,
    },
    /// An image of another size.
    #[error("image of {pixels} pixels: the statistics were made for {shape}")]
    Image {
        /// Pixels of the image.
        pixels: usize,
        /// Shape of the images.
        shape: Shape,
    },
}

/// Of the last image.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LastImage {
    /// Sum of all pixels that have a value, in photons.
    pub photons: f64,
    /// Number of bad pixels.
    pub bad: u32,
    /// Number of saturated pixels.
    pub saturated: u32,
}

/// Sum and maximum of each pixel over a run; one for each loop.
#[derive(Debug)]
pub struct ImageStatistics<P: SumPixel> {
    shape: Shape,
    simd: Simd,
    images: u64,
    /// Sums of the images since the pixel's part was moved to `totals`.
    recent: Vec<P::Recent>,
    totals: Vec<P::Total>,
    maxima: Vec<P>,
    /// Images in which the pixel had no value.
    without: Vec<u32>,
    /// Pixels that are moved with each image, and the first of the next ones.
    part: usize,
    next_part: usize,
    last: LastImage,
    photons: f64,
}

impl<P: SumPixel> ImageStatistics<P> {
    /// Statistics of images of the given shape, by the best instruction set of this CPU.
    ///
    /// # Errors
    /// A shape without pixels, or with 2^32 or more.
    pub fn new(shape: Shape) -> Result<Self, StatisticsError> {
        Self::with_simd(shape, Simd::best())
    }

    /// As [`new`](Self::new), with the given instruction set; the results do not depend on it.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn with_simd(shape: Shape, simd: Simd) -> Result<Self, StatisticsError> {
        let pixels = check(shape)?;
        Ok(Self {
            shape,
            simd,
            images: 0,
            recent: vec![P::Recent::default(); pixels],
            totals: vec![P::Total::default(); pixels],
            maxima: vec![P::BAD; pixels],
            without: vec![0; pixels],
            part: cycle(pixels).1,
            next_part: 0,
            last: LastImage::default(),
            photons: 0.0,
        })
    }

    /// Adds an image.
    ///
    /// # Errors
    /// An image whose number of pixels is not that of the shape.
    pub fn add(&mut self, image: &[P]) -> Result<LastImage, StatisticsError> {
        if image.len() != self.shape.pixels() {
            return Err(StatisticsError::Image {
                pixels: image.len(),
                shape: self.shape,
            });
        }
        self.images += 1;
        self.last = self.simd.run(Add {
            image,
            recent: &mut self.recent,
            maxima: &mut self.maxima,
            without: &mut self.without,
        });
        self.photons += self.last.photons;
        self.move_part();
        Ok(self.last)
    }

    /// Moves the next part of the recent sums to the totals.
    #[inline]
    fn move_part(&mut self) {
        let end = (self.next_part + self.part).min(self.recent.len());
        if let (Some(recent), Some(totals)) = (
            self.recent.get_mut(self.next_part..end),
            self.totals.get_mut(self.next_part..end),
        ) {
            for (recent, total) in recent.iter_mut().zip(totals) {
                *total = P::total(*recent, *total);
                *recent = P::Recent::default();
            }
        }
        self.next_part = if end == self.recent.len() { 0 } else { end };
    }

    /// Shape of the images.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of images.
    #[must_use]
    pub fn images(&self) -> u64 {
        self.images
    }

    /// Sums of the last image; of no image, zeros.
    #[must_use]
    pub fn last(&self) -> LastImage {
        self.last
    }

    /// Sum of all pixels of all images, in photons.
    #[must_use]
    pub fn photons(&self) -> f64 {
        self.photons
    }

    /// Largest value of each pixel over all images; bad where there is none.
    #[must_use]
    pub fn maximum(&self) -> &[P] {
        &self.maxima
    }

    /// Sum of a pixel over all images, in photons, and the number of images in which it had a value.
    #[must_use]
    #[inline]
    pub fn sum(&self, pixel: usize) -> Option<(f64, u64)> {
        let total = P::total(*self.recent.get(pixel)?, *self.totals.get(pixel)?);
        let without = u64::from(*self.without.get(pixel)?);
        Some((P::sum_photons(total), self.images.saturating_sub(without)))
    }

    /// Removes all images, before the next run. Takes as long as to add a few.
    pub fn reset(&mut self) {
        self.recent.fill(P::Recent::default());
        self.totals.fill(P::Total::default());
        self.maxima.fill(P::BAD);
        self.without.fill(0);
        (self.images, self.next_part) = (0, 0);
        (self.last, self.photons) = (LastImage::default(), 0.0);
    }
}

/// Number of pixels of a shape.
pub(super) fn check(shape: Shape) -> Result<usize, StatisticsError> {
    let pixels = shape.rows.checked_mul(shape.columns);
    let pixels = pixels.filter(|&pixels| u32::try_from(pixels).is_ok_and(|pixels| pixels > 0));
    pixels.ok_or(StatisticsError::Shape(shape))
}

/// Number of images after which all recent sums have been moved, and of pixels moved with each.
pub(super) fn cycle(pixels: usize) -> (usize, usize) {
    let part = BLOCK.max(pixels.div_ceil(MAX_CYCLE));
    (pixels.div_ceil(part), part)
}

/// Adds an image to sums and maxima.
struct Add<'a, P: SumPixel> {
    image: &'a [P],
    recent: &'a mut [P::Recent],
    maxima: &'a mut [P],
    without: &'a mut [u32],
}

impl<P: SumPixel> Kernel for Add<'_, P> {
    type Out = LastImage;

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Isa) -> LastImage {
        let mut last = LastImage::default();
        let mut photons = P::Total::default();
        let blocks = self.image.chunks(BLOCK).zip(self.recent.chunks_mut(BLOCK));
        let others = self
            .maxima
            .chunks_mut(BLOCK)
            .zip(self.without.chunks_mut(BLOCK));
        for ((image, recent), (maxima, without)) in blocks.zip(others) {
            let mut sums = [P::Recent::default(); GROUP];
            let (groups, rest) = image.as_chunks::<GROUP>();
            let (recent, recent_rest) = recent.as_chunks_mut::<GROUP>();
            let (maxima, maxima_rest) = maxima.as_chunks_mut::<GROUP>();
            let (without, without_rest) = without.as_chunks_mut::<GROUP>();
            let places = recent.iter_mut().zip(maxima).zip(without);
            for (pixels, ((recent, maxima), without)) in groups.iter().zip(places) {
                let mut all = true;
                for i in 0..GROUP {
                    recent[i] = pixels[i].add_to(recent[i]);
                    sums[i] = pixels[i].add_to(sums[i]);
                    maxima[i] = pixels[i].larger(maxima[i]);
                    all &= pixels[i].has_value();
                }
                if !all {
                    count(pixels, without, &mut last);
                }
            }
            let places = recent_rest.iter_mut().zip(maxima_rest).zip(sums.iter_mut());
            for (&pixel, ((recent, maximum), sum)) in rest.iter().zip(places) {
                *recent = pixel.add_to(*recent);
                *sum = pixel.add_to(*sum);
                *maximum = pixel.larger(*maximum);
            }
            count(rest, without_rest, &mut last);
            photons = sums
                .iter()
                .fold(photons, |total, &sum| P::total(sum, total));
        }
        last.photons = P::sum_photons(photons);
        last
    }
}

/// Counts the pixels that have no value.
#[inline(always)]
fn count<P: SumPixel>(pixels: &[P], without: &mut [u32], last: &mut LastImage) {
    let (mut invalid, mut bad) = (0, 0);
    for (pixel, without) in pixels.iter().zip(without) {
        let none = u32::from(!pixel.has_value());
        *without = without.saturating_add(none);
        invalid += none;
        bad += u32::from(pixel.is_bad());
    }
    last.bad += bad;
    last.saturated += invalid - bad;
}
