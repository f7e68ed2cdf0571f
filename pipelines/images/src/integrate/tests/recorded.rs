//! Recorded frames of a JUNGFRAU module.

use std::path::{Path, PathBuf};

use super::*;

/// Converted frames, in photons. None where the data is not there.
fn frames() -> Vec<Vec<f32>> {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let read = |n| std::fs::read(data.join(format!("jungfrau/mod5_conv{n}.bin"))).ok();
    let frames: Vec<_> = (0..4).map_while(read).collect();
    if frames.is_empty() {
        println!("skipped: no recorded data at {}", data.display());
    }
    let pixels = |bytes: &Vec<u8>| {
        let (pixels, _) = bytes.as_chunks();
        pixels
            .iter()
            .map(|&pixel| f32::from_le_bytes(pixel))
            .collect()
    };
    frames.iter().map(pixels).collect()
}

#[test]
fn curves_of_frames_are_sums_of_their_pixels() {
    let shape = Shape::JUNGFRAU_MODULE;
    for image in frames() {
        let bins = 500;
        let curve = integrate(shape, &GEOMETRY, &config(Split::No, bins), None, &image);
        let angles: Vec<f64> = centres(shape)
            .map(|centre| two_theta(&GEOMETRY, centre))
            .collect();
        let low = angles.iter().copied().fold(f64::INFINITY, f64::min);
        let high = angles.iter().copied().fold(0.0, f64::max) * (1.0 + f64::from(f32::EPSILON));
        let mut sums = vec![0.0; bins];
        let mut largest = vec![0.0_f64; bins];
        for (angle, &photons) in angles.into_iter().zip(&image) {
            let bin = ((angle - low) / (high - low) * bins as f64) as usize;
            if photons.is_finite() {
                sums[bin] += f64::from(photons);
                largest[bin] = largest[bin].max(f64::from(photons).abs());
            }
        }
        // A pixel between two bins may be in either.
        let differ = sums.iter().zip(&curve.signal).zip(&largest);
        let differ = differ
            .filter(|((a, b), largest)| (*a - *b).abs() > 1e-9 * *largest)
            .count();
        assert!(differ <= 2, "{differ} bins");
        // Splitting moves photons between neighbours, and loses none.
        let split = integrate(shape, &GEOMETRY, &config(Split::Full, bins), None, &image);
        let [sum, of_split] = [&curve, &split].map(|curve| curve.signal.iter().sum::<f64>());
        assert!(apart(sum, of_split) < 1e-6);
    }
}
