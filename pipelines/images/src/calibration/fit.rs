//! Gain maps from frames whose photons are known.

use super::map::Map;
use super::raw::{Gain, Reading};

/// A raw frame of a module, and its photons by another conversion.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Raw pixels.
    pub raw: &'a [u16],
    /// Photons of the same pixels; those that are not finite do not count.
    pub photons: &'a [f32],
}

/// What a fit requires of a pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitOptions {
    /// Signal of a pixel in G0, G1 and G2, in photons, as the root of the sum of squares over all
    /// frames. With less, the pixel has the mean gain of the module.
    pub least_signal: [f32; 3],
    /// Largest distance of a pixel's gain from the median of the module, relative to it. Farther away
    /// the fit is wrong, and the pixel has the mean gain.
    pub spread: f32,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            least_signal: [0.5, 5.0, 5.0],
            spread: 0.25,
        }
    }
}

/// Mean gains of a recorded module at 12.4 keV, in ADU per photon. Their ratios are those of the
/// capacitors of the pixels, for a gain in which no frame has a signal.
const USUAL: [f32; 3] = [506.7, -17.97, -1.430];

/// Factor by which a gain may differ from the usual one: that of photons of 1.5 to 100 keV does by less.
const UNUSUAL: f32 = 8.0;

/// Fitted gains.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Gains of all pixels at G0, G1 and G2, in ADU per photon.
    pub gains: [Map; 3],
    /// Mean gains of the module: of the pixels that have a fit.
    pub means: [f32; 3],
    /// Number of pixels that have a fit. Where it is 0, for G1 or G2, all pixels have the usual ratio to
    /// the mean gain in G0.
    pub fitted: [usize; 3],
    /// Number of pixels with enough signal whose gain is too far from the median of the module.
    pub far: [usize; 3],
}

impl Fit {
    /// Gains that the pairs do not explain: of more than a tenth of the pixels with enough signal the gain
    /// is far from the median, or the mean has the wrong sign or differs from the usual gain by more than
    /// a factor of 8.
    #[must_use]
    pub fn is_implausible(&self, gain: Gain) -> bool {
        let of = gain as usize;
        let ratio = self.means[of] / USUAL[of];
        10 * self.far[of] > self.fitted[of] + self.far[of]
            || !(1.0 / UNUSUAL..=UNUSUAL).contains(&ratio)
    }
}

/// Gains cannot be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Frames and pedestals have different numbers of pixels.
    #[error("{what} of {pixels} pixels for pedestals of {expected}: give data of one module")]
    Pixels {
        /// What has another number of pixels.
        what: &'static str,
        /// Its pixels.
        pixels: usize,
        /// Pixels of the pedestals of G0.
        expected: usize,
    },
    /// No pixel has enough signal in G0.
    #[error(
        "no pixel of {frames} frames has {least_signal} photons in {gain}: give frames with more \
         signal, or a gain map"
    )]
    NoSignal {
        /// The gain.
        gain: Gain,
        /// Number of frames.
        frames: usize,
        /// Signal that a fit requires.
        least_signal: f32,
    },
}

/// Fits a gain map to frames whose photons are known.
///
/// The gain of a pixel is the one with the least squares of (ADU - pedestal) - gain x photons over all
/// frames, so that frames count by the square of their signal. A pixel with too little signal, or with
/// a gain far from the others, has the mean gain of the module. Without any pixel that has enough signal
/// in G1 or G2, that gain has its usual ratio to the mean gain in G0.
///
/// # Errors
/// Numbers of pixels that differ, or no pixel with enough signal in G0.
pub fn fit_gains(
    pedestals: &[Map; 3],
    pairs: &[Pair],
    options: FitOptions,
) -> Result<Fit, FitError> {
    let expected = pedestals[0].values().len();
    let maps = pedestals
        .iter()
        .map(|map| ("pedestals", map.values().len()));
    let raw = pairs.iter().map(|pair| ("a raw frame", pair.raw.len()));
    let photons = pairs.iter().map(|pair| ("photons", pair.photons.len()));
    for (what, pixels) in maps.chain(raw).chain(photons) {
        if pixels != expected {
            return Err(FitError::Pixels {
                what,
                pixels,
                expected,
            });
        }
    }
    let fit = |gain: Gain| {
        let pedestals = pedestals[gain as usize].values();
        let least_signal = options.least_signal[gain as usize];
        fit_gain(gain, pedestals, pairs, least_signal, options.spread)
    };
    let g0 = fit(Gain::G0).ok_or(FitError::NoSignal {
        gain: Gain::G0,
        frames: pairs.len(),
        least_signal: options.least_signal[0],
    })?;
    let usual = |gain: Gain| {
        let value = g0.1 * USUAL[gain as usize] / USUAL[0];
        let map = Map::new(format!("usual gain {gain}"), vec![value; expected]);
        (map, value, [0, 0])
    };
    let [g1, g2] = [Gain::G1, Gain::G2].map(|gain| fit(gain).unwrap_or_else(|| usual(gain)));
    let fits = [g0, g1, g2];
    Ok(Fit {
        means: [0, 1, 2].map(|gain: usize| fits[gain].1),
        fitted: [0, 1, 2].map(|gain: usize| fits[gain].2[0]),
        far: [0, 1, 2].map(|gain: usize| fits[gain].2[1]),
        gains: fits.map(|(map, ..)| map),
    })
}

/// Gains of all pixels at one gain, their mean, and the numbers of pixels that have a fit, and of those
/// whose fit is wrong.
fn fit_gain(
    gain: Gain,
    pedestals: &[f32],
    pairs: &[Pair],
    least_signal: f32,
    spread: f32,
) -> Option<(Map, f32, [usize; 2])> {
    let mut fits = vec![None; pedestals.len()];
    for (pixel, (fit, &pedestal)) in fits.iter_mut().zip(pedestals).enumerate() {
        let (mut product, mut square) = (0.0, 0.0);
        for pair in pairs {
            let (raw, photons) = (pair.raw[pixel], f64::from(pair.photons[pixel]));
            if let Reading::Adu(at, adu) = Reading::from(raw)
                && at == gain
                && photons.is_finite()
            {
                product += (f64::from(adu) - f64::from(pedestal)) * photons;
                square += photons * photons;
            }
        }
        if square > 0.0 && square >= f64::from(least_signal).powi(2) {
            *fit = Some(product / square);
        }
    }
    let mut sorted: Vec<f64> = fits.iter().flatten().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = *sorted.get(sorted.len() / 2)?;
    let near = |fit: &f64| (fit / median - 1.0).abs() <= f64::from(spread);
    let (sum, fitted) = sorted
        .iter()
        .filter(|&fit| near(fit))
        .fold((0.0, 0), |(sum, n), fit| (sum + fit, n + 1));
    if fitted == 0 {
        return None;
    }
    let mean = sum / fitted as f64;
    let far = sorted.len() - fitted;
    let values = fits.into_iter();
    let values = values.map(|fit| fit.filter(near).unwrap_or(mean) as f32);
    let map = Map::new(format!("fitted gain {gain}"), values.collect());
    Some((map, mean as f32, [fitted, far]))
}

#[cfg(test)]
mod tests;
