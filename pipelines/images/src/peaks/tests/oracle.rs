//! A plain implementation of the method as the module defines it, and its peaks beside the finder's.

use pollux_pipelines::simd::Simd;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::scene::{self, Spot};
use super::*;

/// Peaks, then the numbers of groups that are too small, too large and too weak.
type Found = (Vec<Peak>, [u32; 3]);

/// Mean, standard deviation and threshold of the ring of a pixel.
type Background = Option<(f64, f64, f64)>;

/// An image to search: photons without a type of pixel, NaN for bad and infinity for saturated.
struct Oracle<'a> {
    image: &'a [f64],
    case: &'a Case,
}

impl Oracle<'_> {
    fn at(&self, pixel: usize) -> (f64, f64) {
        let columns = self.case.shape.columns;
        ((pixel / columns) as f64, (pixel % columns) as f64)
    }

    fn module(&self, pixel: usize) -> usize {
        pixel / self.case.shape.columns / self.case.modules
    }

    fn distance(&self, pixel: usize, from: (f64, f64)) -> f64 {
        let (row, column) = self.at(pixel);
        ((row - from.0).powi(2) + (column - from.1).powi(2)).sqrt()
    }

    /// Step 1: pixels of each ring.
    fn rings(&self) -> Vec<Vec<usize>> {
        let config = &self.case.config;
        let bin = |pixel| {
            let r = self.distance(pixel, self.case.centre);
            let inside = r >= config.min_radius && r <= config.max_radius;
            inside.then_some((r / config.ring_width) as usize)
        };
        let bins: Vec<Option<usize>> = (0..self.image.len()).map(bin).collect();
        let last = bins.iter().flatten().max().copied().unwrap();
        let mut rings: Vec<Vec<usize>> = vec![vec![]];
        for bin in 0..=last {
            if rings.last().unwrap().len() >= 32 {
                rings.push(vec![]);
            }
            let pixels = (0..bins.len()).filter(|&i| bins[i] == Some(bin));
            rings.last_mut().unwrap().extend(pixels);
        }
        if rings.len() > 1 && rings.last().unwrap().len() < 32 {
            let rest = rings.pop().unwrap();
            rings.last_mut().unwrap().extend(rest);
        }
        rings
    }

    /// Steps 2 and 3, and the threshold of step 4.
    fn background(&self) -> Vec<Background> {
        let config = &self.case.config;
        let mut background = vec![None; self.image.len()];
        for mut ring in self.rings() {
            ring.sort_unstable();
            let count = ring.len().min(config.ring_samples as usize);
            let samples = (0..count).map(|i| self.image[ring[i * ring.len() / count]]);
            let samples: Vec<f64> = samples.filter(|value| value.is_finite()).collect();
            let mut kept = samples.clone();
            for _ in 0..config.clip_iterations {
                if kept.len() < 8 {
                    break;
                }
                let (mean, sigma) = moments(&kept, config.noise);
                let low = f64::from((mean - config.clip_sigma * sigma) as f32);
                let high = f64::from((mean + config.clip_sigma * sigma) as f32);
                kept.clone_from(&samples);
                kept.retain(|&value| low <= value && value <= high);
            }
            if kept.len() >= 8 {
                let (mean, sigma) = moments(&kept, config.noise);
                let threshold = (mean + config.pixel_snr * sigma).max(config.min_photons);
                for &pixel in &ring {
                    background[pixel] = Some((mean, sigma, f64::from(threshold as f32)));
                }
            }
        }
        background
    }

    /// Steps 4 and 5: candidates that touch. Each takes the lowest number around it, until nothing
    /// changes.
    fn groups(&self, background: &[Background]) -> Vec<Vec<usize>> {
        let is_above = |&i: &usize| background[i].is_some_and(|(.., t)| self.image[i] >= t);
        let candidates: Vec<usize> = (0..self.image.len()).filter(is_above).collect();
        let mut label: Vec<usize> = (0..self.image.len()).collect();
        let mut changed = true;
        while changed {
            changed = false;
            for &a in &candidates {
                for &b in &candidates {
                    let (p, q) = (self.at(a), self.at(b));
                    let touch = (p.0 - q.0).abs() <= 1.0 && (p.1 - q.1).abs() <= 1.0;
                    if touch && self.module(a) == self.module(b) && label[b] < label[a] {
                        label[a] = label[b];
                        changed = true;
                    }
                }
            }
        }
        let first = candidates.iter().filter(|&&i| label[i] == i);
        let group = |&first: &usize| {
            let pixels = candidates.iter().filter(|&&i| label[i] == first);
            pixels.copied().collect()
        };
        first.map(group).collect()
    }

    /// Step 6: mean and standard deviation around a maximum.
    fn local(&self, top: usize, background: &[Background]) -> (f64, f64) {
        let config = &self.case.config;
        let around = (0..self.image.len()).filter(|&i| {
            let d = self.distance(i, self.at(top));
            f64::from(config.local_inner) < d
                && d <= f64::from(config.local_outer)
                && self.module(i) == self.module(top)
                && background[i].is_some_and(|(.., t)| self.image[i] < t)
        });
        let around: Vec<f64> = around.map(|i| self.image[i]).collect();
        let (mean, sigma, _) = background[top].unwrap();
        match around.len() {
            8.. => moments(&around, config.noise),
            _ => (mean, sigma),
        }
    }

    /// Step 7.
    fn peak(&self, pixels: &[usize], background: &[Background]) -> Peak {
        let value = |i: usize| {
            let saturated = self.case.config.saturation.max(background[i].unwrap().2);
            if self.image[i].is_finite() {
                self.image[i]
            } else {
                saturated
            }
        };
        let maximum = pixels.iter().map(|&i| value(i)).fold(0.0, f64::max);
        let top = *pixels.iter().find(|&&i| value(i) >= maximum).unwrap();
        let (mean, sigma) = self.local(top, background);
        let total: f64 = pixels.iter().map(|&i| value(i) - mean).sum();
        let weight = |i: usize| value(i) - background[i].unwrap().0;
        let weights: f64 = pixels.iter().map(|&i| weight(i)).sum();
        let rows: f64 = pixels.iter().map(|&i| weight(i) * self.at(i).0).sum();
        let columns: f64 = pixels.iter().map(|&i| weight(i) * self.at(i).1).sum();
        Peak {
            row: (rows / weights) as f32,
            column: (columns / weights) as f32,
            intensity: total as f32,
            background: mean as f32,
            sigma: sigma as f32,
            snr: (total / (sigma * (pixels.len() as f64).sqrt())) as f32,
            maximum: maximum as f32,
            pixels: pixels.len() as u32,
            saturated: pixels
                .iter()
                .filter(|&&i| self.image[i].is_infinite())
                .count() as u32,
            module: self.module(top) as u16,
        }
    }

    fn find(&self) -> Found {
        let config = &self.case.config;
        let background = self.background();
        let (mut peaks, mut counts) = (vec![], [0; 3]);
        for pixels in self.groups(&background) {
            if pixels.len() < config.min_pixels as usize {
                counts[0] += 1;
                continue;
            }
            if pixels.len() > config.max_pixels as usize {
                counts[1] += 1;
                continue;
            }
            let peak = self.peak(&pixels, &background);
            if f64::from(peak.snr) < config.min_snr {
                counts[2] += 1;
            } else {
                peaks.push(peak);
            }
        }
        (peaks, counts)
    }
}

