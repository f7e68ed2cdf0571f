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

/// Fitted gains.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Gains of all pixels at G0, G1 and G2, in ADU per photon.
    pub gains: [Map; 3],
    /// Mean gains of the module: of the pixels that have a fit.
    pub means: [f32; 3],
    /// Number of pixels that have a fit.
    pub fitted: [usize; 3],
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
    /// No pixel has enough signal at a gain.
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
/// a gain far from the others, has the mean gain of the module.
///
/// # Errors
/// Numbers of pixels that differ, or a gain at which no pixel has enough signal.
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
    let [g0, g1, g2] = Gain::ALL.map(|gain| {
        let pedestals = pedestals[gain as usize].values();
        let least_signal = options.least_signal[gain as usize];
        let fit = fit_gain(gain, pedestals, pairs, least_signal, options.spread);
        fit.ok_or(FitError::NoSignal {
            gain,
            frames: pairs.len(),
            least_signal,
        })
    });
    let fits = [g0?, g1?, g2?];
    Ok(Fit {
        means: [0, 1, 2].map(|gain: usize| fits[gain].1),
        fitted: [0, 1, 2].map(|gain: usize| fits[gain].2),
        gains: fits.map(|(map, ..)| map),
    })
}

/// Gains of all pixels at one gain, their mean, and the number of pixels that have a fit.
fn fit_gain(
    gain: Gain,
    pedestals: &[f32],
    pairs: &[Pair],
    least_signal: f32,
    spread: f32,
) -> Option<(Map, f32, usize)> {
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
    let values = fits.into_iter();
    let values = values.map(|fit| fit.filter(near).unwrap_or(mean) as f32);
    let map = Map::new(format!("fitted gain {gain}"), values.collect());
    Some((map, mean as f32, fitted))
}

#[cfg(test)]
mod tests;
