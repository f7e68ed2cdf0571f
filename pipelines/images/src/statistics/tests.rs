use pollux_pipelines::simd::Simd;
use pollux_pmd_testkit::guard::listen;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::{Pixel, Shape};

#[test]
fn hit_rates_are_of_all_images_and_of_the_last() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for window in [1, 2, 63, 64, 65, 200] {
        let mut rate = HitRate::new(window);
        assert_eq!((rate.rate(), rate.recent_rate()), (None, None));
        let mut all = Vec::new();
        for i in 0..500 {
            let kept = rng.random_bool(if i < 250 { 0.9 } else { 0.1 });
            all.push(kept);
            rate.record(kept);
            let share = |images: &[bool]| {
                Some(images.iter().filter(|&&kept| kept).count() as f64 / images.len() as f64)
            };
            assert_eq!(rate.rate(), share(&all));
            assert_eq!(
                rate.recent_rate(),
                share(&all[all.len().saturating_sub(window)..])
            );
        }
        assert_eq!(rate.images(), 500);
        assert_eq!(rate.kept(), all.iter().filter(|&&kept| kept).count() as u64);
    }
    // Out of range.
    HitRate::new(0).record(true);
}

/// What all images have been, in double precision and one pixel at a time.
struct Plain {
    sums: Vec<f64>,
    values: Vec<u64>,
    maxima: Vec<f32>,
    photons: f64,
    last: LastImage,
}

impl Plain {
    fn of<P: Pixel>(images: &[Vec<P>], pixels: usize) -> Self {
        let mut plain = Self {
            sums: vec![0.0; pixels],
            values: vec![0; pixels],
            maxima: vec![f32::NAN; pixels],
            photons: 0.0,
            last: LastImage::default(),
        };
        for image in images {
            plain.last = LastImage::default();
            for (i, pixel) in image.iter().enumerate() {
                let value = pixel.photons();
                // The larger of a number and NaN is the number.
                plain.maxima[i] = plain.maxima[i].max(value);
                if value.is_nan() {
                    plain.last.bad += 1;
                } else if value.is_infinite() {
                    plain.last.saturated += 1;
                } else {
                    plain.sums[i] += f64::from(value);
                    plain.values[i] += 1;
                    plain.last.photons += f64::from(value);
                }
            }
            plain.photons += plain.last.photons;
        }
        plain
    }

    fn picture(&self, of: Shape, factor: usize, view: View) -> Vec<f32> {
        let mut picture = Vec::new();
        for row in (0..of.rows).step_by(factor) {
            for column in (0..of.columns).step_by(factor) {
                let (mut sum, mut n, mut largest) = (0.0, 0, f32::NAN);
                for pixel in 0..of.pixels() {
                    let (r, c) = (pixel / of.columns, pixel % of.columns);
                    if r / factor == row / factor && c / factor == column / factor {
                        sum += self.sums[pixel];
                        n += self.values[pixel];
                        largest = largest.max(self.maxima[pixel]);
                    }
                }
                picture.push(match view {
                    View::Mean => (sum / n as f64) as f32,
                    View::Maximum => largest,
                });
            }
        }
        picture
    }
}

fn bits(values: impl IntoIterator<Item = f32>) -> Vec<u32> {
    let same_nan = |v: f32| if v.is_nan() { f32::NAN } else { v };
    values.into_iter().map(|v| same_nan(v).to_bits()).collect()
}

