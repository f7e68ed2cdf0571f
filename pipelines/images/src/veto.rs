//! Veto of images without Bragg peaks: pixels above a threshold are counted.
//!
//! "A first threshold defines the signal needed for a pixel to be counted as a Bragg's peak, while a
//! second threshold defines the minimum number of such pixels in an image to be accepted" (R. Ponsard,
//! "High Throughput, Low Latency Online Image Processing by GPU/FPGA Coprocessors using RDMA
//! Techniques", 2020, section 4.2.2). A saturated pixel counts, a bad one does not.
//!
//! [`Converter::convert_and_mark`](crate::convert::Converter::convert_and_mark) counts while it
//! converts, packet by packet; [`Veto::count`] counts the pixels of an image that is already converted.

use pollux_pipelines::simd::{Kernel, Lanes, Simd};
use serde::{Deserialize, Serialize};

use crate::convert::Output;

/// The two thresholds of a veto.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VetoConfig {
    /// Signal of a pixel that counts, in photons.
    pub min_photons: f32,
    /// Number of such pixels in an image that is accepted.
    pub min_pixels: usize,
}

/// A veto is refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum VetoError {
    /// The threshold is no number.
    #[error("min_photons is {0}: set a finite number of photons")]
    Photons(f32),
}

/// Judges images by their number of intense pixels.
#[derive(Clone, Debug)]
pub struct Veto {
    cfg: VetoConfig,
    simd: Simd,
}

impl Veto {
    /// Creates a veto that uses the best instruction set of this CPU.
    ///
    /// # Errors
    /// A threshold that is not finite.
    pub fn new(cfg: VetoConfig) -> Result<Self, VetoError> {
        Self::with_simd(cfg, Simd::best())
    }

    /// As [`new`](Self::new), with the given instruction set; the results do not depend on it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_simd(cfg: VetoConfig, simd: Simd) -> Result<Self, VetoError> {
        if cfg.min_photons.is_finite() {
            Ok(Self { cfg, simd })
        } else {
            Err(VetoError::Photons(cfg.min_photons))
        }
    }

    /// The threshold of a pixel, in photons.
    #[must_use]
    pub fn min_photons(&self) -> f32 {
        self.cfg.min_photons
    }

    /// Number of pixels at or above the threshold.
    #[must_use]
    pub fn count<P: Output>(&self, image: &[P]) -> usize {
        self.simd.run(Count {
            image,
            threshold: P::threshold(self.cfg.min_photons),
        })
    }

    /// Whether an image with so many pixels at or above the threshold is accepted.
    #[must_use]
    pub fn accepts(&self, count: usize) -> bool {
        count >= self.cfg.min_pixels
    }
}

/// Counts the pixels of an image.
struct Count<'a, P> {
    image: &'a [P],
    threshold: P,
}

impl<P: Output> Kernel for Count<'_, P> {
    type Out = usize;

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Isa) -> usize {
        /// Pixels between two sums: counts of 16 bits suffice, and so are as wide as an `i16`.
        const CHUNK: usize = 1024;
        let counts = self.image.chunks(CHUNK).map(|pixels| {
            // A bad pixel is below every threshold, or cannot be compared.
            let marks = pixels
                .iter()
                .map(|&pixel| u16::from(pixel >= self.threshold));
            usize::from(marks.sum::<u16>())
        });
        counts.sum()
    }
}

#[cfg(test)]
mod tests;
