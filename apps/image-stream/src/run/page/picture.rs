//! Pictures of images: a region, downscaled, as numbers; and the levels of an image, from which its
//! colours are chosen.

use pollux_images::{Pixel as _, Shape};

/// Most pixels of a picture. A larger one is downscaled further.
pub const MOST: usize = 1 << 20;

/// Pixels of an image from which its levels are taken, at most.
const SAMPLES: usize = 1 << 16;

/// Pixels that the page shows.
pub trait Shown: Copy + Send + Sync + 'static {
    /// Its value; NaN for a bad pixel and +infinity for a saturated one. Integers above 2^24 are rounded.
    fn shown(self) -> f32;
}

macro_rules! raw {
    ($($pixel:ty: $float:expr;)*) => {
        $(
            /// Raw: gain bits and ADU, or counts.
            impl Shown for $pixel {
                #[inline(always)]
                fn shown(self) -> f32 {
                    // The value of missing packets, and an error code of JUNGFRAU.
                    if self == Self::MAX { f32::NAN } else { $float(self) }
                }
            }
        )*
    };
}

raw! { u8: f32::from; u16: f32::from; u32: |count| count as f32; }

macro_rules! photons {
    ($($pixel:ty)*) => {
        $(
            impl Shown for $pixel {
                #[inline(always)]
                fn shown(self) -> f32 {
                    self.photons()
                }
            }
        )*
    };
}

photons!(i16 i32 f32);

/// Part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub row: usize,
    pub column: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Region {
    /// The part of it that is in an image; it has at least one pixel if the image has one.
    #[must_use]
    pub fn within(self, shape: Shape) -> Self {
        let row = self.row.min(shape.rows.saturating_sub(1));
        let column = self.column.min(shape.columns.saturating_sub(1));
        Self {
            row,
            column,
            rows: self.rows.clamp(1, (shape.rows - row).max(1)),
            columns: self.columns.clamp(1, (shape.columns - column).max(1)),
        }
    }

    /// Shape of its picture.
    #[must_use]
    pub fn scaled(self, factor: usize) -> Shape {
        Shape {
            rows: self.rows.div_ceil(factor),
            columns: self.columns.div_ceil(factor),
        }
    }
}

/// Value of a square of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Square {
    /// Its largest pixel, so that a peak is seen at any scale; bad if all are bad.
    Largest,
    /// Mean of those that have a value.
    Mean,
}

/// A picture of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub region: Region,
    pub factor: usize,
    pub shape: Shape,
    pub values: Vec<f32>,
}

impl Picture {
    /// The picture of a region, in which squares of `factor` x `factor` pixels are one, or more if it
    /// would have more than [`MOST`] pixels.
    #[must_use]
    pub fn new<P: Shown>(
        pixels: &[P],
        shape: Shape,
        region: Region,
        factor: usize,
        square: Square,
    ) -> Self {
        let region = region.within(shape);
        let mut factor = factor.clamp(1, region.rows.max(region.columns));
        while region.scaled(factor).pixels() > MOST {
            factor += 1;
        }
        let scaled = region.scaled(factor);
        let mut values = Vec::with_capacity(scaled.pixels());
        let mut counts = vec![0u32; scaled.columns];
        let rows = pixels.chunks_exact(shape.columns.max(1)).skip(region.row);
        let rows: Vec<_> = rows.take(region.rows).collect();
        for band in rows.chunks(factor) {
            let from = values.len();
            values.resize(from + scaled.columns, f32::NAN);
            counts.fill(0);
            for row in band {
                let row = &row[region.column..region.column + region.columns];
                let places = values[from..].iter_mut().zip(&mut counts);
                for (pixels, (value, count)) in row.chunks(factor).zip(places) {
                    for &pixel in pixels {
                        square.add(pixel.shown(), value, count);
                    }
                }
            }
            if square == Square::Mean {
                let sums = values[from..].iter_mut().zip(&counts);
                sums.for_each(|(sum, &count)| *sum /= count as f32);
            }
        }
        Self {
            region,
            factor,
            shape: scaled,
            values,
        }
    }
}

impl Square {
    #[inline(always)]
    fn add(self, pixel: f32, value: &mut f32, count: &mut u32) {
        match self {
            // NaN is not above anything.
            Self::Largest if pixel > *value || value.is_nan() => *value = pixel,
            Self::Mean if pixel.is_finite() => {
                *value = if *count == 0 { pixel } else { *value + pixel };
                *count += 1;
            }
            _ => {}
        }
    }
}

/// Levels of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Levels {
    /// 1 % of the pixels are below.
    pub low: f32,
    /// Half of the pixels are below.
    pub middle: f32,
    /// 99.9 % of the pixels are below.
    pub high: f32,
    /// Largest pixel that has a value.
    pub largest: f32,
    /// Smallest pixel above 0.
    pub least_positive: f32,
    /// Sum of all pixels that have a value.
    pub sum: f64,
    /// Number of bad pixels.
    pub bad: usize,
    /// Number of saturated pixels.
    pub saturated: usize,
}

