//! `Curve`, the result of an azimuthal integration.

/// Sums of a bin, in this order.
pub(super) type Sums = [f64; 4];
/// Position in [`Sums`] of the signal.
pub(super) const SIGNAL: usize = 0;
/// Position in [`Sums`] of the normalisation.
pub(super) const NORMALISATION: usize = 1;
/// Position in [`Sums`] of the variance.
pub(super) const VARIANCE: usize = 2;
/// Position in [`Sums`] of the number of pixels.
pub(super) const COUNT: usize = 3;

/// An image as a function of the radial coordinate; each list has a value for each bin.
///
/// The share of a pixel in the bin is c (1 without splitting), its signal s, its variance v, its
/// normalisation w (solid angle times polarisation; 1 without corrections). Sums are over the
/// pixels of the bin that are neither masked, bad nor saturated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Sum of c s, in photons.
    pub signal: Vec<f64>,
    /// Sum of c w.
    pub normalisation: Vec<f64>,
    /// Sum of c^2 v, in photons^2.
    pub variance: Vec<f64>,
    /// Number of pixels: sum of c.
    pub count: Vec<f64>,
    /// Mean: signal / normalisation, in photons; 0 for a bin without normalisation.
    pub mean: Vec<f64>,
    /// Standard error of the mean: square root of the variance / normalisation, in photons; 0 for a
    /// bin without normalisation. pyFAI calls it sigma, or sem.
    pub sigma: Vec<f64>,
}

impl Curve {
    pub(super) fn new(bins: usize) -> Self {
        let zeros = || vec![0.0; bins];
        Self {
            signal: zeros(),
            normalisation: zeros(),
            variance: zeros(),
            count: zeros(),
            mean: zeros(),
            sigma: zeros(),
        }
    }

    pub(super) fn set(&mut self, sums: &[Sums]) {
        let sums_lists = self.signal.iter_mut().zip(&mut self.normalisation);
        let sums_lists = sums_lists.zip(self.variance.iter_mut().zip(&mut self.count));
        let lists = sums_lists.zip(self.mean.iter_mut().zip(&mut self.sigma));
        for ((((signal, normalisation), (variance, count)), (mean, sigma)), of) in lists.zip(sums) {
            *signal = of[SIGNAL];
            *normalisation = of[NORMALISATION];
            *variance = of[VARIANCE];
            *count = of[COUNT];
            let is_empty = of[NORMALISATION] == 0.0;
            *mean = if is_empty {
                0.0
            } else {
                of[SIGNAL] / of[NORMALISATION]
            };
            *sigma = if is_empty {
                0.0
            } else {
                of[VARIANCE].sqrt() / of[NORMALISATION]
            };
        }
    }
}
