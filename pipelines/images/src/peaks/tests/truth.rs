//! Efficiency, purity and position beside the truth of synthetic images, and candidates beside the
//! Poisson distribution.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::scene::{self, Spot};
use super::*;

const SHAPE: Shape = Shape::JUNGFRAU_MODULE;
const CENTRE: (f64, f64) = (255.5, 511.5);

fn pixels(photons: &[f64]) -> Vec<i16> {
    photons.iter().map(|&value| value as i16).collect()
}

#[test]
fn spots_are_found_where_they_are() {
    const IMAGES: u64 = 5;
    const SPOTS: usize = 100;
    const PHOTONS: f64 = 300.0;
    const WIDTH: f64 = 1.2;
    let radius = distance_from(CENTRE.0, CENTRE.1);
    let config = PeakConfig {
        min_pixels: 3,
        ..PeakConfig::default()
    };
    let mut finder = PeakFinder::new(SHAPE, 512, &radius, config).unwrap();
    let (mut found, mut false_peaks) = (0, 0);
    let (mut offsets, mut squares, mut intensity) = ([0.0; 2], 0.0, 0.0);
    for seed in 0..IMAGES {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let spots = scene::spots(&mut rng, SHAPE, SPOTS, 16.0, |_, row, column| Spot {
            row,
            column,
            photons: PHOTONS,
            width: WIDTH,
        });
        // Solvent: a few photons at the beam, half of one far out, and a ring of powder.
        let profile = |row, column| {
            let r = radius(row, column);
            0.5 + 5.0 * (-r / 150.0).exp() + 2.0 * (-((r - 200.0) / 4.0).powi(2)).exp()
        };
        let image = pixels(&scene::image(&mut rng, SHAPE, profile, &spots));
        let peaks = finder.find(&image).unwrap();
        assert_eq!(peaks.beyond, 0);
        for peak in peaks.list() {
            let offset = |spot: &Spot| {
                [
                    f64::from(peak.row) - spot.row,
                    f64::from(peak.column) - spot.column,
                ]
            };
            let near = spots.iter().map(offset).find(|[y, x]| y.hypot(*x) < 1.0);
            match near {
                Some([y, x]) => {
                    found += 1;
                    offsets[0] += y;
                    offsets[1] += x;
                    squares += y * y + x * x;
                    intensity += f64::from(peak.intensity);
                }
                None => false_peaks += 1,
            }
        }
    }
    let spots = IMAGES as usize * SPOTS;
    let n = f64::from(found);
    let (efficiency, purity) = (n / spots as f64, n / f64::from(found + false_peaks));
    // The variance of the mean of N photons is that of the spot divided by N, in each direction.
    let theory = (2.0 * WIDTH * WIDTH / PHOTONS).sqrt();
    let rms = (squares / n).sqrt();
    let bias = offsets.map(|sum| sum / n);
    let share = intensity / n / PHOTONS;
    println!(
        "efficiency {efficiency:.4}, purity {purity:.4}, bias {bias:.4?} pixels, rms {rms:.4} pixels \
         (photons alone: {theory:.4}), intensity {share:.3}"
    );
    assert!(efficiency > 0.99, "{efficiency}");
    assert!(purity > 0.99, "{purity}");
    // Five standard errors of what the photons allow, to which the threshold adds.
    let error = theory / 2f64.sqrt() / n.sqrt();
    assert!(bias.iter().all(|b| b.abs() < 5.0 * error), "{bias:?}");
    assert!((0.9 * theory..1.6 * theory).contains(&rms), "{rms}");
    // Tails of the spots are below the threshold.
    assert!((0.8..1.0).contains(&share), "{share}");
}

/// P(X >= n) of the Poisson distribution.
fn tail(mean: f64, n: u32) -> f64 {
    let mut term = (-mean).exp();
    let mut below = 0.0;
    for k in 0..n {
        below += term;
        term *= mean / f64::from(k + 1);
    }
    1.0 - below
}

#[test]
fn candidates_of_noise_are_as_many_as_the_distribution_says() {
    for (seed, mean) in [(1, 0.05), (2, 1.0), (3, 9.7)] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let radius = distance_from(CENTRE.0, CENTRE.1);
        let config = PeakConfig {
            // Thresholds between whole numbers, and rings so wide that none is near one: a ring with
            // more photons by chance has a higher threshold.
            pixel_snr: 3.5,
            min_photons: 1.5,
            ring_width: 8.0,
            min_radius: 64.0,
            ring_samples: u32::MAX,
            ..PeakConfig::default()
        };
        let mut finder = PeakFinder::new(SHAPE, 512, radius, config).unwrap();
        let image = pixels(&scene::image(&mut rng, SHAPE, |_, _| mean, &[]));
        let candidates = f64::from(finder.find(&image).unwrap().candidates);
        let mut expected = 0.0;
        for pixel in 0..SHAPE.pixels() {
            let ring = finder.ring(pixel / SHAPE.columns, pixel % SHAPE.columns);
            if let Some(ring) = ring {
                let threshold = finder.background()[ring].threshold;
                expected += tail(mean, threshold.ceil() as u32);
            }
        }
        println!("mean {mean}: {candidates} candidates, expected {expected:.1}");
        assert!(
            (candidates - expected).abs() < 5.0 * expected.sqrt(),
            "{candidates} {expected}"
        );
    }
}

#[test]
fn the_background_is_that_of_the_profile() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let radius = distance_from(CENTRE.0, CENTRE.1);
    let mut finder = PeakFinder::new(SHAPE, 512, &radius, PeakConfig::default()).unwrap();
    let profile = |r: f64| 3.0 + 20.0 * (-r / 100.0).exp();
    let spots = scene::spots(&mut rng, SHAPE, 150, 10.0, |_, row, column| Spot {
        row,
        column,
        photons: 5000.0,
        width: 1.2,
    });
    let image = scene::image(
        &mut rng,
        SHAPE,
        |row, column| profile(radius(row, column)),
        &spots,
    );
    finder.find(&pixels(&image)).unwrap();
    let mut deviations = 0.0;
    let rings = finder.background();
    for column in 520..1000 {
        let ring = rings[finder.ring(255, column).unwrap()];
        let expected = profile(radius(255, column));
        let error = (expected / f64::from(ring.samples)).sqrt();
        deviations += ((ring.mean - expected) / error).powi(2) / 480.0;
        assert!(
            (ring.sigma / expected.sqrt() - 1.0).abs() < 0.3,
            "{ring:?} {expected}"
        );
    }
    // 1 if nothing of the spots were left, whose tails are in the background; of the width of a bin.
    assert!(deviations < 6.0, "{deviations}");
}