impl Levels {
    /// The levels of an image: low, middle and high by a sample of its pixels.
    #[must_use]
    pub fn of<P: Shown>(pixels: &[P]) -> Self {
        let mut levels = Self {
            largest: f32::NEG_INFINITY,
            least_positive: f32::INFINITY,
            ..Self::default()
        };
        for value in pixels.iter().map(|pixel| pixel.shown()) {
            if value.is_nan() {
                levels.bad += 1;
            } else if value.is_infinite() {
                levels.saturated += 1;
            } else {
                levels.sum += f64::from(value);
                levels.largest = levels.largest.max(value);
                if value > 0.0 {
                    levels.least_positive = levels.least_positive.min(value);
                }
            }
        }
        // An odd step: not always the same columns.
        let step = (pixels.len() / SAMPLES) | 1;
        let sample = pixels.iter().step_by(step).map(|pixel| pixel.shown());
        let mut sample: Vec<f32> = sample.filter(|value| value.is_finite()).collect();
        sample.sort_unstable_by(f32::total_cmp);
        let at = |share: f64| {
            let place = (sample.len() as f64 * share) as usize;
            sample.get(place).or(sample.last()).copied()
        };
        [levels.low, levels.middle, levels.high] =
            [0.01, 0.5, 0.999].map(|share| at(share).unwrap_or_default());
        for bound in [&mut levels.largest, &mut levels.least_positive] {
            if bound.is_infinite() {
                *bound = 0.0;
            }
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn naive(pixels: &[i16], of: Shape, region: Region, factor: usize, square: Square) -> Vec<f32> {
        let mut picture = Vec::new();
        for row in (region.row..region.row + region.rows).step_by(factor) {
            for column in (region.column..region.column + region.columns).step_by(factor) {
                let mut values = Vec::new();
                for r in row..(row + factor).min(region.row + region.rows) {
                    for c in column..(column + factor).min(region.column + region.columns) {
                        values.push(pixels[r * of.columns + c].photons());
                    }
                }
                let finite = values.iter().filter(|value| value.is_finite());
                picture.push(match square {
                    Square::Largest => values.iter().fold(f32::NAN, |a, &b| a.max(b)),
                    Square::Mean => finite.clone().sum::<f32>() / finite.count() as f32,
                });
            }
        }
        picture
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        let same_nan = |v: &f32| if v.is_nan() { f32::NAN } else { *v };
        values.iter().map(|v| same_nan(v).to_bits()).collect()
    }

    proptest! {
        #[test]
        fn a_picture_is_that_of_its_pixels(
            (rows, columns) in (1usize..40, 1usize..40),
            (row, column) in (0usize..50, 0usize..50),
            (high, wide) in (0usize..60, 0usize..60),
            factor in 1usize..50,
            pixels in proptest::collection::vec(
                prop_oneof![-5i16..100, Just(i16::BAD), Just(i16::SATURATED)], 1600),
        ) {
            let shape = Shape { rows, columns };
            let pixels = &pixels[..shape.pixels()];
            let region = Region { row, column, rows: high, columns: wide };
            let inside = region.within(shape);
            prop_assert!(inside.rows > 0 && inside.row + inside.rows <= rows);
            prop_assert!(inside.columns > 0 && inside.column + inside.columns <= columns);
            for square in [Square::Largest, Square::Mean] {
                let picture = Picture::new(pixels, shape, region, factor, square);
                let expected = naive(pixels, shape, inside, picture.factor, square);
                prop_assert_eq!(picture.shape.pixels(), expected.len());
                prop_assert_eq!(bits(&picture.values), bits(&expected));
            }
        }
    }

    #[test]
    fn a_picture_is_bounded() {
        let shape = Shape {
            rows: 4096,
            columns: 1030,
        };
        let pixels = vec![1u16; shape.pixels()];
        let all = Region {
            row: 0,
            column: 0,
            rows: usize::MAX,
            columns: usize::MAX,
        };
        let picture = Picture::new(&pixels, shape, all, 1, Square::Largest);
        assert_eq!(picture.factor, 3);
        assert!(picture.values.len() <= MOST);
        let far = Picture::new(&pixels, shape, all, usize::MAX, Square::Mean);
        assert_eq!(
            (far.values.len(), far.values[0].to_bits()),
            (1, 1f32.to_bits())
        );
    }

    #[test]
    fn levels_are_of_the_pixels_that_have_a_value() {
        let mut pixels: Vec<i16> = (0..1000).collect();
        pixels.extend([i16::BAD, i16::BAD, i16::SATURATED]);
        let levels = Levels::of(&pixels);
        let expected = Levels {
            low: 10.0,
            middle: 500.0,
            high: 999.0,
            largest: 999.0,
            least_positive: 1.0,
            sum: 499_500.0,
            bad: 2,
            saturated: 1,
        };
        assert_eq!(levels, expected);
        assert_eq!(Levels::of(&[i16::BAD]).bad, 1);
        assert_eq!(Levels::of::<f32>(&[]), Levels::default());
    }
}
