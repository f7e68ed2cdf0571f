//! `Integrator`: integrates the images of one detector.

use pollux_pipelines::simd::Simd;

use super::config::{IntegrationConfig, IntegrationError, MAX_PIXELS};
use super::curve::{Curve, Sums};
use super::geometry::{Geometry, Placed, polarisation};
use super::kernel::{Add, Record, Variance};
use super::table::{CHUNK, Pixels, Table};
use crate::{Pixel, Shape};

/// Integrates the images of one detector.
pub struct Integrator {
    simd: Simd,
    pixels: usize,
    table: Table,
    /// Of each pixel: solid angle times polarisation.
    normalisation: Vec<f32>,
    radial: Vec<f64>,
    records: Box<[Record; CHUNK]>,
    sums: Vec<Sums>,
    curve: Curve,
}

impl Integrator {
    /// Computes the shares of the pixels in the bins. `mask` is true for pixels that are excluded
    /// from all images.
    ///
    /// That takes some 0.1 us and 8 bytes a pixel; with splitting into bins of a pixel's width, some
    /// 0.2 us and 25 bytes.
    ///
    /// # Errors
    /// The configuration or the geometry is out of range, the mask is of another size or excludes
    /// all pixels, or the bins are so narrow that the table would be too large.
    pub fn new(
        shape: Shape,
        geometry: &Geometry,
        config: &IntegrationConfig,
        mask: Option<&[bool]>,
    ) -> Result<Self, IntegrationError> {
        Self::with_simd(Simd::best(), shape, geometry, config, mask)
    }

    /// As [`new`](Self::new), with a given set of instructions. Results do not depend on it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_simd(
        simd: Simd,
        shape: Shape,
        geometry: &Geometry,
        config: &IntegrationConfig,
        mask: Option<&[bool]>,
    ) -> Result<Self, IntegrationError> {
        config.check(geometry)?;
        let pixels = shape.rows.saturating_mul(shape.columns);
        if !(1..=MAX_PIXELS).contains(&pixels) {
            return Err(IntegrationError::Shape(shape));
        }
        if let Some(mask) = mask.filter(|mask| mask.len() != pixels) {
            return Err(IntegrationError::Mask(mask.len(), pixels));
        }
        let placed = Placed::new(geometry);
        let of = |pixel| normalisation(&placed, config, shape, pixel);
        let normalisation: Vec<f32> = (0..pixels).map(of).collect();
        let is_used = |pixel: usize| {
            // A pixel that the polarisation leaves nothing has no mean.
            mask.is_none_or(|mask| !mask[pixel]) && normalisation[pixel] > 0.0
        };
        let pixels_placed = Pixels {
            shape,
            placed: &placed,
            is_used: &is_used,
        };
        let (table, bins) = pixels_placed.table(config)?;
        let scale = config.unit.scale();
        Ok(Self {
            simd,
            pixels,
            table,
            radial: (0..config.bins)
                .map(|bin| bins.centre(bin) * scale)
                .collect(),
            normalisation,
            records: Box::new([[0.0; 4]; CHUNK]),
            sums: vec![[0.0; 4]; config.bins],
            curve: Curve::new(config.bins),
        })
    }

    /// Whether no pixel is in a bin: all curves are 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Radial coordinate of the middle of each bin, in the configured unit.
    #[must_use]
    pub fn radial(&self) -> &[f64] {
        &self.radial
    }

    /// Integrates an image. Bad and saturated pixels do not count.
    ///
    /// # Errors
    /// The image or the variance has another size than the detector.
    pub fn integrate<P: Pixel>(
        &mut self,
        image: &[P],
        variance: Variance,
    ) -> Result<&Curve, IntegrationError> {
        if image.len() != self.pixels {
            return Err(IntegrationError::Image(image.len(), self.pixels));
        }
        if let Variance::Image(of) = variance
            && of.len() != self.pixels
        {
            return Err(IntegrationError::Variance(of.len(), self.pixels));
        }
        self.sums.fill([0.0; 4]);
        let (normalisation, records, sums) = (
            &self.normalisation[..],
            &mut *self.records,
            &mut self.sums[..],
        );
        match &self.table {
            Table::Whole(shares) => self.simd.run(Add {
                image,
                variance,
                normalisation,
                shares,
                records,
                sums,
            }),
            Table::Parts(shares) => self.simd.run(Add {
                image,
                variance,
                normalisation,
                shares,
                records,
                sums,
            }),
        }
        self.curve.set(&self.sums);
        Ok(&self.curve)
    }
}

/// Normalisation of a pixel, by its number.
fn normalisation(placed: &Placed, config: &IntegrationConfig, shape: Shape, pixel: usize) -> f32 {
    let (row, column) = (pixel / shape.columns, pixel % shape.columns);
    let (row, column) = (row as f64 + 0.5, column as f64 + 0.5);
    let mut product = 1.0;
    if config.solid_angle {
        product *= placed.solid_angle(row, column);
    }
    if let Some(factor) = config.polarisation {
        product *= polarisation(factor, placed.position(row, column));
    }
    product as f32
}
