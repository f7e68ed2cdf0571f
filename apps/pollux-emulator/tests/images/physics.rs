//! Synthetic images against the photons they were made from, against theory, and against recorded
//! calibration.

use std::fs;
use std::path::PathBuf;

use pollux_emulator::images::config::{ImagesConfig, Pattern};
use pollux_emulator::images::order::StackImage;
use pollux_emulator::images::response::Response;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_images::Shape;
use pollux_images::formats::Detector;

/// A module of an image: photons and raw values.
fn module(
    config: &ImagesConfig,
    image: StackImage,
    module: usize,
) -> (Vec<u32>, Vec<u16>, Response) {
    let synthesis = Synthesis::new(config).unwrap();
    let response = synthesis.response(module);
    let pixels = synthesis.layout().module().pixels();
    let (mut photons, mut raw) = (vec![0; pixels], vec![0; pixels]);
    synthesis.module(image, module, &response, &mut photons, &mut raw);
    (photons, raw, response)
}

fn config(pattern: Pattern) -> ImagesConfig {
    ImagesConfig {
        stack: 2,
        pattern,
        ..ImagesConfig::default()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / values.len() as f64).sqrt()
}

/// The gain of a raw value, and the photons it stands for in 64-bit arithmetic.
fn convert(raw: u16, pixel: usize, response: &Response) -> (usize, f64) {
    let gain = [0, 1, 3, 2][usize::from(raw >> 14)];
    let adc = f64::from(raw & 0x3fff);
    let pedestal = f64::from(response.pedestals(gain)[pixel]);
    (
        gain,
        (adc - pedestal) / f64::from(response.gains(gain)[pixel]),
    )
}

/// Images whose photons run through all three gains, converted back.
#[test]
fn raw_values_convert_back_to_the_photons() {
    let config = config(Pattern {
        background: 0.3,
        peaks: 300,
        peak_photons: 3000.0,
        bad_pixels: 0,
        ..Pattern::default()
    });
    let (photons, raw, response) = module(&config, StackImage::Light(0), 0);
    let mut errors = [const { Vec::new() }; 3];
    let mut most = [0; 3];
    for (pixel, (&raw, &photons)) in raw.iter().zip(&photons).enumerate() {
        assert_ne!(raw >> 14, 2, "no such gain");
        let (gain, converted) = convert(raw, pixel, &response);
        errors[gain].push(converted - f64::from(photons));
        most[gain] = most[gain].max(photons);
    }
    assert!(errors.iter().all(|errors| errors.len() > 100), "{most:?}");
    // 14 ADC units of noise and the rounding to one, over 506.7 ADC units a photon; 2 over 17.97; 2
    // over 1.43.
    for (errors, (noise, gain)) in errors
        .iter()
        .zip([(14.0, 506.7), (2.0, 17.97), (2.0, 1.43)])
    {
        let expected = (noise * noise + 1.0 / 12.0_f64).sqrt() / gain;
        let spread = 4.0 / (2.0 * errors.len() as f64).sqrt();
        let found = deviation(errors);
        assert!(
            (found / expected - 1.0).abs() < spread + 0.01,
            "{found} {expected}"
        );
        let tolerance = 4.0 * expected / (errors.len() as f64).sqrt();
        assert!(mean(errors).abs() < tolerance, "{}", mean(errors));
    }
    // Where the recorded module switches: 22 and 650 photons, within the spread of the pedestals.
    assert!(
        (20..27).contains(&most[0]) && (580..720).contains(&most[1]),
        "{most:?}"
    );
}

/// Photons follow Poisson's distribution: frequencies against the formula.
#[test]
fn photons_are_poisson_distributed() {
    let background = 0.7;
    let config = config(Pattern {
        background,
        peaks: 0,
        ..Pattern::default()
    });
    let (photons, ..) = module(&config, StackImage::Light(1), 0);
    let all = photons.len() as f64;
    let mut probability = (-background).exp();
    for k in 0..6_u32 {
        let found = photons.iter().filter(|photons| **photons == k).count() as f64;
        let sigma = (all * probability * (1.0 - probability)).sqrt();
        assert!(
            (found - all * probability).abs() < 4.0 * sigma,
            "{k}: {found}"
        );
        probability *= background / f64::from(k + 1);
    }
}

/// A dark image has pedestals and noise alone, in G0, and differs from the next one.
#[test]
fn dark_images_are_pedestals_with_noise() {
    let mut config = config(Pattern {
        bad_pixels: 0,
        ..Pattern::default()
    });
    config.dark_every = 2;
    let (photons, raw, response) = module(&config, StackImage::Dark(0), 0);
    assert!(photons.iter().all(|photons| *photons == 0));
    assert!(raw.iter().all(|raw| raw >> 14 == 0));
    let noise: Vec<f64> = raw
        .iter()
        .zip(response.pedestals(0))
        .map(|(raw, pedestal)| f64::from(*raw) - f64::from(*pedestal))
        .collect();
    assert!(mean(&noise).abs() < 0.1, "{}", mean(&noise));
    assert!(
        (13.5..14.5).contains(&deviation(&noise)),
        "{}",
        deviation(&noise)
    );
    assert_ne!(module(&config, StackImage::Dark(1), 0).1, raw);
}