fn compare<P: SumPixel>(shape: Shape, images: &[Vec<P>], factor: usize, rows: usize) {
    let plain = Plain::of(images, shape.pixels());
    for simd in Simd::all() {
        let mut statistics = ImageStatistics::with_simd(shape, simd).unwrap();
        let mut last = LastImage::default();
        for image in images {
            last = statistics.add(image).unwrap();
        }
        assert_eq!(
            (last, statistics.last()),
            (plain.last, plain.last),
            "{simd:?}"
        );
        assert_eq!(statistics.images(), images.len() as u64);
        assert_eq!(
            statistics.photons().to_bits(),
            plain.photons.to_bits(),
            "{simd:?}"
        );
        for pixel in 0..shape.pixels() {
            let expected = (plain.sums[pixel], plain.values[pixel]);
            assert_eq!(statistics.sum(pixel), Some(expected), "{simd:?} {pixel}");
        }
        assert_eq!(statistics.sum(shape.pixels()), None);
        let maxima = statistics.maximum().iter().map(|pixel| pixel.photons());
        assert_eq!(bits(maxima), bits(plain.maxima.iter().copied()), "{simd:?}");

        for view in [View::Mean, View::Maximum] {
            let mut snapshot = Snapshot::new(shape, factor, view).unwrap();
            let mut steps = 0;
            while !snapshot.step(&statistics, rows) {
                steps += 1;
                assert!(!snapshot.is_complete() && steps < shape.rows);
            }
            assert_eq!(steps + 1, snapshot.shape().rows.div_ceil(rows));
            let expected = plain.picture(shape, factor, view);
            assert_eq!(snapshot.shape().pixels(), expected.len());
            assert_eq!(
                bits(snapshot.values().iter().copied()),
                bits(expected),
                "{view:?}"
            );
        }
        statistics.reset();
        assert_eq!(
            (statistics.images(), statistics.last()),
            (0, LastImage::default())
        );
        assert!((0..shape.pixels()).all(|pixel| statistics.sum(pixel) == Some((0.0, 0))));
    }
}

/// Numbers of photons, or codes: NaN and infinity.
fn photons(seed: u64, count: usize, most: f64) -> Vec<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let odd = [0.0, 0.001, 0.2][rng.random_range(0..3)];
    let mut value = || {
        if rng.random_bool(odd) {
            [f64::NAN, f64::INFINITY][usize::from(rng.random_bool(0.5))]
        } else {
            rng.random_range(-most..most).round()
        }
    };
    (0..count).map(|_| value()).collect()
}

fn as_i16(value: f64) -> i16 {
    match value {
        v if v.is_nan() => i16::BAD,
        v if v.is_infinite() => i16::SATURATED,
        v => v as i16,
    }
}

fn as_i32(value: f64) -> i32 {
    match value {
        v if v.is_nan() => i32::BAD,
        v if v.is_infinite() => i32::SATURATED,
        v => v as i32,
    }
}

fn of<P>(images: &[Vec<f64>], pixel: impl Fn(f64) -> P) -> Vec<Vec<P>> {
    let pixels = |image: &Vec<f64>| image.iter().map(|&value| pixel(value)).collect();
    images.iter().map(pixels).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn statistics_are_those_of_each_pixel(
        (rows, columns) in prop_oneof![
            Just((1, 1)), Just((3, 7)), Just((8, 32)), Just((5, 13)), Just((33, 67)), Just((3, 1024)),
        ],
        count in 0usize..7,
        factor in 1usize..9,
        step in 1usize..5,
        most in prop_oneof![Just(2.0), Just(1000.0), Just(32766.0)],
        seed in any::<u64>(),
    ) {
        let shape = Shape { rows, columns };
        let factor = factor.min(rows.max(columns));
        let images: Vec<Vec<f64>> = (0..count as u64)
            .map(|n| photons(seed.wrapping_add(n), shape.pixels(), most))
            .collect();
        compare(shape, &of(&images, as_i16), factor, step);
        compare(shape, &of(&images, as_i32), factor, step);
        // Sums of eighths are exact in any order.
        compare(shape, &of(&images, |value| value as f32 / 8.0), factor, step);
    }
}

