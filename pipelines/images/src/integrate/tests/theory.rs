//! Images whose curves are known.

use std::f64::consts::PI;

use super::*;

#[test]
fn a_flat_image_is_one_in_every_bin() {
    let image = vec![1_i16; SHAPE.pixels()];
    for geometry in [GEOMETRY, TILTED] {
        for split in SPLITS {
            let curve = integrate(SHAPE, &geometry, &config(split, 100), None, &image);
            assert!(curve.mean.iter().all(|&mean| apart(mean, 1.0) < 1e-12));
            assert!(curve.count.iter().all(|&count| count > 0.0));
            assert_eq!(curve.signal, curve.normalisation);
        }
    }
}

#[test]
fn an_image_of_the_coordinate_is_the_coordinate() {
    let image: Vec<f32> = centres(SHAPE)
        .map(|centre| two_theta(&GEOMETRY, centre) as f32)
        .collect();
    for (split, bins) in [(Split::No, 80), (Split::Full, 80), (Split::Full, 700)] {
        let mut integrator = Integrator::new(SHAPE, &GEOMETRY, &config(split, bins), None).unwrap();
        let radial = integrator.radial().to_vec();
        let width = radial[1] - radial[0];
        let curve = integrator.integrate(&image, Variance::Poisson).unwrap();
        // Half a bin and, with splitting, half the diagonal of a pixel.
        let pixel = match split {
            Split::No => 0.0,
            Split::Full => 75e-6 * 0.5_f64.sqrt() / GEOMETRY.dist,
        };
        for (mean, radial) in curve.mean.iter().zip(radial) {
            assert!((mean - radial).abs() < (0.5 * width + pixel) * 1.001);
        }
    }
}

#[test]
fn units_are_functions_of_the_angle() {
    let radial = |unit, range| {
        let config = IntegrationConfig {
            unit,
            range: Some(range),
            ..config(Split::No, 1)
        };
        // One pixel, far from the beam: the bin is where the coordinate says.
        let shape = Shape {
            rows: 1,
            columns: 1,
        };
        integrate(shape, &GEOMETRY, &config, None, &[1.0_f32]).count[0]
    };
    let angle = two_theta(&GEOMETRY, (0.5, 0.5));
    let q = 4.0 * PI * (angle / 2.0).sin() / 0.1;
    for (unit, value) in [
        (RadialUnit::TwoThetaRad, angle),
        (RadialUnit::TwoThetaDeg, angle.to_degrees()),
        (RadialUnit::RadiusMm, 100.0 * angle.tan()),
        (RadialUnit::QPerNm, q),
        (RadialUnit::QPerAngstrom, q / 10.0),
    ] {
        assert_eq!(
            radial(unit, (value * (1.0 - 1e-9), value * 1.1)),
            1.0,
            "{unit:?}"
        );
        assert_eq!(
            radial(unit, (value * (1.0 + 1e-9), value * 1.1)),
            0.0,
            "{unit:?}"
        );
    }
}

#[test]
fn rotations_move_the_beam() {
    // Rotation 1 moves the beam by -dist tan(rot1) along axis 2, rotation 2 by dist tan(rot2) /
    // cos(rot1) along axis 1; a rotation about the beam does not change a curve.
    let (rot1, rot2) = (0.1_f64, -0.2_f64);
    let row = (0.005 + 0.1 * rot2.tan() / rot1.cos()) / 75e-6;
    let column = (0.009 - 0.1 * rot1.tan()) / 75e-6;
    let placed = super::super::geometry::Placed::new(&Geometry {
        rot1,
        rot2,
        rot3: 0.7,
        ..GEOMETRY
    });
    let [y, x, z] = placed.position(row, column);
    assert!(y.abs() < 1e-12 && x.abs() < 1e-12);
    assert!(apart(z, 0.1 / rot1.cos() / rot2.cos()) < 1e-12);
    let image: Vec<f32> = (0..SHAPE.pixels()).map(|i| (i % 97) as f32).collect();
    let curve = |rot3| {
        let geometry = Geometry { rot3, ..TILTED };
        integrate(SHAPE, &geometry, &config(Split::Full, 50), None, &image)
    };
    for (a, b) in curve(0.0).mean.iter().zip(&curve(1.2).mean) {
        assert!(apart(*a, *b) < 1e-4);
    }
}

#[test]
fn full_splitting_counts_each_pixel_once() {
    let image = vec![2.5_f32; SHAPE.pixels()];
    let mask: Vec<_> = (0..SHAPE.pixels()).map(|i| i % 7 == 0).collect();
    let used = mask.iter().filter(|&&mask| !mask).count() as f64;
    for geometry in [GEOMETRY, TILTED] {
        for bins in [1, 2, 50, 3000] {
            let curve = integrate(
                SHAPE,
                &geometry,
                &config(Split::Full, bins),
                Some(&mask),
                &image,
            );
            let sum = |of: &[f64]| of.iter().sum::<f64>();
            assert!(apart(sum(&curve.count), used) < 1e-7);
            assert!(apart(sum(&curve.normalisation), used) < 1e-7);
            assert!(apart(sum(&curve.signal), 2.5 * used) < 1e-7);
        }
    }
}

#[test]
fn corrections_normalise_what_they_describe() {
    // Flat fluorescence: each pixel gets photons in proportion to its solid angle. Thomson
    // scattering, too, in proportion to the polarisation, whose formula here is that of the
    // components of the field: 1 - sin^2(2theta) cos^2(azimuth) along axis 2.
    for (polarisation, solid_angle) in [(None, true), (Some(1.0), false), (Some(-0.5), true)] {
        let image: Vec<f32> = centres(SHAPE)
            .map(|centre| {
                let angle = two_theta(&GEOMETRY, centre);
                let y = centre.0 * 75e-6 - GEOMETRY.poni1;
                let x = centre.1 * 75e-6 - GEOMETRY.poni2;
                let along = |cos: f64| 1.0 - (angle.sin() * cos).powi(2);
                let factor = polarisation.unwrap_or(0.0);
                let of = 0.5 * (1.0 + factor) * along(x / x.hypot(y))
                    + 0.5 * (1.0 - factor) * along(y / x.hypot(y));
                let polarised = polarisation.map_or(1.0, |_| of);
                (100.0
                    * polarised
                    * if solid_angle {
                        angle.cos().powi(3)
                    } else {
                        1.0
                    }) as f32
            })
            .collect();
        for split in SPLITS {
            let config = IntegrationConfig {
                solid_angle,
                polarisation,
                ..config(split, 64)
            };
            let curve = integrate(SHAPE, &GEOMETRY, &config, None, &image);
            for mean in &curve.mean {
                assert!(
                    apart(*mean, 100.0) < 1e-6,
                    "{polarisation:?} {solid_angle}: {mean}"
                );
            }
        }
    }
}

#[test]
fn many_equal_pixels_are_summed_without_drift() {
    // In single precision, a sum of 4 million times 0.1 is wrong by some percent.
    let shape = Shape {
        rows: 2048,
        columns: 2048,
    };
    let image = vec![0.1_f32; shape.pixels()];
    let curve = integrate(shape, &GEOMETRY, &config(Split::No, 1), None, &image);
    assert!(apart(curve.mean[0], f64::from(0.1_f32)) < 1e-9);
    assert_eq!(curve.count[0], 2048.0 * 2048.0);
    assert!(apart(curve.sigma[0], 1.0 / 2048.0) < 1e-9);
}
