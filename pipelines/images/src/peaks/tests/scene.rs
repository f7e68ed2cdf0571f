//! Synthetic images: Poisson noise over a radial profile, and spots.

use rand::RngExt;
use rand_distr::{Distribution, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Shape;

/// A spot: a Gaussian.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) row: f64,
    pub(super) column: f64,
    /// Expected number of photons.
    pub(super) photons: f64,
    /// Standard deviation, in pixels.
    pub(super) width: f64,
}

impl Spot {
    fn expected(&self, row: usize, column: usize) -> f64 {
        let (y, x) = (row as f64 - self.row, column as f64 - self.column);
        let variance = self.width * self.width;
        let density = (-(y * y + x * x) / (2.0 * variance)).exp();
        self.photons * density / (2.0 * std::f64::consts::PI * variance)
    }
}

/// A number of photons.
pub(super) fn poisson(rng: &mut Xoshiro256PlusPlus, mean: f64) -> f64 {
    Poisson::new(mean).map_or(0.0, |poisson| poisson.sample(rng))
}

/// An image in photons, with the given mean of the background at each pixel.
pub(super) fn image(
    rng: &mut Xoshiro256PlusPlus,
    shape: Shape,
    background: impl Fn(usize, usize) -> f64,
    spots: &[Spot],
) -> Vec<f64> {
    let places = (0..shape.rows).flat_map(|row| (0..shape.columns).map(move |c| (row, c)));
    let mut means: Vec<f64> = places
        .map(|(row, column)| background(row, column))
        .collect();
    for spot in spots {
        let around = |at: f64, end: usize| {
            let reach = 6.0 * spot.width;
            (at - reach).max(0.0) as usize..((at + reach) as usize + 1).min(end)
        };
        for row in around(spot.row, shape.rows) {
            for column in around(spot.column, shape.columns) {
                means[row * shape.columns + column] += spot.expected(row, column);
            }
        }
    }
    means.into_iter().map(|mean| poisson(rng, mean)).collect()
}

/// Spots at random places, at least so many pixels from each other and from the borders.
pub(super) fn spots(
    rng: &mut Xoshiro256PlusPlus,
    shape: Shape,
    count: usize,
    apart: f64,
    spot: impl Fn(&mut Xoshiro256PlusPlus, f64, f64) -> Spot,
) -> Vec<Spot> {
    let mut spots: Vec<Spot> = Vec::new();
    while spots.len() < count {
        let row = rng.random_range(apart..shape.rows as f64 - apart);
        let column = rng.random_range(apart..shape.columns as f64 - apart);
        if spots
            .iter()
            .all(|s| (s.row - row).hypot(s.column - column) > apart)
        {
            let spot = spot(rng, row, column);
            spots.push(spot);
        }
    }
    spots
}