fn moments(values: &[f64], noise: f64) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
    (mean, variance.sqrt().max(noise))
}

fn near(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-5 * b.abs().max(1.0)
}

/// Searches an image by all instruction sets, and compares with the oracle.
fn compare<P: Pixel>(photons: &[f64], of: impl Fn(f64) -> P, case: &Case) {
    let pixels: Vec<P> = photons.iter().map(|&value| of(value)).collect();
    let exact: Vec<f64> = pixels.iter().map(|p| f64::from(p.photons())).collect();
    let Case {
        shape,
        modules,
        config,
        centre,
    } = *case;
    let image = &exact[..];
    let (expected, counts) = Oracle { image, case }.find();
    let mut first: Option<(Peaks, Vec<[u64; 4]>)> = None;
    for simd in Simd::all() {
        let radius = distance_from(centre.0, centre.1);
        let mut finder = PeakFinder::with_simd(shape, modules, radius, config, simd).unwrap();
        // What an image leaves behind does not matter.
        finder.find(&vec![of(50.0); shape.pixels()]).unwrap();
        let peaks = finder.find(&pixels).unwrap().clone();
        assert_eq!(
            peaks.list().len(),
            expected.len(),
            "{simd:?} {case:?}\n{peaks:?}\n{expected:?}"
        );
        for (peak, expected) in peaks.list().iter().zip(&expected) {
            let measures = |p: &Peak| {
                [
                    p.row,
                    p.column,
                    p.intensity,
                    p.background,
                    p.sigma,
                    p.snr,
                    p.maximum,
                ]
            };
            let mut pairs = measures(peak).into_iter().zip(measures(expected));
            assert!(
                pairs.all(|(a, b)| near(a, b)),
                "{case:?}\n{peak:?}\n{expected:?}"
            );
            let numbers = |p: &Peak| (p.pixels, p.saturated, p.module);
            assert_eq!(numbers(peak), numbers(expected), "{case:?}");
        }
        assert_eq!([peaks.small, peaks.large, peaks.weak], counts, "{case:?}");
        let rings = finder.background().iter();
        let rings: Vec<_> = rings
            .map(|r| {
                [
                    r.mean.to_bits(),
                    r.sigma.to_bits(),
                    r.samples.into(),
                    r.threshold.to_bits().into(),
                ]
            })
            .collect();
        match &first {
            Some((others, other_rings)) => {
                assert_eq!(peaks.list(), others.list(), "{simd:?}");
                assert_eq!(&rings, other_rings, "{simd:?}");
            }
            None => first = Some((peaks, rings)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    shape: Shape,
    modules: usize,
    config: PeakConfig,
    centre: (f64, f64),
}

/// A random image: noise, spots, and pixels without a number.
fn photons(seed: u64, shape: Shape, level: f64) -> Vec<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let spots: Vec<Spot> = (0..rng.random_range(0..12))
        .map(|_| Spot {
            row: rng.random_range(0.0..shape.rows as f64),
            column: rng.random_range(0.0..shape.columns as f64),
            photons: rng.random_range(10.0..2000.0),
            width: rng.random_range(0.4..3.0),
        })
        .collect();
    let slope = rng.random_range(0.0..level / 20.0);
    let profile = |row, _| (level - slope * row as f64).max(1e-3);
    let mut image = scene::image(&mut rng, shape, profile, &spots);
    for _ in 0..rng.random_range(0..40) {
        let pixel = rng.random_range(0..image.len());
        image[pixel] = [f64::NAN, f64::INFINITY][usize::from(rng.random_bool(0.3))];
    }
    if rng.random_bool(0.2) {
        // A lost packet.
        let rows = rng.random_range(0..shape.rows / 2) * shape.columns;
        image[rows..rows + 4 * shape.columns].fill(f64::NAN);
    }
    image
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

/// Not a whole number, but one that sums are exact with.
fn as_f32(value: f64) -> f32 {
    (value * 0.875 - 0.25) as f32
}

fn cases() -> impl Strategy<Value = (Case, u64, f64)> {
    // Rows of a module, modules, columns.
    let shapes = prop_oneof![
        Just((37, 1, 53)),
        Just((20, 3, 45)),
        Just((16, 2, 64)),
        Just((5, 4, 7)),
        Just((30, 1, 100)),
    ];
    let centre = (-20.0..70.0, -20.0..70.0);
    let ring = (
        1.0..5.0,
        0.0..10.0,
        prop_oneof![Just(f64::INFINITY), Just(1000.0), Just(45.5)],
    );
    let clip = (32u32..200, 1.5..5.0, 0u32..7);
    let limits = (2.0..6.0, 0.0..6.0, 1u32..4, 3u32..60, 0.0..8.0);
    let local = (0u16..5, 1u16..6);
    let level = prop_oneof![0.01..1.0, 1.0..30.0];
    (
        shapes,
        centre,
        ring,
        clip,
        limits,
        local,
        level,
        any::<u64>(),
    )
        .prop_map(
            |((rows, count, columns), centre, ring, clip, limits, local, level, seed)| {
                let config = PeakConfig {
                    ring_width: ring.0,
                    min_radius: ring.1,
                    max_radius: ring.2,
                    ring_samples: clip.0,
                    clip_sigma: clip.1,
                    clip_iterations: clip.2,
                    pixel_snr: limits.0,
                    min_photons: limits.1,
                    min_pixels: limits.2,
                    max_pixels: limits.3,
                    min_snr: limits.4,
                    local_inner: local.0,
                    local_outer: local.0 + local.1,
                    ..PeakConfig::default()
                };
                let shape = Shape {
                    rows: rows * count,
                    columns,
                };
                (
                    Case {
                        shape,
                        modules: rows,
                        config,
                        centre,
                    },
                    seed,
                    level,
                )
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn peaks_are_those_of_the_oracle((case, seed, level) in cases()) {
        let photons = photons(seed, case.shape, level);
        let Case { shape, modules, config, centre } = case;
        let radius = distance_from(centre.0, centre.1);
        if PeakFinder::new(shape, modules, radius, config).is_ok() {
            compare(&photons, as_i16, &case);
            compare(&photons, as_i32, &case);
            compare(&photons, as_f32, &case);
        }
    }
}

#[test]
fn peaks_of_a_strong_slope_are_those_of_the_oracle() {
    let shape = Shape {
        rows: 48,
        columns: 96,
    };
    let (centre, config) = ((24.0, 10.0), PeakConfig::default());
    for seed in 0..10 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let radius = distance_from(centre.0, centre.1);
        let profile = |row, column| 2000.0 * (-radius(row, column) / 12.0).exp() + 0.2;
        let spots = scene::spots(&mut rng, shape, 8, 6.0, |_, row, column| Spot {
            row,
            column,
            photons: 400.0,
            width: 1.0,
        });
        let photons = scene::image(&mut rng, shape, profile, &spots);
        let case = Case {
            shape,
            modules: 48,
            config,
            centre,
        };
        compare(&photons, as_i16, &case);
        compare(&photons, as_f32, &case);
    }
}

#[test]
fn peaks_of_an_image_of_several_bands_are_those_of_the_oracle() {
    // More pixels than are copied in one band.
    let shape = Shape {
        rows: 300,
        columns: 450,
    };
    let config = PeakConfig {
        ring_samples: 400,
        ..PeakConfig::default()
    };
    let centre = (120.0, 200.0);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let radius = distance_from(centre.0, centre.1);
    let profile = |row, column| 30.0 * (-radius(row, column) / 60.0).exp() + 0.5;
    let spots = scene::spots(&mut rng, shape, 40, 8.0, |_, row, column| Spot {
        row,
        column,
        photons: 300.0,
        width: 1.0,
    });
    let photons = scene::image(&mut rng, shape, profile, &spots);
    let case = Case {
        shape,
        modules: 150,
        config,
        centre,
    };
    compare(&photons, as_i16, &case);
    compare(&photons, as_f32, &case);
}
