use proptest::prelude::*;
use zerocopy::IntoBytes as _;

use super::*;
use crate::Pixel;
use crate::calibration::tests::Recorded;
use crate::calibration::{Gain, Map, Reading, TrackingConfig};

mod real;

/// Values of one pixel: pedestals, gains, and whether it is bad.
#[derive(Clone, Copy, Debug)]
struct Values {
    pedestals: [f32; 3],
    gains: [f32; 3],
    bad: bool,
}

/// Those of a usual pixel.
const USUAL: Values = Values {
    pedestals: [2446.41, 13_584.04, 14_100.36],
    gains: [506.7, -17.97, -1.43],
    bad: false,
};

/// A calibration of pixels in one row.
fn calibration(pixels: &[Values]) -> Calibration {
    let shape = Shape {
        rows: 1,
        columns: pixels.len(),
    };
    let map = |value: &dyn Fn(&Values) -> f32| Map::new("map", pixels.iter().map(value).collect());
    Calibration::new(
        shape,
        [0, 1, 2].map(|gain: usize| map(&|pixel| pixel.pedestals[gain])),
        [0, 1, 2].map(|gain: usize| map(&|pixel| pixel.gains[gain])),
        pixels.iter().map(|pixel| pixel.bad).collect(),
    )
    .unwrap()
}

/// Photons in double precision: NaN for bad pixels, +infinity for saturated ones.
fn oracle(raw: u16, pixel: &Values) -> f64 {
    match Reading::from(raw) {
        _ if pixel.bad => f64::NAN,
        Reading::Invalid => f64::NAN,
        Reading::Saturated => f64::INFINITY,
        Reading::Adu(gain, adu) => {
            let [pedestal, gain] = [pixel.pedestals, pixel.gains].map(|map| map[gain as usize]);
            (f64::from(adu) - f64::from(pedestal)) / f64::from(gain)
        }
    }
}

/// How far a result may be from the oracle, as the documentation of the module says. `least` is the
/// smallest gain of G0 in the block.
fn bound(raw: u16, pixel: &Values, least: f32) -> f64 {
    match Reading::from(raw) {
        Reading::Adu(Gain::G0, adu) => {
            let signal = (f64::from(adu) - f64::from(pixel.pedestals[0])).abs() + 0.125;
            0.125 / f64::from(pixel.gains[0]) + signal / f64::from(least) / 65534.0
        }
        _ => 0.0,
    }
}

/// Converts with all sets of instructions, which agree bit by bit.
fn convert<P: Output>(calibration: &Calibration, raw: &[u16], bits: fn(&P) -> u64) -> Vec<P> {
    let run = |simd| {
        let mut out = vec![P::SATURATED; raw.len()];
        let converter = Converter::with_simd(calibration, simd);
        converter.convert(0, raw.as_bytes(), &mut out).unwrap();
        out
    };
    let all_bits = |out: &[P]| out.iter().map(bits).collect::<Vec<_>>();
    let expected = run(Simd::SCALAR);
    for simd in Simd::all() {
        assert_eq!(all_bits(&run(simd)), all_bits(&expected), "{simd:?}");
    }
    expected
}

fn to_i16(calibration: &Calibration, raw: &[u16]) -> Vec<i16> {
    convert(calibration, raw, |&pixel| pixel as u64)
}

fn to_i32(calibration: &Calibration, raw: &[u16]) -> Vec<i32> {
    convert(calibration, raw, |&pixel| pixel as u64)
}

fn to_f32(calibration: &Calibration, raw: &[u16]) -> Vec<f32> {
    convert(calibration, raw, |pixel| pixel.to_bits().into())
}

/// An integer as [`Output`] says, by casts.
fn rounded(photons: f32, largest: f64) -> f64 {
    f64::from(photons)
        .round_ties_even()
        .clamp(-largest, largest)
}

