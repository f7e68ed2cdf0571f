//! Sums of pixels over many images.

use std::fmt::Debug;

use crate::Pixel;

/// A pixel that can be summed over a run.
pub trait SumPixel: Pixel {
    /// Sum over at most 65536 images or pixels.
    type Recent: Copy + Debug + Default + Send;
    /// Sum over a run.
    type Total: Copy + Debug + Default + Send;

    /// Whether the pixel is neither bad nor saturated.
    fn has_value(self) -> bool;
    /// Whether the pixel is bad.
    fn is_bad(self) -> bool;
    /// The sum and the value of this pixel; the sum alone if it has none.
    fn add_to(self, sum: Self::Recent) -> Self::Recent;
    /// Both sums together.
    fn total(recent: Self::Recent, total: Self::Total) -> Self::Total;
    /// A sum in photons.
    fn sum_photons(total: Self::Total) -> f64;
    /// The larger one. A bad pixel is the smallest and a saturated one the largest.
    #[must_use]
    fn larger(self, other: Self) -> Self;
}

macro_rules! integer {
    ($pixel:ty, $recent:ty) => {
        impl SumPixel for $pixel {
            type Recent = $recent;
            type Total = i64;

            #[inline(always)]
            fn has_value(self) -> bool {
                (self != Self::BAD) & (self != Self::SATURATED)
            }

            #[inline(always)]
            fn is_bad(self) -> bool {
                self == Self::BAD
            }

            #[inline(always)]
            fn add_to(self, sum: $recent) -> $recent {
                let value = if self.has_value() { self } else { 0 };
                sum.wrapping_add(value.into())
            }

            #[inline(always)]
            fn total(recent: $recent, total: i64) -> i64 {
                total.wrapping_add(recent.into())
            }

            #[inline(always)]
            fn sum_photons(total: i64) -> f64 {
                total as f64
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                self.max(other)
            }
        }
    };
}

integer!(i16, i32);
integer!(i32, i64);

impl SumPixel for f32 {
    type Recent = f64;
    type Total = f64;

    #[inline(always)]
    fn has_value(self) -> bool {
        self.is_finite()
    }

    #[inline(always)]
    fn is_bad(self) -> bool {
        self.is_nan()
    }

    #[inline(always)]
    fn add_to(self, sum: f64) -> f64 {
        sum + f64::from(if self.is_finite() { self } else { 0.0 })
    }

    #[inline(always)]
    fn total(recent: f64, total: f64) -> f64 {
        total + recent
    }

    #[inline(always)]
    fn sum_photons(total: f64) -> f64 {
        total
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other || other.is_nan() {
            self
        } else {
            other
        }
    }
}
