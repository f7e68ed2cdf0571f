//! Photons of a pixel as `i16`, `i32` or `f32`.

use crate::Pixel;

/// Type of converted pixels. The integers are the rounded `f32`.
pub trait Output: Pixel {
    /// A number of photons, NaN for a bad pixel or +infinity for a saturated one, as this type.
    /// Integers are rounded to the nearest, ties to even; a number below their range becomes the
    /// smallest value that is no code.
    #[must_use]
    fn from_photons(photons: f32) -> Self;

    /// The smallest value of at least so many photons; all that is above the range is saturated.
    #[must_use]
    fn threshold(photons: f32) -> Self;

    /// The smallest number of photons whose converted value reaches the threshold.
    #[must_use]
    fn least_photons(threshold: Self) -> f32;
}

impl Output for f32 {
    #[inline(always)]
    fn from_photons(photons: f32) -> Self {
        photons
    }

    fn threshold(photons: f32) -> Self {
        photons
    }

    fn least_photons(threshold: Self) -> f32 {
        threshold
    }
}

/// Integers, from floating point numbers that have all of them. The sum of such a number and `$whole`,
/// 1.5 times the power of two from which on all are whole, is rounded to a whole number, ties to even,
/// and the lowest bits hold it. Unlike a cast, all of this has instructions for vectors.
macro_rules! integer_output {
    ($type:ty, $float:ty, $whole:literal) => {
        impl Output for $type {
            #[inline(always)]
            fn from_photons(photons: f32) -> Self {
                const LARGEST: $float = <$type>::MAX as $float;
                let value = <$float>::from(photons);
                let below = if value < LARGEST { value } else { LARGEST };
                let within = if below > -LARGEST { below } else { -LARGEST };
                let rounded = (within + $whole).to_bits() as Self;
                if photons.is_nan() { Self::BAD } else { rounded }
            }

            fn threshold(photons: f32) -> Self {
                Self::from_photons(photons.ceil())
            }

            fn least_photons(threshold: Self) -> f32 {
                least_that_rounds_to(threshold.into(), Self::MAX.into())
            }
        }
    };
}

integer_output!(i16, f32, 12_582_912.0);
integer_output!(i32, f64, 6_755_399_441_055_744.0);

/// The smallest number that is rounded to a whole one or to more. All below -`largest` are converted
/// to that.
fn least_that_rounds_to(whole: f64, largest: f64) -> f32 {
    if whole <= -largest {
        return f32::NEG_INFINITY;
    }
    let half = (whole - 0.5) as f32;
    if f64::from(half).round_ties_even() < whole {
        half.next_up()
    } else {
        half
    }
}