/// Compares all outputs with the oracle, and the integers with the `f32`.
fn check(pixels: &[Values], raw: &[u16]) -> Result<(), TestCaseError> {
    let calibration = calibration(pixels);
    let photons = to_f32(&calibration, raw);
    for (n, (&photons, pixel)) in photons.iter().zip(pixels).enumerate() {
        let (raw, expected) = (raw[n], oracle(raw[n], pixel));
        let block = pixels[n / 64 * 64..].iter().take(64);
        let good = block.filter(|pixel| !pixel.bad);
        let least = good.map(|pixel| pixel.gains[0]).fold(f32::MAX, f32::min);
        let exact = expected.is_nan() && photons.is_nan()
            || expected.is_infinite() && photons.is_infinite();
        let error = (f64::from(photons) - expected).abs();
        // Two roundings of the result and one of the inverse gain, and that of the difference.
        let rounding = expected.abs() * 2.5e-7 + 1e-3 / f64::from(pixel.gains[2].abs());
        let allowed = bound(raw, pixel, least) + rounding;
        prop_assert!(
            exact || error <= allowed,
            "{raw:#x} of {pixel:?}: {photons} instead of {expected}, {error} > {allowed}"
        );
    }
    let integers = to_i16(&calibration, raw).into_iter().zip(&photons);
    for (integer, &photons) in integers {
        let expected = match photons {
            _ if photons.is_nan() => i16::BAD,
            photons => rounded(photons, 32767.0) as i16,
        };
        prop_assert_eq!(integer, expected, "{}", photons);
    }
    for (integer, photons) in to_i32(&calibration, raw).into_iter().zip(photons) {
        let expected = match photons {
            _ if photons.is_nan() => i32::BAD,
            photons => rounded(photons, 2_147_483_647.0) as i32,
        };
        prop_assert_eq!(integer, expected, "{}", photons);
    }
    Ok(())
}

#[test]
fn every_raw_value_is_converted_as_in_double_precision() {
    let raw: Vec<u16> = (0..=u16::MAX).collect();
    let small = Values {
        pedestals: [16383.0, 0.0, 8000.125],
        gains: [0.01, -0.01, -1e-6],
        bad: false,
    };
    let bad = Values {
        gains: [0.0, f32::NAN, f32::INFINITY],
        bad: true,
        ..USUAL
    };
    for pixel in [USUAL, small, bad] {
        check(&vec![pixel; raw.len()], &raw).unwrap();
    }
}

#[test]
fn codes_are_kept() {
    // The bad pixel is bad whatever it reads; a negative number below the range is no code.
    let raw = [2446, 0xC000, 0x4000, 0xFFFF, 0x8000, 0xBFFF, 0xC001, 0x7FFF];
    let tiny = Values {
        gains: [506.7, -1e-3, -1e-3],
        ..USUAL
    };
    for bad in [false, true] {
        let calibration = calibration(&[Values { bad, ..tiny }; 8]);
        let (bad_code, saturated) = (i16::BAD, i16::SATURATED);
        let expected = [
            0, saturated, bad_code, bad_code, bad_code, bad_code, saturated, -32767,
        ];
        let expected = if bad { [bad_code; 8] } else { expected };
        assert_eq!(to_i16(&calibration, &raw), expected);
        let wide = to_i32(&calibration, &raw);
        let photons = to_f32(&calibration, &raw);
        for n in 0..8 {
            assert_eq!(wide[n].photons().is_nan(), expected[n] == i16::BAD);
            assert_eq!(photons[n].is_nan(), expected[n] == i16::BAD);
            assert_eq!(wide[n] == i32::SATURATED, n == 1 && !bad);
            assert_eq!(photons[n] == f32::SATURATED, n == 1 && !bad);
        }
    }
}