#[test]
fn sums_of_the_largest_values_are_exact() {
    // More images than 32 bits hold of the largest value.
    let shape = Shape {
        rows: 1,
        columns: 40,
    };
    let images = 70_000;
    for simd in Simd::all() {
        let mut statistics = ImageStatistics::<i16>::with_simd(shape, simd).unwrap();
        let image = vec![i16::SATURATED - 1; shape.pixels()];
        (0..images).for_each(|_| _ = statistics.add(&image).unwrap());
        let sum = f64::from(i16::SATURATED - 1) * f64::from(images);
        assert!((0..shape.pixels()).all(|i| statistics.sum(i) == Some((sum, images as u64))));
        let mut statistics = ImageStatistics::<i32>::with_simd(shape, simd).unwrap();
        let image = vec![i32::BAD + 1; shape.pixels()];
        (0..9).for_each(|_| _ = statistics.add(&image).unwrap());
        assert_eq!(statistics.sum(0), Some((9.0 * f64::from(i32::BAD + 1), 9)));
        let photons = 40.0 * f64::from(i32::BAD + 1);
        assert_eq!(statistics.last().photons.to_bits(), photons.to_bits());
    }
}

#[test]
fn recent_sums_cannot_overflow() {
    // The largest image has the most images between two moves of a part.
    for pixels in [1, 1 << 19, 1 << 22, 1 << 26, u32::MAX as usize] {
        let (images, part) = images::cycle(pixels);
        assert!(
            images <= 1 << 15 && images * part >= pixels,
            "{images} {part}"
        );
    }
    // And one more, before its own part is moved.
    assert!(((1 << 15) + 1) * i32::from(i16::MAX) < i32::MAX);
}

#[test]
fn rows_of_a_snapshot_are_of_their_own_time() {
    let shape = Shape {
        rows: 4,
        columns: 4,
    };
    let mut statistics = ImageStatistics::<i16>::new(shape).unwrap();
    let mut snapshot = Snapshot::new(shape, 2, View::Maximum).unwrap();
    statistics.add(&[1; 16]).unwrap();
    assert!(!snapshot.step(&statistics, 1));
    statistics.add(&[2; 16]).unwrap();
    assert!(snapshot.step(&statistics, 1));
    assert_eq!(snapshot.values(), [1.0, 1.0, 2.0, 2.0]);
    assert!(snapshot.step(&statistics, 1));
    snapshot.restart();
    assert!(!snapshot.is_complete() && snapshot.step(&statistics, usize::MAX));
    assert_eq!(snapshot.values(), [2.0; 4]);
}

#[test]
fn an_image_takes_no_memory() {
    let shape = Shape {
        rows: 40,
        columns: 100,
    };
    let (complete, noise) = listen(|ear| {
        let mut statistics = ImageStatistics::<i16>::new(shape).unwrap();
        let mut snapshot = Snapshot::new(shape, 3, View::Mean).unwrap();
        let mut rate = HitRate::new(100);
        let image = vec![1; shape.pixels()];
        ear.during(|| {
            for _ in 0..200 {
                rate.record(statistics.add(&image).is_ok());
            }
            snapshot.step(&statistics, 40)
        })
    });
    assert!(complete);
    noise.assert_none();
}

#[test]
fn what_cannot_be_is_refused() {
    let shape = |rows, columns| Shape { rows, columns };
    for bad in [
        shape(0, 4),
        shape(4, 0),
        shape(1 << 16, 1 << 16),
        shape(usize::MAX, 2),
    ] {
        let error = ImageStatistics::<i16>::new(bad).map(|_| ()).unwrap_err();
        assert_eq!(error, StatisticsError::Shape(bad));
        assert!(Snapshot::new(bad, 1, View::Mean).is_err());
    }
    for factor in [0, 6] {
        assert!(Snapshot::new(shape(5, 4), factor, View::Mean).is_err());
    }
    let mut statistics = ImageStatistics::<f32>::new(shape(5, 4)).unwrap();
    let error = statistics.add(&[1.0; 19]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "image of 19 pixels: the statistics were made for 5 x 4"
    );
    assert_eq!(statistics.images(), 0);
    let mut other = Snapshot::new(shape(4, 5), 1, View::Mean).unwrap();
    assert!(!other.step(&statistics, 4));
}
