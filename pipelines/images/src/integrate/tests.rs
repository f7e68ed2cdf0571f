//! Tests of the azimuthal integration: theory, brute force, properties, refusals, recorded frames.

#![allow(clippy::float_cmp)] // sums of integers are exact

mod brute;
mod levels;
mod recorded;
mod refusals;
mod theory;

use super::{Curve, Geometry, IntegrationConfig, Integrator, RadialUnit, Split, Variance};
use crate::{Pixel, Shape};

const SPLITS: [Split; 2] = [Split::No, Split::Full];

/// A detector at 0.1 m, with the beam inside [`SHAPE`].
const GEOMETRY: Geometry = Geometry {
    dist: 0.1,
    poni1: 0.005,
    poni2: 0.009,
    rot1: 0.0,
    rot2: 0.0,
    rot3: 0.0,
    pixel1: 75e-6,
    pixel2: 75e-6,
    wavelength: Some(1e-10),
};

const TILTED: Geometry = Geometry {
    rot1: 0.1,
    rot2: -0.05,
    rot3: 0.3,
    ..GEOMETRY
};

/// Part of a module, which is faster.
const SHAPE: Shape = Shape {
    rows: 128,
    columns: 300,
};

/// In 2theta, without corrections.
fn config(split: Split, bins: usize) -> IntegrationConfig {
    IntegrationConfig {
        unit: RadialUnit::TwoThetaRad,
        bins,
        split,
        solid_angle: false,
        ..IntegrationConfig::default()
    }
}

fn integrate<P: Pixel>(
    shape: Shape,
    geometry: &Geometry,
    config: &IntegrationConfig,
    mask: Option<&[bool]>,
    image: &[P],
) -> Curve {
    let mut integrator = Integrator::new(shape, geometry, config, mask).unwrap();
    let curve = integrator.integrate(image, Variance::Poisson);
    curve.unwrap().clone()
}

/// Row and column of the middle of each pixel, in pixels.
fn centres(shape: Shape) -> impl Iterator<Item = (f64, f64)> {
    let columns = move |row| (0..shape.columns).map(move |column| (row, column));
    (0..shape.rows)
        .flat_map(columns)
        .map(|(row, column)| (row as f64 + 0.5, column as f64 + 0.5))
}

/// 2theta of a point of a detector without rotations, in rad.
fn two_theta(geometry: &Geometry, (row, column): (f64, f64)) -> f64 {
    let y = row * geometry.pixel1 - geometry.poni1;
    let x = column * geometry.pixel2 - geometry.poni2;
    (y.hypot(x) / geometry.dist).atan()
}

/// Relative difference.
fn apart(a: f64, b: f64) -> f64 {
    if a == b {
        0.0
    } else {
        (a - b).abs() / a.abs().max(b.abs())
    }
}
