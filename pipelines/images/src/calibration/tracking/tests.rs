use proptest::prelude::*;
use zerocopy::IntoBytes as _;

use super::*;
use crate::calibration::Map;

/// A calibration with the given pedestals of G0.
fn calibration(pedestals: &[f32], bad: Vec<bool>) -> Calibration {
    let shape = Shape {
        rows: 1,
        columns: pedestals.len(),
    };
    let map = |value| Map::new("map", vec![value; shape.pixels()]);
    let pedestals = [
        Map::new("map", pedestals.to_vec()),
        map(13_500.0),
        map(14_100.0),
    ];
    Calibration::new(shape, pedestals, [507.0, -17.9, -1.43].map(map), bad).unwrap()
}

const CFG: TrackingConfig = TrackingConfig {
    window: 10,
    plausible: 50.0,
    noise: 4.0,
    due_after: 3,
};

#[test]
fn only_plausible_pixels_in_g0_count() {
    let bad = vec![false, false, false, false, false, true];
    let mut tracker = PedestalTracker::new(&calibration(&[1000.0; 6], bad), CFG).unwrap();
    // Near, too far, another gain, saturated, an error code, and bad.
    let raw: [u16; 6] = [1020, 1051, 0x43E8, 0xC000, 0xFFFF, 1000];
    let frame = tracker.add(raw.as_bytes()).unwrap();
    assert_eq!(
        frame,
        DarkFrame {
            used: 1,
            other_gain: 3,
            implausible: 1
        }
    );
    assert_eq!(
        tracker.pedestals()[..5],
        [1002.0, 1000.0, 1000.0, 1000.0, 1000.0]
    );
    assert!(tracker.pedestals()[5].is_nan());
    let expected = (0.9 * (16.0 + 0.1 * 400.0) as f32).sqrt();
    assert!((tracker.noise(0).unwrap() - expected).abs() < 1e-5);
    assert_eq!(tracker.noise(1), Some(4.0));
    assert!(tracker.noise(5).unwrap().is_nan());
    assert_eq!(tracker.noise(6), None);
}

#[test]
fn pedestals_are_due_after_a_number_of_dark_frames() {
    let mut tracker = PedestalTracker::new(&calibration(&[1000.0], vec![false]), CFG).unwrap();
    let due: Vec<_> = (0..8)
        .map(|_| {
            tracker.add(&1000u16.to_le_bytes()).unwrap();
            tracker.take_due()
        })
        .collect();
    assert_eq!(due, [false, false, true, false, false, true, false, false]);
}

#[test]
fn mean_and_noise_of_gaussian_dark_frames_are_found() {
    use rand::SeedableRng as _;
    use rand_distr::{Distribution as _, Normal};

    const PIXELS: usize = 1000;
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(4);
    let cfg = TrackingConfig { window: 50, ..CFG };
    let calibration = calibration(&[2400.0; PIXELS], vec![false; PIXELS]);
    let mut tracker = PedestalTracker::new(&calibration, cfg).unwrap();
    // The pedestals have drifted by 20 ADU, and the noise is 8 ADU.
    let dark = Normal::new(2420.0, 8.0).unwrap();
    for _ in 0..500 {
        let raw: Vec<u16> = (0..PIXELS)
            .map(|_| f64::round(dark.sample(&mut rng)) as u16)
            .collect();
        tracker.add(raw.as_bytes()).unwrap();
    }
    // An exponential mean has the variance w / (2 - w) of that of a frame: 8 / sqrt(99) ADU.
    let pixels = tracker.pedestals().iter().map(|&p| f64::from(p) - 2420.0);
    let rms = (pixels.clone().map(|d| d * d).sum::<f64>() / PIXELS as f64).sqrt();
    let mean = pixels.sum::<f64>() / PIXELS as f64;
    assert!(mean.abs() < 0.12, "{mean}");
    assert!((rms / (8.0 / 99f64.sqrt()) - 1.0).abs() < 0.1, "{rms}");
    let noise = (0..PIXELS).map(|pixel| f64::from(tracker.noise(pixel).unwrap()));
    let noise = noise.sum::<f64>() / PIXELS as f64;
    assert!((noise / 8.0 - 1.0).abs() < 0.03, "{noise}");
}

#[test]
fn configurations_and_frames_that_make_no_sense_are_refused() {
    let calibration = calibration(&[1000.0; 2], vec![false; 2]);
    let new = |cfg| PedestalTracker::new(&calibration, cfg);
    for plausible in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let cfg = TrackingConfig { plausible, ..CFG };
        let error = new(cfg).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("plausible is {plausible}: set a positive number")
        );
        assert!(
            new(TrackingConfig {
                noise: plausible,
                ..CFG
            })
            .is_err()
        );
    }
    assert!(new(TrackingConfig { window: 0, ..CFG }).is_err());
    assert!(
        new(TrackingConfig {
            due_after: 0,
            ..CFG
        })
        .is_err()
    );
    let mut tracker = new(CFG).unwrap();
    for bytes in [0, 3, 6] {
        let error = tracker.add(&vec![0; bytes]).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("a dark frame has {bytes} bytes: give two bytes for each pixel of 1 x 2")
        );
    }
}

proptest! {
    #[test]
    fn all_sets_of_instructions_agree(
        pixels in prop::collection::vec((0.0..16383.0f32, any::<[u16; 3]>(), any::<bool>()), 1..200),
        bad in prop::collection::vec(prop::bool::weighted(0.1), 200),
    ) {
        let pedestals: Vec<f32> = pixels.iter().map(|pixel| pixel.0).collect();
        let calibration = calibration(&pedestals, bad[..pixels.len()].to_vec());
        let frame = |n: usize| -> Vec<u16> {
            let near = |pedestal: f32, raw: u16| pedestal as u16 + raw % 64;
            pixels
                .iter()
                .map(|&(pedestal, raw, dark)| if dark { near(pedestal, raw[n]) } else { raw[n] })
                .collect()
        };
        let track = |simd| {
            let mut tracker = PedestalTracker::with_simd(&calibration, CFG, simd).unwrap();
            let frames = [0, 1, 2].map(|n| tracker.add(frame(n).as_bytes()).unwrap());
            let bits = |values: &[f32]| values.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
            (frames, bits(&tracker.pedestals), bits(&tracker.variances))
        };
        let expected = track(Simd::SCALAR);
        for simd in Simd::all() {
            prop_assert_eq!(&track(simd), &expected, "{:?}", simd);
        }
        let good = calibration.bad().iter().filter(|&&bad| !bad).count();
        for frame in expected.0 {
            prop_assert_eq!(frame.used + frame.other_gain + frame.implausible, good);
        }
    }
}