/// The peaks of the truth are in the image: as many photons around each as it says, at their place.
#[test]
fn peaks_are_where_the_truth_says() {
    let mut config = config(Pattern {
        background: 0.0,
        peaks: 30,
        ..Pattern::default()
    });
    config.modules = 2;
    let synthesis = Synthesis::new(&config).unwrap();
    let truth = synthesis.truth();
    assert_eq!((truth.shape, truth.images.len()), ([1024, 1024], 2));
    let mut image = module(&config, StackImage::Light(1), 0).0;
    image.extend(module(&config, StackImage::Light(1), 1).0);
    let peaks = truth.images[1].peaks;
    let all: u64 = image.iter().map(|photons| u64::from(*photons)).sum();
    assert_eq!(
        all,
        peaks
            .iter()
            .map(|peak| u64::from(peak.photons))
            .sum::<u64>()
    );
    assert_eq!(peaks.len(), 30);

    let near = |a: f64, b: f64| (a - b).abs() < 16.0;
    let (mut judged, mut halves) = (0, [0; 2]);
    for peak in peaks {
        let (row, column) = (peak.row.round() as usize, peak.column.round() as usize);
        halves[usize::from(peak.row >= 512.0)] += 1;
        let alone = peaks
            .iter()
            .filter(|p| near(p.row, peak.row) && near(p.column, peak.column));
        let inside = (8..1016).contains(&row) && (8..1016).contains(&column);
        if alone.count() > 1 || !inside {
            continue;
        }
        judged += 1;
        let (mut sum, mut moments) = (0.0, [0.0; 2]);
        for r in row - 7..=row + 7 {
            for c in column - 7..=column + 7 {
                let photons = f64::from(image[r * 1024 + c]);
                sum += photons;
                moments[0] += photons * r as f64;
                moments[1] += photons * c as f64;
            }
        }
        assert_eq!(sum as u32, peak.photons);
        // The mean of the positions of n photons deviates by sigma / sqrt(n).
        let tolerance = 5.0 * config.pattern.peak_sigma / sum.sqrt();
        for (moment, place) in moments.into_iter().zip([peak.row, peak.column]) {
            assert!((moment / sum - place).abs() < tolerance, "{peak:?}");
        }
    }
    assert!(
        judged > 20 && halves.iter().all(|half| *half > 5),
        "{judged} {halves:?}"
    );
}

/// Mean photons over radius, of two modules that see one centre, against the formula of the rings.
#[test]
fn rings_are_around_one_centre() {
    let mut config = config(Pattern {
        background: 0.2,
        peaks: 0,
        rings: 4,
        ring_photons: 2.0,
        ..Pattern::default()
    });
    config.modules = 2;
    let synthesis = Synthesis::new(&config).unwrap();
    let truth = synthesis.truth();
    assert_eq!(truth.centre, (511.5, 511.5));
    let radii: Vec<f64> = truth.rings.iter().map(|ring| ring.radius).collect();
    let last = 0.45 * 1024.0;
    for (radius, order) in radii.iter().zip([1.0, 2.0, 3.0, 4.0_f64]) {
        assert!(
            (radius - last * (order / 4.0).sqrt()).abs() < 1e-9,
            "{radii:?}"
        );
    }
    let mut image = module(&config, StackImage::Light(0), 0).0;
    image.extend(module(&config, StackImage::Light(0), 1).0);
    let mut bins = vec![(0.0, 0.0, 0.0); 500];
    for (pixel, photons) in image.iter().enumerate() {
        let radius = ((pixel / 1024) as f64 - 511.5).hypot((pixel % 1024) as f64 - 511.5);
        let expected: f64 = truth
            .rings
            .iter()
            .map(|ring| {
                let distance = (radius - ring.radius) / ring.sigma;
                ring.photons * (-distance * distance / 2.0).exp()
            })
            .sum();
        if let Some((found, sum, n)) = bins.get_mut(radius as usize) {
            *found += f64::from(*photons);
            *sum += expected + truth.background;
            *n += 1.0;
        }
    }
    for (radius, (found, expected, n)) in bins.iter().enumerate() {
        // The variance of a sum of Poisson numbers is its mean; the profile has steps of 1/16 pixel.
        let tolerance = 5.0 * expected.sqrt() + 0.02 * expected;
        assert!(
            (found - expected).abs() < tolerance,
            "{radius}: {found} {expected} {n}"
        );
    }
    let at = |radius: f64| bins[radius as usize].0 / bins[radius as usize].2;
    assert!(at(radii[0]) > 1.5 && at(radii[0] - 20.0) < 0.3);
}

#[test]
fn some_images_have_no_peaks() {
    let mut config = config(Pattern {
        hit_rate: 0.3,
        peaks: 2,
        ..Pattern::default()
    });
    config.stack = 1000;
    config.detector = Detector::Moench;
    let synthesis = Synthesis::new(&config).unwrap();
    let truth = synthesis.truth();
    let hits = truth
        .images
        .iter()
        .filter(|image| !image.peaks.is_empty())
        .count();
    // 300 +- 14.5
    assert!((240..360).contains(&hits), "{hits}");
}

