//! Background of each ring: mean and standard deviation without outliers.

use pollux_pipelines::simd::{Kernel, LANES, Lanes};

use super::config::{MIN_SAMPLES, PeakConfig};
use super::rings::Rings;
use crate::Pixel;

/// Maximum number of samples between their copy and their conversion.
const BLOCK: usize = 16 * LANES;

/// Background of a ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingBackground {
    /// Mean, in photons; NaN if there are too few samples.
    pub mean: f64,
    /// Standard deviation, in photons; NaN if there are too few samples.
    pub sigma: f64,
    /// Number of samples within the limits.
    pub samples: u32,
    /// Minimum value of a candidate, in photons; NaN if there is none.
    pub threshold: f32,
}

impl RingBackground {
    const NONE: Self = Self {
        mean: f64::NAN,
        sigma: f64::NAN,
        samples: 0,
        threshold: f32::NAN,
    };
}

/// Background of all rings, and what it takes to compute it.
#[derive(Debug)]
pub(super) struct Background {
    /// Of each ring, and of the pixels that are in none.
    rings: Vec<RingBackground>,
    /// For each ring, the lowest threshold of it and those that share a group of pixels with it.
    floors: Vec<f32>,
    span: usize,
    /// Samples of all rings, in photons. Each ring has whole groups, filled up with bad pixels.
    values: Vec<[f32; LANES]>,
}

impl Background {
    pub(super) fn new(rings: &Rings) -> Self {
        let groups = rings.copies().last().map_or(0, |last| last.end);
        Self {
            rings: vec![RingBackground::NONE; rings.len() + 1],
            floors: vec![f32::NAN; rings.len() + 1],
            span: rings.span(),
            values: vec![[f32::NAN; LANES]; groups],
        }
    }

    pub(super) fn rings(&self) -> &[RingBackground] {
        self.rings.split_last().map_or(&[], |(_, rings)| rings)
    }

    /// Background of a ring; none for pixels that are in no ring.
    #[inline(always)]
    pub(super) fn of(&self, ring: u16) -> &RingBackground {
        self.rings
            .get(usize::from(ring))
            .unwrap_or(&RingBackground::NONE)
    }

    /// No threshold of a group of pixels is lower than this of its innermost ring; NaN if none of
    /// its pixels can be a candidate.
    #[inline(always)]
    pub(super) fn floor(&self, innermost: u16) -> f32 {
        let floor = self.floors.get(usize::from(innermost));
        floor.copied().unwrap_or(f32::NAN)
    }

    /// Lowest thresholds of `span` rings from each on: of 1, 2, 4 and so on, then of the rest.
    #[inline(always)]
    fn update_floors(&mut self) {
        for (floor, ring) in self.floors.iter_mut().zip(&self.rings) {
            *floor = ring.threshold;
        }
        let mut covered = 1;
        while covered < self.span {
            let step = covered.min(self.span - covered);
            for i in step..self.floors.len() {
                // The minimum of a number and NaN is the number.
                self.floors[i - step] = self.floors[i - step].min(self.floors[i]);
            }
            covered += step;
        }
    }
}

/// Step 3 of the [method](super), and the thresholds of step 4.
pub(super) struct MeasureRings<'a, P> {
    pub(super) image: &'a [P],
    pub(super) rings: &'a Rings,
    pub(super) config: &'a PeakConfig,
    pub(super) background: &'a mut Background,
}

impl<P: Pixel> Kernel for MeasureRings<'_, P> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Isa) {
        let background = self.background;
        let values = background.values.as_flattened_mut();
        for (samples, place) in self.rings.runs() {
            if let Some(values) = values.get_mut(place..place + samples.len()) {
                copy(self.image, samples, values);
            }
        }
        for (result, groups) in background.rings.iter_mut().zip(self.rings.copies()) {
            *result = match background.values.get(groups) {
                Some(values) => measure(values, self.config),
                None => RingBackground::NONE,
            };
        }
        background.update_floors();
    }
}

/// Copies samples in photons. Pixels are copied first and converted then, since only the conversion
/// becomes vectors.
#[inline(always)]
fn copy<P: Pixel>(image: &[P], samples: &[u32], values: &mut [f32]) {
    for (samples, values) in samples.chunks(BLOCK).zip(values.chunks_mut(BLOCK)) {
        let mut pixels = [P::BAD; BLOCK];
        for (pixel, &sample) in pixels.iter_mut().zip(samples) {
            *pixel = image.get(sample as usize).copied().unwrap_or(P::BAD);
        }
        for (value, pixel) in values.iter_mut().zip(&pixels) {
            *value = pixel.photons();
        }
    }
}

#[inline(always)]
fn measure(values: &[[f32; LANES]], config: &PeakConfig) -> RingBackground {
    let mut limits = (f32::MIN, f32::MAX);
    let mut sums = Sums::of(values, limits);
    for _ in 0..config.clip_iterations {
        let (mean, sigma) = sums.moments(config.noise);
        let reach = config.clip_sigma * sigma;
        let next = ((mean - reach) as f32, (mean + reach) as f32);
        if sums.n < MIN_SAMPLES || next == limits {
            break;
        }
        limits = next;
        sums = Sums::of(values, limits);
    }
    if sums.n < MIN_SAMPLES {
        return RingBackground::NONE;
    }
    let (mean, sigma) = sums.moments(config.noise);
    RingBackground {
        mean,
        sigma,
        samples: sums.n,
        threshold: (mean + config.pixel_snr * sigma).max(config.min_photons) as f32,
    }
}

/// Number, sum and sum of squares of values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) n: u32,
    sum: f64,
    squares: f64,
}

impl Sums {
    /// Of the values within the limits, both included: in [`LANES`] sums, then in halves of these.
    #[inline(always)]
    #[expect(clippy::needless_bitwise_bool, reason = "a lazy operator is a branch")]
    fn of(values: &[[f32; LANES]], (lowest, highest): (f32, f32)) -> Self {
        let mut n = [0u32; LANES];
        let (mut sums, mut squares) = ([0.0f64; LANES], [0.0f64; LANES]);
        for group in values {
            for i in 0..LANES {
                let inside = (lowest <= group[i]) & (group[i] <= highest);
                let value = f64::from(if inside { group[i] } else { 0.0 });
                n[i] += u32::from(inside);
                sums[i] += value;
                squares[i] += value * value;
            }
        }
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                sums[lane] += sums[lane + half];
                squares[lane] += squares[lane + half];
            }
        }
        Self {
            n: n.iter().sum(),
            sum: sums[0],
            squares: squares[0],
        }
    }

    /// Adds a value.
    #[inline]
    pub(super) fn add(&mut self, value: f32) {
        let value = f64::from(value);
        self.n += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Mean and standard deviation, which is at least `noise`.
    #[inline(always)]
    pub(super) fn moments(&self, noise: f64) -> (f64, f64) {
        let mean = self.sum / f64::from(self.n);
        let variance = self.squares / f64::from(self.n) - mean * mean;
        (mean, variance.max(0.0).sqrt().max(noise))
    }
}
