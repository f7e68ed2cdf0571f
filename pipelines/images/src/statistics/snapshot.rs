//! Downscaled pictures of the statistics.

use super::images::{ImageStatistics, StatisticsError, check};
use super::sum::SumPixel;
use crate::{Pixel, Shape};

/// Contents of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Mean over all images and over the pixels of a square, each value with the same weight.
    Mean,
    /// Maximum over all images and over the pixels of a square.
    Maximum,
}

/// A picture of the statistics, in which a square of pixels is one. It is computed a few rows at a
/// time, in between the images, and takes no memory after it was made.
#[derive(Debug)]
pub struct Snapshot {
    of: Shape,
    shape: Shape,
    factor: usize,
    view: View,
    values: Vec<f32>,
    /// Rows that are computed.
    rows: usize,
}

impl Snapshot {
    /// A picture of images of shape `of`, in which squares of `factor` x `factor` pixels are one. At
    /// the lower and right border of an image that is no multiple of it, they have fewer pixels.
    ///
    /// # Errors
    /// A shape without pixels, or a factor of 0 or above both sides.
    pub fn new(of: Shape, factor: usize, view: View) -> Result<Self, StatisticsError> {
        check(of)?;
        if !(1..=of.rows.max(of.columns)).contains(&factor) {
            return Err(StatisticsError::Factor { factor, shape: of });
        }
        let shape = Shape {
            rows: of.rows.div_ceil(factor),
            columns: of.columns.div_ceil(factor),
        };
        Ok(Self {
            of,
            shape,
            factor,
            view,
            values: vec![f32::BAD; shape.pixels()],
            rows: 0,
        })
    }

    /// Begins again with the first row.
    pub fn restart(&mut self) {
        self.rows = 0;
    }

    /// Computes up to `rows` further rows, each from `factor` rows of the statistics; returns whether
    /// all are computed. A row shows the images up to this call. Statistics of another shape change
    /// nothing.
    pub fn step<P: SumPixel>(&mut self, statistics: &ImageStatistics<P>, rows: usize) -> bool {
        if statistics.shape() != self.of {
            return false;
        }
        let end = self.rows.saturating_add(rows).min(self.shape.rows);
        for row in self.rows..end {
            for column in 0..self.shape.columns {
                let value = match self.view {
                    View::Mean => self.mean(statistics, row, column),
                    View::Maximum => self.maximum(statistics, row, column),
                };
                if let Some(place) = self.values.get_mut(row * self.shape.columns + column) {
                    *place = value;
                }
            }
        }
        self.rows = end;
        self.is_complete()
    }

    /// Whether all rows are computed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.rows == self.shape.rows
    }

    /// Shape of the picture.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The picture, in photons: NaN where no image had a value, +infinity where the maximum is
    /// saturated. Rows that are not computed again yet are those of the last picture.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Pixels of a square.
    #[inline]
    fn square(&self, row: usize, column: usize) -> impl Iterator<Item = usize> {
        let (factor, of) = (self.factor, self.of);
        let columns = column * factor..((column + 1) * factor).min(of.columns);
        let rows = row * factor..((row + 1) * factor).min(of.rows);
        rows.flat_map(move |row| columns.clone().map(move |column| row * of.columns + column))
    }

    #[inline]
    fn mean<P: SumPixel>(&self, of: &ImageStatistics<P>, row: usize, column: usize) -> f32 {
        let sums = self.square(row, column).filter_map(|pixel| of.sum(pixel));
        let (sum, n) = sums.fold((0.0, 0), |(sum, n), (more, images)| {
            (sum + more, n + images)
        });
        if n == 0 {
            f32::BAD
        } else {
            (sum / n as f64) as f32
        }
    }

    #[inline]
    fn maximum<P: SumPixel>(&self, of: &ImageStatistics<P>, row: usize, column: usize) -> f32 {
        let maxima = self
            .square(row, column)
            .filter_map(|pixel| of.maximum().get(pixel));
        maxima.fold(f32::BAD, |largest, pixel| pixel.photons().larger(largest))
    }
}
