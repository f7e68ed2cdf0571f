//! Configurations and images that are refused, and bins without pixels.

use super::super::{IntegrationError, MAX_BINS};
use super::*;

fn refusal(
    shape: Shape,
    geometry: &Geometry,
    config: &IntegrationConfig,
    mask: Option<&[bool]>,
) -> IntegrationError {
    Integrator::new(shape, geometry, config, mask)
        .err()
        .expect("it is accepted")
}

#[test]
fn geometries_out_of_range_are_refused() {
    type Field = fn(&mut Geometry) -> &mut f64;
    let fields: [(&str, Field, &[f64]); 8] = [
        (
            "dist",
            |g| &mut g.dist,
            &[0.0, -0.1, f64::NAN, f64::INFINITY, 1e-200],
        ),
        ("pixel1", |g| &mut g.pixel1, &[0.0, -75e-6, f64::NAN]),
        ("pixel2", |g| &mut g.pixel2, &[0.0, f64::NAN]),
        ("poni1", |g| &mut g.poni1, &[f64::NAN, f64::INFINITY]),
        ("poni2", |g| &mut g.poni2, &[f64::NAN]),
        ("rot1", |g| &mut g.rot1, &[f64::NAN, f64::NEG_INFINITY]),
        ("rot2", |g| &mut g.rot2, &[f64::NAN]),
        ("rot3", |g| &mut g.rot3, &[f64::NAN]),
    ];
    for (name, field, values) in fields {
        for &value in values {
            let mut geometry = GEOMETRY;
            *field(&mut geometry) = value;
            let error = refusal(SHAPE, &geometry, &config(Split::No, 10), None);
            assert!(
                matches!(error, IntegrationError::Geometry { name: found, .. } if found == name)
            );
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("geometry: {name} is {value}: it must be ")),
                "{text}"
            );
        }
    }
    let geometry = Geometry {
        wavelength: Some(0.0),
        ..GEOMETRY
    };
    let error = refusal(SHAPE, &geometry, &config(Split::No, 10), None);
    assert!(matches!(
        error,
        IntegrationError::Geometry {
            name: "wavelength",
            ..
        }
    ));
    let geometry = Geometry {
        wavelength: None,
        ..GEOMETRY
    };
    let q = IntegrationConfig {
        unit: RadialUnit::QPerNm,
        ..config(Split::No, 10)
    };
    assert_eq!(
        refusal(SHAPE, &geometry, &q, None),
        IntegrationError::NoWavelength
    );
    assert!(Integrator::new(SHAPE, &geometry, &config(Split::No, 10), None).is_ok());
}

