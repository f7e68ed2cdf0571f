//! Bragg peak finder: position, intensity and background of the peaks in an image.
//!
//! The method is that of peakfinder8 (A. Barty et al., "Cheetah: software for high-throughput
//! reduction and analysis of serial femtosecond X-ray diffraction data", J. Appl. Cryst. 47 (2014)
//! 1118): the background of powder and solvent depends on the distance from the beam alone, so each
//! pixel is compared with the others at its distance. All values are photons; a bad pixel has none
//! and takes part in nothing. Indices count from 0, and the centre of a pixel is at its indices.
//!
//! 1. **Rings.** A pixel at radius r is in bin floor(r / `ring_width`) if `min_radius` <= r <=
//!    `max_radius`, else in none. From the innermost bin outwards, bins are joined until a ring has
//!    [`MIN_RING_PIXELS`] pixels; what remains at the end joins the last ring.
//! 2. **Samples.** Of a ring of n pixels, in the order of the image, pixel floor(i n / s) is sample
//!    i of s = min(n, `ring_samples`).
//! 3. **Background of a ring.** Mean m and standard deviation s (of the population, at least
//!    `noise`) of the samples, then of the samples within m +- `clip_sigma` s, both limits included
//!    and rounded to f32; again with the new m and s, at most `clip_iterations` times or until the
//!    limits stay the same. Bad and saturated samples are left out. Of fewer than [`MIN_SAMPLES`]
//!    samples there is no background, and the ring has no candidates.
//! 4. **Candidates.** Pixels of a ring whose value is at least t = max(m + `pixel_snr` s,
//!    `min_photons`), rounded to f32. A saturated pixel is a candidate, and counts as
//!    max(`saturation`, t) photons below.
//! 5. **Peaks.** Candidates that touch, at a side or a corner, in one module belong together. Of n
//!    such pixels, at least `min_pixels` and at most `max_pixels`, the largest is the local maximum;
//!    of several, the first in the image. Two spots that touch are one peak.
//! 6. **Local background.** Mean b and standard deviation (at least `noise`) of the pixels of the same
//!    module whose distance d from the maximum is `local_inner` < d <= `local_outer`, and that are
//!    below the threshold t of their ring. If they are fewer than [`MIN_SAMPLES`], the background of
//!    the maximum's ring is taken.
//! 7. **Measures.** The intensity is the sum of the pixels less n b. Its significance is the intensity
//!    divided by the noise of the background below the peak, sqrt(n) times the standard deviation; it
//!    must be at least `min_snr`. The centre of mass weights each pixel with its excess over the mean
//!    of its ring, which is positive.
//!
//! Peaks are listed in the order of their first pixel in the image, up to `max_peaks`; further ones are
//! counted. The work for an image is bounded by its number of pixels, and takes no memory.
//!
//! Sums are of double precision in a fixed order, so that results are equal bit by bit for all
//! instruction sets. They are exact for photons that are integers, unless squares sum up beyond 2^53.

mod background;
mod candidates;
mod config;
mod connect;
mod peak;
mod rings;

use pollux_pipelines::simd::Simd;

pub use self::background::RingBackground;
use self::background::{Background, MeasureRings};
use self::candidates::{Candidates, FindCandidates};
pub use self::config::{MIN_RING_PIXELS, MIN_SAMPLES, PeakConfig, PeakError};
use self::connect::Connect;
pub use self::peak::{Peak, Peaks};
use self::rings::Rings;
use crate::{Pixel, Shape};

/// A peak finder with all its memory; one for each loop.
#[derive(Debug)]
pub struct PeakFinder {
    shape: Shape,
    simd: Simd,
    config: PeakConfig,
    rings: Rings,
    background: Background,
    candidates: Candidates,
    connect: Connect,
    peaks: Peaks,
}

impl PeakFinder {
    /// Creates a finder for images of the given shape, which uses the best instruction set of this
    /// CPU.
    ///
    /// Modules are stacked: each is `module_rows` rows of the image, and a peak is in one module.
    /// `radius` gives the distance from the beam, in pixels, of the pixel at a row and column, for
    /// example [`distance_from`]; NaN excludes a pixel.
    ///
    /// # Errors
    /// A shape or a configuration that cannot be: [`PeakError`].
    pub fn new(
        shape: Shape,
        module_rows: usize,
        radius: impl Fn(usize, usize) -> f64,
        config: PeakConfig,
    ) -> Result<Self, PeakError> {
        Self::with_simd(shape, module_rows, radius, config, Simd::best())
    }

    /// As [`new`](Self::new), with the given instruction set; the results do not depend on it.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn with_simd(
        shape: Shape,
        module_rows: usize,
        radius: impl Fn(usize, usize) -> f64,
        config: PeakConfig,
        simd: Simd,
    ) -> Result<Self, PeakError> {
        config.check()?;
        let sides = 1..=usize::from(u16::MAX);
        if !(sides.contains(&shape.rows) && sides.contains(&shape.columns)) {
            return Err(PeakError::Shape(shape));
        }
        if module_rows == 0 || !shape.rows.is_multiple_of(module_rows) {
            return Err(PeakError::Modules {
                rows: shape.rows,
                module_rows,
            });
        }
        let rings = Rings::new(shape, radius, &config)?;
        Ok(Self {
            shape,
            simd,
            background: Background::new(&rings),
            candidates: Candidates::new(shape, &rings),
            connect: Connect::new(shape, module_rows, &config),
            peaks: Peaks::with_capacity(config.max_peaks),
            rings,
            config,
        })
    }

    /// Finds the peaks in an image.
    ///
    /// # Errors
    /// An image whose number of pixels is not that of the finder's shape.
    pub fn find<P: Pixel>(&mut self, image: &[P]) -> Result<&Peaks, PeakError> {
        if image.len() != self.shape.pixels() {
            return Err(PeakError::Image {
                pixels: image.len(),
                shape: self.shape,
            });
        }
        self.simd.run(MeasureRings {
            image,
            rings: &self.rings,
            config: &self.config,
            background: &mut self.background,
        });
        self.simd.run(FindCandidates {
            image,
            columns: self.shape.columns,
            rings: &self.rings,
            background: &self.background,
            candidates: &mut self.candidates,
        });
        self.connect.run(
            image,
            &self.rings,
            &self.background,
            &mut self.candidates,
            &mut self.peaks,
        );
        Ok(&self.peaks)
    }

    /// Peaks of the last image.
    #[must_use]
    pub fn peaks(&self) -> &Peaks {
        &self.peaks
    }

    /// Background of each ring of the last image, from the beam outwards; all NaN before the first
    /// image.
    #[must_use]
    pub fn background(&self) -> &[RingBackground] {
        self.background.rings()
    }

    /// Ring of the pixel at a row and column: an index of [`background`](Self::background). `None`
    /// if the pixel is in no ring.
    #[must_use]
    pub fn ring(&self, row: usize, column: usize) -> Option<usize> {
        let pixel = row * self.shape.columns + column;
        let ring = usize::from(*self.rings.of_pixel().get(pixel)?);
        (column < self.shape.columns && ring < self.rings.len()).then_some(ring)
    }
}

/// Distance, in pixels, from a beam centre at the given row and column, in a plane: the radius of one
/// module across the beam.
pub fn distance_from(centre_row: f64, centre_column: f64) -> impl Fn(usize, usize) -> f64 {
    move |row, column| {
        let (y, x) = (row as f64 - centre_row, column as f64 - centre_column);
        (y * y + x * x).sqrt()
    }
}

#[cfg(test)]
mod tests;
