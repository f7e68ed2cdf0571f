use proptest::prelude::*;

use super::*;
use crate::Pixel;

fn veto(min_photons: f32, min_pixels: usize, simd: Simd) -> Veto {
    let cfg = VetoConfig {
        min_photons,
        min_pixels,
    };
    Veto::with_simd(cfg, simd).unwrap()
}

#[test]
fn saturated_pixels_count_and_bad_ones_do_not() {
    for simd in Simd::all() {
        let veto = veto(5.0, 3, simd);
        let image = [i16::BAD, i16::SATURATED, 4, 5, 6, -5];
        assert_eq!(veto.count(&image), 3);
        let image = [i32::BAD, i32::SATURATED, 4, 5, 6, -5];
        assert_eq!(veto.count(&image), 3);
        let image = [f32::BAD, f32::SATURATED, 4.99, 5.0, 5.01, -5.0];
        assert_eq!(veto.count(&image), 3);
        assert!(veto.accepts(3));
        assert!(!veto.accepts(2));
    }
}

#[test]
fn thresholds_that_are_no_number_are_refused() {
    for min_photons in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let cfg = VetoConfig {
            min_photons,
            min_pixels: 1,
        };
        let error = Veto::new(cfg).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("min_photons is {min_photons}: set a finite number of photons")
        );
    }
}

proptest! {
    #[test]
    fn counts_are_those_of_the_photons(
        bits in prop::collection::vec(any::<u32>(), 0..3000),
        threshold in prop_oneof![-40_000.0..40_000.0f32, -3e9..3e9f32, -10.0..10.0f32],
    ) {
        fn check<P: Output>(image: &[P], threshold: f32) -> Result<(), TestCaseError> {
            // Above the range of an integer, only saturated pixels are left.
            let count = image.iter().filter(|pixel| pixel.photons() >= threshold).count();
            for simd in Simd::all() {
                prop_assert_eq!(veto(threshold, 1, simd).count(image), count, "{:?}", simd);
            }
            Ok(())
        }
        check(&bits.iter().map(|&bits| bits as i16).collect::<Vec<_>>(), threshold)?;
        check(&bits.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>(), threshold)?;
        // Whole numbers that an `f32` has.
        let image: Vec<_> = bits.iter().map(|&bits| (bits as i32) >> 8 << 8).collect();
        check(&image, threshold)?;
    }
}
