//! Photons of an image: Bragg peaks at random positions, powder rings and a diffuse background around
//! the beam centre.

use pollux_images::Shape;
use rand::RngExt as _;
use rand_distr::{Distribution as _, Exp, Normal, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::config::Pattern;
use super::random::{Purpose, generator};

/// Points of the radial profile a pixel.
const PROFILE_STEPS: f64 = 16.0;
/// Radius of the outermost ring as a fraction of the longer side of the image.
const OUTERMOST: f64 = 0.45;
/// Fewest photons of a Bragg peak as a fraction of the mean number: fainter ones are not made, since
/// they are no peaks.
const FAINTEST: f64 = 0.1;

/// A Bragg peak.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// Row of its centre; row 0 has its centre at 0.
    pub row: f64,
    /// Column of its centre.
    pub column: f64,
    /// Number of its photons in the image.
    pub photons: u32,
}

/// A powder ring around the beam centre: a Gaussian in the radius.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ring {
    /// Radius in pixels.
    pub radius: f64,
    /// Standard deviation in pixels.
    pub sigma: f64,
    /// Mean number of photons a pixel on its crest.
    pub photons: f64,
}

/// The mean number of photons that depends on the distance from the beam centre alone, for all images.
#[derive(Clone, Debug)]
pub struct Diffuse {
    shape: Shape,
    centre: (f64, f64),
    background: f64,
    rings: Vec<Ring>,
    /// Mean number of photons a pixel, in steps of the radius.
    profile: Vec<f32>,
}

impl Diffuse {
    /// Rings and background of images of this shape, around their middle. The radii are those of a
    /// powder of a simple cubic lattice at small angles: they go with the square root of
    /// h^2 + k^2 + l^2.
    #[must_use]
    pub fn new(pattern: &Pattern, shape: Shape) -> Self {
        let (rows, columns) = (shape.rows as f64, shape.columns as f64);
        // Numbers of the form 4^a (8 b + 7) are no sums of three squares (Legendre).
        let orders: Vec<_> = (1..)
            .filter(|n| n % 8 != 7 && n % 32 != 28)
            .take(pattern.rings as usize)
            .map(|n: u32| f64::from(n).sqrt())
            .collect();
        let last = orders.last().copied().unwrap_or(1.0);
        let rings: Vec<_> = orders
            .iter()
            .map(|order| Ring {
                radius: OUTERMOST * rows.max(columns) * order / last,
                sigma: pattern.ring_sigma,
                photons: pattern.ring_photons / order,
            })
            .collect();
        let mean = |radius: f64| {
            let ring = |ring: &Ring| {
                let distance = (radius - ring.radius) / ring.sigma;
                ring.photons * (-0.5 * distance * distance).exp()
            };
            pattern.background + rings.iter().map(ring).sum::<f64>()
        };
        let steps = (rows.hypot(columns) * PROFILE_STEPS) as usize + 2;
        let profile = (0..steps).map(|step| mean(step as f64 / PROFILE_STEPS) as f32);
        Self {
            shape,
            centre: ((rows - 1.0) / 2.0, (columns - 1.0) / 2.0),
            background: pattern.background,
            profile: profile.collect(),
            rings,
        }
    }

    /// Row and column of the beam centre.
    #[must_use]
    pub fn centre(&self) -> (f64, f64) {
        self.centre
    }

    /// Mean number of photons a pixel of the background.
    #[must_use]
    pub fn background(&self) -> f64 {
        self.background
    }

    /// The rings, from the innermost.
    #[must_use]
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Mean number of photons of a pixel.
    #[must_use]
    pub fn mean(&self, row: usize, column: usize) -> f64 {
        let radius = (row as f64 - self.centre.0).hypot(column as f64 - self.centre.1);
        let step = (radius * PROFILE_STEPS).round() as usize;
        self.profile.get(step).copied().map_or(0.0, f64::from)
    }

    /// Draws the photons of the pixels from `first` on, in rows of the whole image.
    pub fn draw(&self, first: usize, rng: &mut Xoshiro256PlusPlus, photons: &mut [u32]) {
        let columns = self.shape.columns;
        for (pixel, photons) in photons.iter_mut().enumerate() {
            let at = first + pixel;
            let mean = self.mean(at / columns, at % columns);
            // There is no distribution of mean 0.
            *photons = Poisson::new(mean).map_or(0, |photons| photons.sample(rng) as u32);
        }
    }
}

/// The Bragg peaks of one image, and each of their photons.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    peaks: Vec<Peak>,
    /// Pixels that a photon of a peak hits, in the order of the peaks.
    hits: Vec<u32>,
}

impl Scene {
    /// The peaks of image `image`.
    #[must_use]
    pub fn new(pattern: &Pattern, shape: Shape, seed: u64, image: u32) -> Self {
        let mut rng = generator(seed, Purpose::Scene, 0, image.into());
        let mut scene = Self::default();
        let intensity = Exp::new(1.0 / pattern.peak_photons);
        let position = Normal::new(0.0, pattern.peak_sigma);
        let (true, Ok(intensity), Ok(position)) =
            (rng.random::<f64>() < pattern.hit_rate, intensity, position)
        else {
            return scene;
        };
        let least = FAINTEST * pattern.peak_photons;
        for _ in 0..pattern.peaks {
            // An exponential distribution has no memory: above any threshold it is the same.
            let mean = least + intensity.sample(&mut rng) * (1.0 - FAINTEST);
            let row = rng.random_range(0.0..shape.rows as f64) - 0.5;
            let column = rng.random_range(0.0..shape.columns as f64) - 0.5;
            let drawn = Poisson::new(mean).map_or(0, |photons| photons.sample(&mut rng) as u32);
            let before = scene.hits.len();
            for _ in 0..drawn {
                let at = [row, column].map(|at| (at + position.sample(&mut rng)).round());
                let inside = |at: f64, end: usize| (0.0..end as f64).contains(&at);
                if inside(at[0], shape.rows) && inside(at[1], shape.columns) {
                    let pixel = at[0] as usize * shape.columns + at[1] as usize;
                    scene.hits.push(pixel as u32);
                }
            }
            scene.peaks.push(Peak {
                row,
                column,
                photons: (scene.hits.len() - before) as u32,
            });
        }
        scene
    }

    /// The peaks.
    #[must_use]
    pub fn peaks(&self) -> &[Peak] {
        &self.peaks
    }

    /// Adds the photons of the peaks to those of the pixels from `first` on.
    pub fn add(&self, first: usize, photons: &mut [u32]) {
        for &hit in &self.hits {
            let pixel = (hit as usize).checked_sub(first);
            if let Some(photons) = pixel.and_then(|pixel| photons.get_mut(pixel)) {
                *photons += 1;
            }
        }
    }
}
