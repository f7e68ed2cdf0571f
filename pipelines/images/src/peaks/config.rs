//! Configuration of the peak finder.

use serde::{Deserialize, Serialize};

use crate::Shape;

/// Minimum number of pixels of a ring: bins with fewer are joined.
pub const MIN_RING_PIXELS: usize = 32;
/// Minimum number of values of which a background is computed.
pub const MIN_SAMPLES: u32 = 8;

/// Criteria of a peak. The steps that use them are defined in the [module](super).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeakConfig {
    /// Width of a bin of radius, in pixels.
    pub ring_width: f64,
    /// Minimum distance from the beam, in pixels.
    pub min_radius: f64,
    /// Maximum distance from the beam, in pixels; may be infinite.
    pub max_radius: f64,
    /// Maximum number of pixels of a ring of which its background is computed, at least 32. More
    /// take more time; 1024 give the mean to 3 % of the standard deviation.
    pub ring_samples: u32,
    /// Half the width of the range of values that a background is computed of, in standard
    /// deviations, at least 1.
    pub clip_sigma: f64,
    /// Maximum number of times that outliers are removed, 0 to 100.
    pub clip_iterations: u32,
    /// Minimum standard deviation of a background, in photons: what readout and rounding add to a
    /// pixel.
    pub noise: f64,
    /// Threshold of a pixel above the mean of its ring, in standard deviations.
    pub pixel_snr: f64,
    /// Minimum number of photons of a pixel of a peak.
    pub min_photons: f64,
    /// Minimum number of pixels of a peak.
    pub min_pixels: u32,
    /// Maximum number of pixels of a peak.
    pub max_pixels: u32,
    /// Minimum significance of a peak.
    pub min_snr: f64,
    /// Inner radius of the local background, in pixels; pixels at this distance are not in it.
    pub local_inner: u16,
    /// Outer radius of the local background, in pixels, above the inner one and at most 64.
    pub local_outer: u16,
    /// Number of photons that a saturated pixel counts as.
    pub saturation: f64,
    /// Maximum number of peaks in the list of an image, at most 65536.
    pub max_peaks: usize,
}

impl Default for PeakConfig {
    fn default() -> Self {
        Self {
            ring_width: 1.0,
            min_radius: 0.0,
            max_radius: f64::INFINITY,
            ring_samples: 1024,
            clip_sigma: 4.0,
            clip_iterations: 5,
            noise: 0.3,
            pixel_snr: 5.0,
            min_photons: 3.0,
            min_pixels: 2,
            max_pixels: 200,
            min_snr: 5.0,
            local_inner: 3,
            local_outer: 5,
            saturation: 10_000.0,
            max_peaks: 2048,
        }
    }
}

/// Why a finder cannot be made, or an image not be searched.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PeakError {
    /// A side of the image is out of range.
    #[error("shape {0}: rows and columns must be 1 to 65535")]
    Shape(Shape),
    /// The image is not a stack of whole modules.
    #[error(
        "{module_rows} rows per module do not divide the {rows} rows of the image: use the rows of \
         one module"
    )]
    Modules {
        /// Rows of the image.
        rows: usize,
        /// Rows of a module.
        module_rows: usize,
    },
    /// No pixel is in a ring.
    #[error("no pixel has a radius of {min} to {max} pixels: check the beam centre and the limits")]
    NoPixels {
        /// Minimum radius, in pixels.
        min: f64,
        /// Maximum radius, in pixels.
        max: f64,
    },
    /// The rings cannot be numbered.
    #[error(
        "radius {radius} is beyond bin 65534 of {width} pixels: use wider rings, or max_radius"
    )]
    Rings {
        /// A radius, in pixels.
        radius: f64,
        /// Width of a ring, in pixels.
        width: f64,
    },
    /// An option is out of range.
    #[error("{name} is {value}: it must be {range}")]
    Option {
        /// Name of the option.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The values that are allowed.
        range: &'static str,
    },
    /// An image of another size.
    #[error("image of {pixels} pixels: the finder was made for {shape}")]
    Image {
        /// Pixels of the image.
        pixels: usize,
        /// Shape of the finder's images.
        shape: Shape,
    },
}

impl PeakConfig {
    /// Checks the values and their combinations.
    ///
    /// # Errors
    /// The first option that is out of range.
    pub fn check(&self) -> Result<(), PeakError> {
        let positive = |v: f64| v > 0.0 && v.is_finite();
        let not_negative = |v: f64| v >= 0.0 && v.is_finite();
        let (inner, outer) = (self.local_inner, self.local_outer);
        let options = [
            (
                "ring_width",
                self.ring_width,
                positive(self.ring_width),
                "positive",
            ),
            (
                "min_radius",
                self.min_radius,
                not_negative(self.min_radius),
                "0 or more",
            ),
            (
                "max_radius",
                self.max_radius,
                self.max_radius > self.min_radius,
                "above min_radius",
            ),
            (
                "ring_samples",
                self.ring_samples.into(),
                self.ring_samples >= 32,
                "32 or more",
            ),
            (
                "clip_sigma",
                self.clip_sigma,
                self.clip_sigma >= 1.0 && self.clip_sigma.is_finite(),
                "1 or more",
            ),
            (
                "clip_iterations",
                self.clip_iterations.into(),
                self.clip_iterations <= 100,
                "0 to 100",
            ),
            ("noise", self.noise, positive(self.noise), "positive"),
            (
                "pixel_snr",
                self.pixel_snr,
                positive(self.pixel_snr),
                "positive",
            ),
            (
                "min_photons",
                self.min_photons,
                not_negative(self.min_photons),
                "0 or more",
            ),
            (
                "min_pixels",
                self.min_pixels.into(),
                self.min_pixels >= 1,
                "1 or more",
            ),
            (
                "max_pixels",
                self.max_pixels.into(),
                self.max_pixels >= self.min_pixels,
                "min_pixels or more",
            ),
            (
                "min_snr",
                self.min_snr,
                not_negative(self.min_snr),
                "0 or more",
            ),
            (
                "local_outer",
                outer.into(),
                inner < outer && outer <= 64,
                "above local_inner and at most 64",
            ),
            (
                "saturation",
                self.saturation,
                positive(self.saturation),
                "positive",
            ),
            (
                "max_peaks",
                self.max_peaks as f64,
                (1..=1 << 16).contains(&self.max_peaks),
                "1 to 65536",
            ),
        ];
        match options.into_iter().find(|&(.., valid, _)| !valid) {
            Some((name, value, _, range)) => Err(PeakError::Option { name, value, range }),
            None => Ok(()),
        }
    }
}
