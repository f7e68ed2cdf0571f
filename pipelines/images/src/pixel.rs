//! Shape of an image, and the values of its pixels.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Rows and columns of an image. Pixels are stored row by row, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Number of rows.
    pub rows: usize,
    /// Pixels of a row.
    pub columns: usize,
}

impl Shape {
    /// A JUNGFRAU module as it is read out: eight chips of 256 x 256 pixels, without the gaps between
    /// them.
    pub const JUNGFRAU_MODULE: Self = Self {
        rows: 512,
        columns: 1024,
    };

    /// Number of pixels.
    #[must_use]
    pub const fn pixels(self) -> usize {
        self.rows * self.columns
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.rows, self.columns)
    }
}

/// Value of a converted pixel: a number of photons, or one of two codes.
///
/// | type | unit | bad pixel | saturated pixel |
/// | --- | --- | --- | --- |
/// | `i16` | photons, rounded to the nearest integer, ties to even | -32768 | 32767 |
/// | `i32` | photons, rounded to the nearest integer, ties to even | -2147483648 | 2147483647 |
/// | `f32` | photons | NaN | +infinity |
///
/// A bad pixel has no value: it is masked, its gain bits are invalid, or its packet was lost. A
/// saturated pixel has received more than can be measured. Integers that a photon number does not fit
/// into are saturated too.
pub trait Pixel: Copy + PartialEq + PartialOrd + fmt::Debug + Send + Sync + 'static {
    /// Code of a bad pixel.
    const BAD: Self;
    /// Code of a saturated pixel.
    const SATURATED: Self;

    /// Number of photons; NaN for a bad pixel and +infinity for a saturated one.
    fn photons(self) -> f32;

    /// Whether the pixel has a number of photons: it is neither bad nor saturated.
    #[must_use]
    #[inline(always)]
    fn is_valid(self) -> bool {
        self.photons().is_finite()
    }
}

macro_rules! integer_pixel {
    ($type:ty) => {
        // An `i16` fits, an `i32` is rounded.
        #[allow(clippy::cast_lossless)]
        impl Pixel for $type {
            const BAD: Self = <$type>::MIN;
            const SATURATED: Self = <$type>::MAX;

            #[inline(always)]
            fn photons(self) -> f32 {
                match self {
                    Self::BAD => f32::NAN,
                    Self::SATURATED => f32::INFINITY,
                    value => value as f32,
                }
            }
        }
    };
}

integer_pixel!(i16);
integer_pixel!(i32);

impl Pixel for f32 {
    const BAD: Self = Self::NAN;
    const SATURATED: Self = Self::INFINITY;

    #[inline(always)]
    fn photons(self) -> f32 {
        self
    }
}