#[test]
fn options_out_of_range_are_refused() {
    for split in SPLITS {
        let options = config(split, 10);
        let of = |options: IntegrationConfig| refusal(SHAPE, &GEOMETRY, &options, None);
        for bins in [0, MAX_BINS + 1, usize::MAX] {
            assert_eq!(of(config(split, bins)), IntegrationError::Bins(bins));
        }
        for range in [
            (1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (0.0, f64::INFINITY),
        ] {
            let error = of(IntegrationConfig {
                range: Some(range),
                ..options
            });
            assert!(matches!(error, IntegrationError::Range(..)));
        }
        for factor in [1.1, -2.0, f64::NAN] {
            let error = of(IntegrationConfig {
                polarisation: Some(factor),
                ..options
            });
            assert!(matches!(error, IntegrationError::Polarisation(_)));
        }
        for (rows, columns) in [(0, 5), (5, 0), (usize::MAX, 2), (1 << 15, 1 << 15)] {
            let shape = Shape { rows, columns };
            assert_eq!(
                refusal(shape, &GEOMETRY, &options, None),
                IntegrationError::Shape(shape)
            );
        }
        let mask = vec![true; SHAPE.pixels()];
        assert_eq!(
            refusal(SHAPE, &GEOMETRY, &options, Some(&mask)),
            IntegrationError::AllMasked
        );
        let pixels = SHAPE.pixels();
        let error = refusal(SHAPE, &GEOMETRY, &options, Some(&mask[1..]));
        assert_eq!(error, IntegrationError::Mask(pixels - 1, pixels));
    }
    // Some thousand pixels, each in all bins.
    let narrow = IntegrationConfig {
        range: Some((0.1, 0.1001)),
        ..config(Split::Full, MAX_BINS)
    };
    let error = refusal(SHAPE, &GEOMETRY, &narrow, None);
    assert!(matches!(error, IntegrationError::Shares(_)), "{error}");
}

#[test]
fn images_of_another_size_are_refused() {
    let mut integrator = Integrator::new(SHAPE, &GEOMETRY, &config(Split::No, 10), None).unwrap();
    let pixels = SHAPE.pixels();
    let image = vec![1.0_f32; pixels + 1];
    for length in [0, pixels - 1, pixels + 1] {
        let result = integrator.integrate(&image[..length], Variance::Poisson);
        assert_eq!(result.err(), Some(IntegrationError::Image(length, pixels)));
        let result = integrator.integrate(&image[..pixels], Variance::Image(&image[..length]));
        assert_eq!(
            result.err(),
            Some(IntegrationError::Variance(length, pixels))
        );
    }
    assert!(
        integrator
            .integrate(&image[..pixels], Variance::Image(&image[..pixels]))
            .is_ok()
    );
}

#[test]
fn bins_without_pixels_are_zero() {
    let image = vec![3_i16; SHAPE.pixels()];
    for split in SPLITS {
        // Beyond all pixels.
        let outside = IntegrationConfig {
            range: Some((2.0, 3.0)),
            ..config(split, 10)
        };
        let curve = integrate(SHAPE, &GEOMETRY, &outside, None, &image);
        assert_eq!(curve, Curve::new(10));
        let is_empty = |config: &IntegrationConfig| {
            let integrator = Integrator::new(SHAPE, &GEOMETRY, config, None);
            integrator.unwrap().is_empty()
        };
        assert!(is_empty(&outside) && !is_empty(&config(split, 10)));
        // A range with a pixel, and one that is masked as a whole.
        let mask = vec![true; SHAPE.pixels()];
        let inside = IntegrationConfig {
            range: Some((0.0, 1.0)),
            ..config(split, 10)
        };
        assert_eq!(
            integrate(SHAPE, &GEOMETRY, &inside, Some(&mask), &image),
            Curve::new(10)
        );
        // All pixels bad.
        let bad = vec![i16::BAD; SHAPE.pixels()];
        assert_eq!(
            integrate(SHAPE, &GEOMETRY, &inside, None, &bad),
            Curve::new(10)
        );
    }
}

#[test]
fn configurations_are_read_by_the_names_of_pyfai() {
    let text = r#"{"unit": "2th_deg", "bins": 500, "range": [1, 20.5], "split": "full", "solid_angle": false}"#;
    let read: IntegrationConfig = serde_json::from_str(text).unwrap();
    let expected = IntegrationConfig {
        unit: RadialUnit::TwoThetaDeg,
        range: Some((1.0, 20.5)),
        ..config(Split::Full, 500)
    };
    assert_eq!(read, expected);
    for unit in ["q_nm^-1", "q_A^-1", "2th_rad", "2th_deg", "r_mm"] {
        let read: RadialUnit = serde_json::from_str(&format!("\"{unit}\"")).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), format!("\"{unit}\""));
    }
    let text = r#"{"dist": 0.1, "poni1": 0.005, "poni2": 0.009, "pixel1": 75e-6, "pixel2": 75e-6, "wavelength": 1e-10}"#;
    assert_eq!(serde_json::from_str::<Geometry>(text).unwrap(), GEOMETRY);
    assert!(serde_json::from_str::<Geometry>(&text.replace("dist", "distance")).is_err());
}