/// Bad pixels are in the mask, have codes whatever the photons are, and no others have these.
#[test]
fn bad_pixels_are_masked() {
    let config = config(Pattern {
        bad_pixels: 400,
        ..Pattern::default()
    });
    let images = [0, 1].map(|n| module(&config, StackImage::Light(n), 0));
    let mask = images[0].2.mask();
    assert!(mask.iter().all(|bad| *bad < 2));
    assert_eq!(mask.iter().map(|bad| u32::from(*bad)).sum::<u32>(), 400);
    let mut codes = [0; 4];
    for (pixel, bad) in mask.iter().enumerate() {
        let raws = [&images[0].1, &images[1].1].map(|raw| raw[pixel]);
        if *bad == 1 {
            assert_eq!(raws[0], raws[1]);
            let known = [0, 0x3fff, 0xffff, 0x4000];
            codes[known.iter().position(|code| *code == raws[0]).unwrap()] += 1;
        } else {
            assert!(
                raws.iter()
                    .all(|raw| ![0, 0x3fff, 0xffff, 0x4000].contains(raw))
            );
        }
    }
    assert_eq!(codes, [100; 4]);
}

/// A pixel of more photons than G2 can measure is saturated; one of EIGER counts up to 4095.
#[test]
fn pixels_saturate() {
    let pattern = Pattern {
        background: 10_000.0,
        peaks: 0,
        bad_pixels: 0,
        ..Pattern::default()
    };
    let (_, raw, _) = module(&config(pattern), StackImage::Light(0), 0);
    let saturated = raw.iter().filter(|raw| **raw == 0xc000).count();
    // 14 100 / 1.43 = 9861 photons are the most; the spread of the gain is 1.5 %.
    assert!(
        (0.6..0.95).contains(&(saturated as f64 / raw.len() as f64)),
        "{saturated}"
    );
    assert!(raw.iter().all(|raw| raw >> 14 == 3 && *raw != 0xffff));

    for (detector, most, pixels) in [
        (Detector::Eiger, 4095, 256 * 512),
        (Detector::Moench, 16_383, 160_000),
    ] {
        let config = ImagesConfig {
            detector,
            ..config(pattern)
        };
        let (_, raw, response) = module(&config, StackImage::Light(0), 0);
        assert_eq!(raw.len(), pixels);
        assert!(raw.iter().all(|raw| *raw == most));
        assert_eq!(response.pedestals(1), [] as [f32; 0]);
    }
}

#[test]
fn eiger_counts_photons() {
    let config = ImagesConfig {
        detector: Detector::Eiger,
        ..config(Pattern {
            bad_pixels: 0,
            ..Pattern::default()
        })
    };
    let (photons, raw, response) = module(&config, StackImage::Light(0), 0);
    assert!(
        photons
            .iter()
            .zip(&raw)
            .all(|(photons, raw)| *photons == u32::from(*raw))
    );
    assert!(photons.iter().any(|photons| *photons > 50));
    assert_eq!(response.readout().gains(), 0);
}

/// Modules and seeds have calibrations of their own.
#[test]
fn the_calibration_is_that_of_seed_and_module() {
    let config = config(Pattern::default());
    let of = |seed, module| {
        let config = ImagesConfig {
            seed,
            ..config.clone()
        };
        Response::new(&config, Shape::JUNGFRAU_MODULE, module)
    };
    assert_eq!(of(1, 0).pedestals(0), of(1, 0).pedestals(0));
    assert_ne!(of(1, 0).pedestals(0), of(1, 1).pedestals(0));
    assert_ne!(of(1, 0).gains(1), of(2, 0).gains(1));
    assert_ne!(of(1, 0).mask(), of(1, 1).mask());
}

/// Pedestals have the mean and the spread of those of a recorded module.
#[test]
fn pedestals_are_like_recorded_ones() {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let response = Response::new(&ImagesConfig::default(), Shape::JUNGFRAU_MODULE, 0);
    for gain in 0..3 {
        let path = data.join(format!("jungfrau/mod5_pedeG{gain}.bin"));
        let Ok(bytes) = fs::read(&path) else {
            println!("skipped: no recorded data");
            return;
        };
        let recorded = bytes
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f64::from(f32::from_le_bytes(*bytes)));
        // Some pixels of the module are broken.
        let recorded: Vec<f64> = recorded
            .filter(|value| (1000.0..16_000.0).contains(value))
            .collect();
        let ours: Vec<f64> = response
            .pedestals(gain)
            .iter()
            .map(|value| f64::from(*value))
            .collect();
        let distance = (mean(&ours) - mean(&recorded)).abs();
        assert!(distance < 120.0, "gain {gain}: {distance}");
        let ratio = deviation(&ours) / deviation(&recorded);
        assert!((0.5..1.5).contains(&ratio), "gain {gain}: {ratio}");
    }
}
