//! Calibration of one module.

use std::ops::RangeInclusive;

use super::map::Map;
use super::raw::{self, Gain};
use crate::Shape;

/// Magnitudes of gains that make sense, in ADU per photon. Photons of a good pixel are finite.
const MAGNITUDES: RangeInclusive<f32> = 1e-6..=1e6;

/// Pedestals and gains of all pixels of a module, and its bad pixels.
#[derive(Clone, Debug)]
pub struct Calibration {
    shape: Shape,
    pedestals: [Map; 3],
    gains: [Map; 3],
    bad: Vec<bool>,
}

/// A calibration is refused.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// A map has another number of pixels.
    #[error(
        "{map} has {pixels} pixels instead of {}, as an image of {shape} has: give the map of this \
         module",
        .shape.pixels()
    )]
    Shape {
        /// The map.
        map: String,
        /// Its number of pixels.
        pixels: usize,
        /// Shape of the module.
        shape: Shape,
    },
    /// A pedestal is not a number, or it is outside what the pixel can read.
    #[error(
        "pedestal {gain} of the pixel in row {row}, column {column} is {value} ADU in {map}, not a \
         number from 0 to 16383: correct it, or mark the pixel as bad"
    )]
    Pedestal {
        /// Gain of the pedestal.
        gain: Gain,
        /// The map.
        map: String,
        /// Row of the pixel.
        row: usize,
        /// Column of the pixel.
        column: usize,
        /// The pedestal.
        value: f32,
    },
    /// A gain is not a number, 0, or of the wrong sign.
    #[error(
        "gain {gain} of the pixel in row {row}, column {column} is {value} ADU a photon in {map}, not \
         a {} number of magnitude {:e} to {:e}: correct it, or mark the pixel as bad",
        if *gain == Gain::G0 { "positive" } else { "negative" },
        MAGNITUDES.start(),
        MAGNITUDES.end()
    )]
    Gain {
        /// The gain.
        gain: Gain,
        /// The map.
        map: String,
        /// Row of the pixel.
        row: usize,
        /// Column of the pixel.
        column: usize,
        /// Its value.
        value: f32,
    },
}

impl Calibration {
    /// Checks maps of pedestals (ADU) and gains (ADU per photon) for G0, G1 and G2. Bad pixels may
    /// have any values; `bad` is true for them.
    ///
    /// # Errors
    /// A map or the mask has another number of pixels than the shape. A good pixel has a pedestal
    /// outside 0 to 16383 ADU, or a gain that is not positive (G0) or negative (G1, G2), or absurd
    /// (a magnitude below 1e-6 or above 1e6).
    pub fn new(
        shape: Shape,
        pedestals: [Map; 3],
        gains: [Map; 3],
        bad: Vec<bool>,
    ) -> Result<Self, CalibrationError> {
        let lengths = pedestals.iter().chain(&gains);
        let lengths = lengths.map(|map| (map.name(), map.values().len()));
        for (map, pixels) in lengths.chain([("the mask of bad pixels", bad.len())]) {
            if pixels != shape.pixels() {
                let map = map.to_owned();
                return Err(CalibrationError::Shape { map, pixels, shape });
            }
        }
        let place = |pixel: usize| (pixel / shape.columns, pixel % shape.columns);
        for (gain, map) in Gain::ALL.into_iter().zip(&pedestals) {
            let range = 0.0..=f32::from(raw::ADU);
            if let Some((pixel, value)) = map.find(&bad, |value| !range.contains(&value)) {
                let (row, column) = place(pixel);
                return Err(CalibrationError::Pedestal {
                    gain,
                    map: map.name().to_owned(),
                    row,
                    column,
                    value,
                });
            }
        }
        for (gain, map) in Gain::ALL.into_iter().zip(&gains) {
            let sign = if gain == Gain::G0 { 1.0 } else { -1.0 };
            let wrong = map.find(&bad, |value| !MAGNITUDES.contains(&(sign * value)));
            if let Some((pixel, value)) = wrong {
                let (row, column) = place(pixel);
                return Err(CalibrationError::Gain {
                    gain,
                    map: map.name().to_owned(),
                    row,
                    column,
                    value,
                });
            }
        }
        Ok(Self {
            shape,
            pedestals,
            gains,
            bad,
        })
    }

    /// Shape of the module.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Pedestals of all pixels at a gain, in ADU.
    #[must_use]
    pub fn pedestals(&self, gain: Gain) -> &[f32] {
        self.pedestals[gain as usize].values()
    }

    /// Gains of all pixels, in ADU per photon.
    #[must_use]
    pub fn gains(&self, gain: Gain) -> &[f32] {
        self.gains[gain as usize].values()
    }

    /// The bad pixels: true for each of them.
    #[must_use]
    pub fn bad(&self) -> &[bool] {
        &self.bad
    }
}
