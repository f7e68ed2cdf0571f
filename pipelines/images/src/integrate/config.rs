//! Configuration of an azimuthal integration, and its errors.

use serde::{Deserialize, Serialize};

use super::geometry::{Geometry, RadialUnit};
use crate::Shape;

/// Maximum number of bins.
pub const MAX_BINS: usize = 1 << 16;
/// Maximum number of pixels of an image.
pub const MAX_PIXELS: usize = 1 << 28;

/// Bins that a pixel counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// The bin that its centre is in.
    #[default]
    No,
    /// All bins that its quadrilateral in (radial coordinate, azimuth) covers, by the area in each.
    /// A pixel across an end of the range counts in full for the bins that it has inside.
    Full,
}

/// Options of an azimuthal integration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IntegrationConfig {
    /// Radial coordinate.
    pub unit: RadialUnit,
    /// Number of bins, 1 to [`MAX_BINS`].
    pub bins: usize,
    /// First and last value of the radial coordinate, in its unit. Without a range, it is that of
    /// the pixels that are not masked: of their centres or, with [`Split::Full`], corners.
    pub range: Option<(f64, f64)>,
    /// Bins that a pixel counts for.
    pub split: Split,
    /// Whether pixels are normalised by the solid angle that they see: cos^3 of the angle of
    /// incidence.
    pub solid_angle: bool,
    /// Polarisation factor of the beam, -1 to 1, that pixels are normalised by: 1 is polarised
    /// along axis 2, horizontally; 0 is not polarised. Without a factor there is no correction.
    pub polarisation: Option<f64>,
}

impl Default for IntegrationConfig {
    fn default() -> Self {
        Self {
            unit: RadialUnit::QPerNm,
            bins: 1000,
            range: None,
            split: Split::No,
            solid_angle: true,
            polarisation: None,
        }
    }
}

/// Why an integration is refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum IntegrationError {
    /// A value of the geometry is out of range.
    #[error("geometry: {name} is {value}: it must be {must}")]
    Geometry {
        /// Name of the field.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Values that are accepted.
        must: &'static str,
    },
    /// q needs a wavelength.
    #[error("geometry: no wavelength, which q needs: set it, or choose 2th_rad, 2th_deg or r_mm")]
    NoWavelength,
    /// The number of bins is out of range.
    #[error("{0} bins: there must be 1 to {MAX_BINS}")]
    Bins(usize),
    /// The range is empty, or not finite.
    #[error("radial range {0} to {1}: it must be finite and ascending")]
    Range(f64, f64),
    /// The polarisation factor is out of range.
    #[error("polarisation factor {0}: it must be -1 to 1")]
    Polarisation(f64),
    /// The image has no pixels, or too many.
    #[error("an image of {0}: it must have 1 to {MAX_PIXELS} pixels")]
    Shape(Shape),
    /// The mask has another size than the image.
    #[error("mask of {0} pixels for images of {1}: give the mask of this detector")]
    Mask(usize, usize),
    /// The mask excludes all pixels.
    #[error("the mask excludes all pixels: without a radial range, one must be left")]
    AllMasked,
    /// Pixels cover too many bins.
    #[error(
        "more than {0} shares of pixels in bins: choose fewer bins, a wider range or split = no"
    )]
    Shares(usize),
    /// The image has another size than those that the integration was made for.
    #[error("image of {0} pixels instead of {1}: integrate images of the configured detector")]
    Image(usize, usize),
    /// The variance has another size than the image.
    #[error("variance of {0} pixels instead of {1}: give the variance of each pixel")]
    Variance(usize, usize),
}

impl Geometry {
    /// Checks the values.
    ///
    /// # Errors
    /// [`IntegrationError::Geometry`] for the first value that is out of range.
    pub fn check(&self) -> Result<(), IntegrationError> {
        let lengths = [
            ("dist", self.dist),
            ("pixel1", self.pixel1),
            ("pixel2", self.pixel2),
            ("wavelength", self.wavelength.unwrap_or(1.0)),
        ];
        for (name, value) in lengths {
            // Beyond that, squares are not finite.
            if !(1e-100..1e100).contains(&value) {
                let must = "a positive length in m";
                return Err(IntegrationError::Geometry { name, value, must });
            }
        }
        let others = [
            ("poni1", self.poni1),
            ("poni2", self.poni2),
            ("rot1", self.rot1),
            ("rot2", self.rot2),
            ("rot3", self.rot3),
        ];
        for (name, value) in others {
            if !(-1e100..1e100).contains(&value) {
                let must = "a number, in m or rad";
                return Err(IntegrationError::Geometry { name, value, must });
            }
        }
        Ok(())
    }
}

impl IntegrationConfig {
    /// Checks the values and their combinations.
    ///
    /// # Errors
    /// The first [`IntegrationError`] that applies.
    pub fn check(&self, geometry: &Geometry) -> Result<(), IntegrationError> {
        geometry.check()?;
        if self.unit.needs_wavelength() && geometry.wavelength.is_none() {
            return Err(IntegrationError::NoWavelength);
        }
        if !(1..=MAX_BINS).contains(&self.bins) {
            return Err(IntegrationError::Bins(self.bins));
        }
        if let Some((low, high)) = self.range {
            let is_finite = low.is_finite() && high.is_finite();
            if !(is_finite && low < high) {
                return Err(IntegrationError::Range(low, high));
            }
        }
        match self.polarisation {
            Some(factor) if !(-1.0..=1.0).contains(&factor) => {
                Err(IntegrationError::Polarisation(factor))
            }
            _ => Ok(()),
        }
    }
}
