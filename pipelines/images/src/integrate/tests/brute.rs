//! Curves by other methods: one pixel after the other, and polygons that are clipped.

use std::f64::consts::{PI, TAU};

use rand::RngExt;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

/// A point: position in units of bins, and azimuth.
type Point = [f64; 2];

/// What is left of a polygon on one side of a line across the radial axis (Sutherland and Hodgman).
fn clip(polygon: &[Point], line: f64, keep_above: bool) -> Vec<Point> {
    let inside = |point: &Point| (point[0] >= line) == keep_above;
    let mut kept = Vec::new();
    for (i, to) in polygon.iter().enumerate() {
        let from = &polygon[(i + polygon.len() - 1) % polygon.len()];
        if inside(from) != inside(to) {
            let part = (line - from[0]) / (to[0] - from[0]);
            kept.push([line, from[1] + part * (to[1] - from[1])]);
        }
        if inside(to) {
            kept.push(*to);
        }
    }
    kept
}

fn area(polygon: &[Point]) -> f64 {
    let sum: f64 = (0..polygon.len())
        .map(|i| (polygon[i], polygon[(i + 1) % polygon.len()]))
        .map(|([a, b], [c, d])| a * d - c * b)
        .sum();
    0.5 * sum.abs()
}

/// Signal and count of each bin, for 2theta of a detector without rotations.
fn clipped(
    shape: Shape,
    geometry: &Geometry,
    (low, high): (f64, f64),
    bins: usize,
    image: &[f32],
) -> Vec<[f64; 2]> {
    let mut sums = vec![[0.0; 2]; bins];
    for ((row, column), &photons) in centres(shape).zip(image) {
        let corner = |i: f64, j: f64| -> Point {
            let corner = (row + i, column + j);
            let y = corner.0 * geometry.pixel1 - geometry.poni1;
            let x = corner.1 * geometry.pixel2 - geometry.poni2;
            [
                (two_theta(geometry, corner) - low) / (high - low) * bins as f64,
                y.atan2(x),
            ]
        };
        let mut polygon = [
            corner(-0.5, -0.5),
            corner(0.5, -0.5),
            corner(0.5, 0.5),
            corner(-0.5, 0.5),
        ];
        // Within half a turn of the first corner.
        let first = polygon[0][1];
        for [_, azimuth] in &mut polygon {
            *azimuth = (*azimuth - first + PI).rem_euclid(TAU) - PI;
        }
        let parts: Vec<f64> = (0..bins)
            .map(|bin| {
                area(&clip(
                    &clip(&polygon, bin as f64, true),
                    (bin + 1) as f64,
                    false,
                ))
            })
            .collect();
        let all: f64 = parts.iter().sum();
        for (sum, part) in sums.iter_mut().zip(parts).filter(|(_, part)| *part > 0.0) {
            sum[0] += part / all * f64::from(photons);
            sum[1] += part / all;
        }
    }
    sums
}

#[test]
fn full_splitting_is_the_area_of_clipped_pixels() {
    let shape = Shape {
        rows: 23,
        columns: 31,
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let image: Vec<f32> = (0..shape.pixels())
        .map(|_| random.random_range(0.0..100.0))
        .collect();
    // The beam is outside, or on a corner of four pixels, or near: the pixel with the beam itself
    // has no azimuth.
    let beams = [
        (-300e-6, 500e-6),
        (10.0 * 75e-6, 12.0 * 75e-6),
        (1e-3, -40e-6),
        (2e-3, 3e-3),
    ];
    for (poni1, poni2) in beams {
        let geometry = Geometry {
            poni1,
            poni2,
            dist: 0.01,
            ..GEOMETRY
        };
        for (bins, range) in [(40, (0.0, 0.4)), (7, (0.02, 0.15)), (200, (0.0, 0.4))] {
            let config = IntegrationConfig {
                range: Some(range),
                ..config(Split::Full, bins)
            };
            let curve = integrate(shape, &geometry, &config, None, &image);
            let expected = clipped(
                shape,
                &geometry,
                (range.0, range.1 * (1.0 + f64::from(f32::EPSILON))),
                bins,
                &image,
            );
            for (bin, [signal, count]) in expected.into_iter().enumerate() {
                // Corners are in single precision: 4e-7 of a turn, on pixels of a tenth.
                assert!(
                    (curve.count[bin] - count).abs() < 1e-4 * count.max(1.0),
                    "{poni1} {bins} {bin}: {} {count}",
                    curve.count[bin]
                );
                assert!((curve.signal[bin] - signal).abs() < 1e-4 * signal.max(100.0));
            }
        }
    }
}

#[test]
fn without_splitting_each_pixel_is_in_the_bin_of_its_centre() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let pixels = SHAPE.pixels();
    let image: Vec<i32> = (0..pixels)
        .map(|_| match random.random_range(0..20) {
            0 => i32::BAD,
            1 => i32::SATURATED,
            _ => random.random_range(0..50),
        })
        .collect();
    let mask: Vec<bool> = (0..pixels).map(|_| random.random_bool(0.1)).collect();
    let (low, high, bins) = (0.02, 0.12, 90);
    let config = IntegrationConfig {
        range: Some((low, high)),
        ..config(Split::No, bins)
    };
    let curve = integrate(SHAPE, &GEOMETRY, &config, Some(&mask), &image);
    let mut expected = vec![[0.0; 3]; bins];
    for ((centre, &photons), masked) in centres(SHAPE).zip(&image).zip(&mask) {
        let high = high * (1.0 + f64::from(f32::EPSILON));
        let bin = (two_theta(&GEOMETRY, centre) - low) / (high - low) * bins as f64;
        let counts = !masked && photons != i32::MIN && photons != i32::MAX;
        if counts && (0.0..bins as f64).contains(&bin) {
            let sums = &mut expected[bin as usize];
            sums[0] += f64::from(photons);
            sums[1] += 1.0;
            sums[2] += f64::from(photons.max(1));
        }
    }
    for (bin, [signal, count, variance]) in expected.into_iter().enumerate() {
        assert_eq!(
            [curve.signal[bin], curve.count[bin], curve.variance[bin]],
            [signal, count, variance]
        );
        if count > 0.0 {
            assert_eq!(curve.mean[bin], signal / count);
            assert_eq!(curve.sigma[bin], variance.sqrt() / count);
        }
    }
}

#[test]
fn variances_of_an_image_are_weighted_by_squares() {
    // Two pixels over the same bins: c^2 v, not c v.
    let shape = Shape {
        rows: 2,
        columns: 1,
    };
    let geometry = Geometry {
        poni1: 75e-6,
        poni2: -0.01,
        ..GEOMETRY
    };
    let mut integrator = Integrator::new(shape, &geometry, &config(Split::Full, 3), None).unwrap();
    let counts = integrator
        .integrate(&[1.0_f32, 1.0], Variance::Poisson)
        .unwrap()
        .count
        .clone();
    let curve = integrator
        .integrate(&[5.0_f32, 7.0], Variance::Image(&[3.0, f32::NAN]))
        .unwrap();
    for (bin, count) in counts.into_iter().enumerate() {
        // By symmetry both pixels have the same shares.
        let part = count / 2.0;
        assert!(apart(curve.variance[bin], 3.0 * part * part) < 1e-6);
        assert!(apart(curve.signal[bin], 5.0 * part) < 1e-6);
        assert!(apart(curve.sigma[bin], 3.0_f64.sqrt()) < 1e-6);
    }
}
