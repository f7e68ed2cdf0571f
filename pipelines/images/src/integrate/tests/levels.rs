//! Equal results with all sets of instructions, and for all types of pixels.

use pollux_pipelines::simd::Simd;
use proptest::prelude::*;

use super::*;

/// Every bit of the sums.
fn bits(curve: &Curve) -> Vec<u64> {
    let lists = [
        &curve.signal,
        &curve.normalisation,
        &curve.variance,
        &curve.count,
        &curve.mean,
        &curve.sigma,
    ];
    lists
        .into_iter()
        .flatten()
        .map(|value| value.to_bits())
        .collect()
}

fn all_agree<P: Pixel>(
    shape: Shape,
    geometry: &Geometry,
    config: &IntegrationConfig,
    image: &[P],
) -> Curve {
    let variance: Vec<f32> = (0..image.len()).map(|i| (i % 13) as f32 + 0.5).collect();
    let curve = |simd| {
        let mut integrator = Integrator::with_simd(simd, shape, geometry, config, None).unwrap();
        let of_image = bits(
            integrator
                .integrate(image, Variance::Image(&variance))
                .unwrap(),
        );
        (
            integrator
                .integrate(image, Variance::Poisson)
                .unwrap()
                .clone(),
            of_image,
        )
    };
    let (expected, expected_of_image) = curve(Simd::SCALAR);
    for simd in Simd::all() {
        let (found, of_image) = curve(simd);
        assert_eq!(bits(&found), bits(&expected), "{simd:?} {shape}");
        assert_eq!(of_image, expected_of_image, "{simd:?} {shape}");
    }
    expected
}

#[test]
fn awkward_sizes_agree_bit_by_bit() {
    for (rows, columns) in [
        (1, 1),
        (1, 15),
        (3, 5),
        (1, 1023),
        (2, 512),
        (5, 205),
        (33, 127),
    ] {
        let shape = Shape { rows, columns };
        let image: Vec<f32> = (0..shape.pixels())
            .map(|i| match i % 11 {
                3 => f32::BAD,
                5 => f32::SATURATED,
                7 => f32::NEG_INFINITY,
                _ => i as f32 * 0.37 - 3.0,
            })
            .collect();
        for split in SPLITS {
            let config = IntegrationConfig {
                polarisation: Some(0.9),
                solid_angle: true,
                ..config(split, 17)
            };
            let curve = all_agree(shape, &TILTED, &config, &image);
            let counting = image.iter().filter(|photons| photons.is_finite()).count() as f64;
            assert!(apart(curve.count.iter().sum(), counting) < 1e-6);
        }
    }
}

#[test]
fn types_of_pixels_agree() {
    let counts: Vec<i16> = (0..SHAPE.pixels())
        .map(|i| match i % 50 {
            7 => i16::BAD,
            9 => i16::SATURATED,
            n => n as i16 - 5,
        })
        .collect();
    let as_i32: Vec<i32> = counts
        .iter()
        .map(|&n| match n {
            i16::BAD => i32::BAD,
            i16::SATURATED => i32::SATURATED,
            n => n.into(),
        })
        .collect();
    let as_f32: Vec<f32> = counts.iter().map(|n| n.photons()).collect();
    for split in SPLITS {
        let config = config(split, 60);
        let curve = all_agree(SHAPE, &GEOMETRY, &config, &counts);
        assert_eq!(curve, all_agree(SHAPE, &GEOMETRY, &config, &as_i32));
        assert_eq!(curve, all_agree(SHAPE, &GEOMETRY, &config, &as_f32));
        // Bad pixels are as good as masked ones, and images do not depend on the ones before.
        let mask: Vec<bool> = counts.iter().map(|n| !n.is_valid()).collect();
        let geometry = Geometry { ..GEOMETRY };
        let range = Some((0.0, 0.3));
        let config = IntegrationConfig { range, ..config };
        let masked = integrate(SHAPE, &geometry, &config, Some(&mask), &counts);
        assert_eq!(masked, integrate(SHAPE, &geometry, &config, None, &counts));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any position of the detector: sums are conserved, and equal with all sets of instructions.
    #[test]
    fn any_geometry(
        (poni1, poni2) in (-0.01..0.01, -0.01..0.01),
        (rot1, rot2, rot3) in (-4.0..4.0, -4.0..4.0, -4.0..4.0),
        dist in 0.001..1.0,
        bins in 1_usize..200,
        full: bool,
    ) {
        let shape = Shape { rows: 19, columns: 71 };
        let geometry = Geometry { dist, poni1, poni2, rot1, rot2, rot3, ..GEOMETRY };
        let split = if full { Split::Full } else { Split::No };
        let image: Vec<i16> = (0..shape.pixels()).map(|i| (i % 100) as i16).collect();
        let all: f64 = image.iter().copied().map(f64::from).sum();
        let curve = all_agree(shape, &geometry, &config(split, bins), &image);
        prop_assert!(apart(curve.signal.iter().sum(), all) < 1e-5);
        prop_assert!(apart(curve.count.iter().sum(), shape.pixels() as f64) < 1e-5);
    }
}