#[test]
fn integers_are_rounded_to_the_nearest_and_ties_to_even() {
    let numbers = [
        (0.5, 0),
        (1.5, 2),
        (2.5, 2),
        (-0.5, 0),
        (-1.5, -2),
        (-2.5, -2),
        (0.500_000_06, 1),
        (32_766.5, 32_766),
        (32_767.0, i16::MAX),
        (32_766.6, i16::MAX),
        (1e9, i16::MAX),
        (-32_767.5, -32_767),
        (-32_768.0, -32_767),
        (-1e30, -32_767),
    ];
    for (photons, expected) in numbers {
        assert_eq!(i16::from_photons(photons), expected, "{photons}");
        let wide = f64::from(photons).round_ties_even();
        let wide = wide.clamp(-2_147_483_647.0, 2_147_483_647.0) as i32;
        assert_eq!(i32::from_photons(photons), wide, "{photons}");
    }
    assert_eq!(i32::from_photons(4_194_304.5), 4_194_304);
    assert_eq!(i32::from_photons(8_388_607.5), 8_388_608);
    assert_eq!(i32::from_photons(2_147_483_520.0), 2_147_483_520);
    assert_eq!(i32::from_photons(2_147_483_648.0), i32::SATURATED);
    assert_eq!(i32::from_photons(-3e9), -i32::MAX);
    assert_eq!(f32::from_photons(-0.25).to_bits(), (-0.25f32).to_bits());
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let converter = Converter::new(&calibration(&[USUAL; 200]));
    let (raw, mut out, mut marks) = ([0; 500], [0i16; 250], [0; 5]);
    let mut run = |first, bytes, pixels, words| {
        let (out, marks) = (&mut out[..pixels], &mut marks[..words]);
        let mark = converter.convert_and_mark(first, &raw[..bytes], 1.0, out, marks);
        if words == pixels.div_ceil(64) {
            let convert = converter.convert(first, &raw[..bytes], out);
            assert_eq!(convert, mark.map(|_| ()));
        }
        mark.map_err(|error| error.to_string())
    };
    assert_eq!(run(0, 400, 200, 4), Ok(0));
    assert_eq!(run(128, 144, 72, 2), Ok(0));
    assert_eq!(run(192, 16, 8, 1), Ok(0));
    assert_eq!(run(192, 0, 0, 0), Ok(0));
    for (first, bytes, pixels, words, expected) in [
        (0, 398, 200, 4, "398 bytes of raw data for 200 pixels"),
        (0, 401, 200, 4, "401 bytes of raw data for 200 pixels"),
        (0, 402, 200, 4, "402 bytes of raw data for 200 pixels"),
        (0, 402, 201, 4, "pixels 0 to 201 of 1 x 200"),
        (64, 274, 137, 3, "pixels 64 to 201 of 1 x 200"),
        (32, 64, 32, 1, "pixels 32 to 64 of 1 x 200"),
        (
            usize::MAX - 63,
            400,
            200,
            4,
            "pixels 18446744073709551552 to 18446744073709551615",
        ),
        (0, 400, 200, 3, "3 words of marks for 200 pixels"),
        (0, 400, 200, 5, "5 words of marks for 200 pixels"),
    ] {
        let error = run(first, bytes, pixels, words).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn tracked_pedestals_hold_from_the_image_after_they_are_taken_over() {
    let pixels = vec![USUAL; 100];
    let calibration = calibration(&pixels);
    let cfg = TrackingConfig {
        window: 1,
        due_after: 2,
        ..TrackingConfig::default()
    };
    for simd in Simd::all() {
        let mut converter = Converter::with_simd(&calibration, simd);
        let mut tracker = PedestalTracker::with_simd(&calibration, cfg, simd).unwrap();
        let convert = |converter: &Converter| {
            let mut out = [0f32; 100];
            converter
                .convert(0, [2500u16; 100].as_bytes(), &mut out)
                .unwrap();
            out.map(f32::to_bits)
        };
        let before = convert(&converter);
        let expected = (10_000.0 - 9786.0) / 4.0 / 506.7;
        assert!((f32::from_bits(before[99]) - expected).abs() < 1e-5);
        tracker.add([2460u16; 100].as_bytes()).unwrap();
        assert_eq!(converter.follow(&mut tracker), Ok(false));
        assert_eq!(convert(&converter), before);
        tracker.add([2450u16; 100].as_bytes()).unwrap();
        assert_eq!(convert(&converter), before);
        assert_eq!(converter.follow(&mut tracker), Ok(true));
        let after = f32::from_bits(convert(&converter)[99]);
        assert!((after - 50.0 / 506.7).abs() < 1e-5, "{after}");
    }
    let mut converter = Converter::new(&calibration);
    let other = self::calibration(&pixels[1..]);
    let mut tracker = PedestalTracker::new(&other, cfg).unwrap();
    let error = converter.follow(&mut tracker).unwrap_err().to_string();
    assert!(
        error.starts_with("pedestals of 99 pixels for 1 x 100"),
        "{error}"
    );
}

/// Any pixel, of a module of which the gains differ by a factor.
fn any_pixel() -> impl Strategy<Value = Values> {
    let pedestals = [0.0..=16383.0f32, 0.0..=16383.0f32, 0.0..=16383.0f32];
    let gains = (30.0..3000.0f32, -200.0..-0.5f32, -20.0..-0.01f32);
    (pedestals, gains, prop::bool::weighted(0.05)).prop_map(|(pedestals, (g0, g1, g2), bad)| {
        Values {
            pedestals,
            gains: [g0, g1, g2],
            bad,
        }
    })
}

/// A raw pixel: mostly in G0, or any.
fn any_raw() -> impl Strategy<Value = u16> {
    prop_oneof![100 => 0..0x4000u16, 1 => any::<u16>(), 1 => Just(0xC000)]
}

proptest! {
    #[test]
    fn conversions_of_any_calibration_are_right(
        pixels in prop::collection::vec((any_pixel(), any_raw()), 1..300),
    ) {
        let (pixels, raw): (Vec<_>, Vec<_>) = pixels.into_iter().unzip();
        check(&pixels, &raw)?;
    }

    #[test]
    fn marks_are_the_pixels_that_reach_the_threshold(
        pixels in prop::collection::vec((any_pixel(), any_raw()), 1..300),
        threshold in prop_oneof![-5.0..30.0f32, -40_000.0..40_000.0f32, -3e9..3e9f32, (-3..30i8).prop_map(f32::from)],
        start in 0..4usize,
        odd in any::<bool>(),
    ) {
        fn check<P: Output>(
            calibration: &Calibration, raw: &[u8], threshold: f32, start: usize,
        ) -> Result<(), TestCaseError> {
            let pixels = raw.len() / 2;
            let mut whole = vec![P::SATURATED; pixels];
            Converter::new(calibration).convert(0, raw, &mut whole).unwrap();
            let first = (64 * start).min(pixels / 64 * 64);
            for simd in Simd::all() {
                let mut out = vec![P::SATURATED; pixels - first];
                let mut marks = vec![u64::MAX; out.len().div_ceil(64)];
                let converter = Converter::with_simd(calibration, simd);
                let raw = &raw[2 * first..];
                let count = converter.convert_and_mark(first, raw, threshold, &mut out, &mut marks);
                let mut expected = vec![0; marks.len()];
                for (n, pixel) in whole[first..].iter().enumerate() {
                    expected[n / 64] |= u64::from(pixel.photons() >= threshold) << (n % 64);
                }
                let same = out.iter().zip(&whole[first..]).all(|(a, b)| a == b || a != a && b != b);
                prop_assert!(same, "{:?}", simd);
                prop_assert_eq!(&marks, &expected, "{:?}", simd);
                let ones: u32 = expected.iter().map(|word| word.count_ones()).sum();
                prop_assert_eq!(count, Ok(ones as usize));
            }
            Ok(())
        }
        let (pixels, raw): (Vec<_>, Vec<_>) = pixels.into_iter().unzip();
        let calibration = calibration(&pixels);
        // At an odd address or an even one.
        let mut bytes = vec![0; usize::from(odd)];
        bytes.extend_from_slice(raw.as_bytes());
        let bytes = &bytes[usize::from(odd)..];
        check::<i16>(&calibration, bytes, threshold, start)?;
        check::<i32>(&calibration, bytes, threshold, start)?;
        check::<f32>(&calibration, bytes, threshold, start)?;
    }
}
