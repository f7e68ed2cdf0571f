//! Pedestals of G0 from dark frames.

use pollux_pipelines::simd::{Kernel, Lanes, Simd};
use serde::{Deserialize, Serialize};
use zerocopy::FromBytes as _;
use zerocopy::byteorder::little_endian::U16;

use super::module::Calibration;
use super::raw::{ADU, Gain};
use crate::Shape;

/// How pedestals follow dark frames.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrackingConfig {
    /// Dark frames of the exponential mean: each new one has the weight 1 / `window`.
    pub window: u32,
    /// Largest distance of a plausible value from the pedestal, in ADU. A value farther away is a
    /// signal, and does not count.
    pub plausible: f32,
    /// Noise of a pixel before the first dark frame, in ADU.
    pub noise: f32,
    /// Dark frames after which the pedestals are due.
    pub due_after: u32,
}

impl Default for TrackingConfig {
    /// A mean of 100 dark frames, due after each ten; values within 100 ADU.
    fn default() -> Self {
        Self {
            window: 100,
            plausible: 100.0,
            noise: 5.0,
            due_after: 10,
        }
    }
}

/// Tracking is impossible.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TrackingError {
    /// A number of the configuration is 0, negative or not finite.
    #[error("{option} is {value}: set a positive number")]
    Config {
        /// Name of the number.
        option: &'static str,
        /// Its value.
        value: f64,
    },
    /// A dark frame has another size.
    #[error("a dark frame has {bytes} bytes: give two bytes for each pixel of {shape}")]
    Bytes {
        /// Its size.
        bytes: usize,
        /// Shape of the module.
        shape: Shape,
    },
}

/// Pixels of a dark frame. The rest are bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DarkFrame {
    /// Pixels that counted.
    pub used: usize,
    /// Pixels that were not in G0.
    pub other_gain: usize,
    /// Pixels too far from their pedestals.
    pub implausible: usize,
}

/// Follows the pedestals of G0 by exponential means over dark frames, which a chopper interleaves with
/// the images: "these dark images are used to update the pedestal value for the highest gain. For the
/// two other possible gain regimes, their pedestal value is expected to be constant" (R. Ponsard, "High
/// Throughput, Low Latency Online Image Processing by GPU/FPGA Coprocessors using RDMA Techniques",
/// 2020, section 4.2.1).
///
/// [`Converter::follow`](crate::convert::Converter::follow) takes the pedestals over. Nothing is
/// allocated after [`new`](Self::new).
#[derive(Clone, Debug)]
pub struct PedestalTracker {
    simd: Simd,
    cfg: TrackingConfig,
    shape: Shape,
    /// Both are NaN for bad pixels.
    pedestals: Vec<f32>,
    variances: Vec<f32>,
    since_due: u32,
}

impl PedestalTracker {
    /// Starts from the pedestals of a calibration; uses the best instruction set of this CPU.
    ///
    /// # Errors
    /// A number of the configuration is not positive and finite.
    pub fn new(calibration: &Calibration, cfg: TrackingConfig) -> Result<Self, TrackingError> {
        Self::with_simd(calibration, cfg, Simd::best())
    }

    /// As [`new`](Self::new), with the given instruction set; the results do not depend on it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_simd(
        calibration: &Calibration,
        cfg: TrackingConfig,
        simd: Simd,
    ) -> Result<Self, TrackingError> {
        for (option, value) in [
            ("window", f64::from(cfg.window)),
            ("plausible", f64::from(cfg.plausible)),
            ("noise", f64::from(cfg.noise)),
            ("due_after", f64::from(cfg.due_after)),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return Err(TrackingError::Config { option, value });
            }
        }
        let bad = calibration.bad().iter();
        let bad = bad.map(|&bad| if bad { f32::NAN } else { 0.0 });
        let pedestals = calibration.pedestals(Gain::G0).iter();
        let pedestals = pedestals.zip(bad.clone());
        Ok(Self {
            simd,
            cfg,
            shape: calibration.shape(),
            pedestals: pedestals.map(|(pedestal, bad)| pedestal + bad).collect(),
            variances: bad.map(|bad| cfg.noise * cfg.noise + bad).collect(),
            since_due: 0,
        })
    }

    /// Takes in a dark frame: `u16`, little endian, at any address. Pixels count if they are in G0 and
    /// within [`TrackingConfig::plausible`] of their pedestal; those of lost packets do not if they hold
    /// a code, such as 0xFFFF.
    ///
    /// # Errors
    /// The frame has another size.
    pub fn add(&mut self, raw: &[u8]) -> Result<DarkFrame, TrackingError> {
        let raw = match <[U16]>::ref_from_bytes(raw) {
            Ok(raw) if raw.len() == self.shape.pixels() => raw,
            _ => {
                let (bytes, shape) = (raw.len(), self.shape);
                return Err(TrackingError::Bytes { bytes, shape });
            }
        };
        self.since_due = self.since_due.saturating_add(1);
        Ok(self.simd.run(Add {
            raw,
            pedestals: &mut self.pedestals,
            variances: &mut self.variances,
            weight: 1.0 / self.cfg.window as f32,
            plausible: self.cfg.plausible,
        }))
    }

    /// Means of G0 without signal, in ADU; NaN for bad pixels.
    #[must_use]
    pub fn pedestals(&self) -> &[f32] {
        &self.pedestals
    }

    /// Noise of a pixel: root mean square of its distances from the pedestal, in ADU. NaN for a bad
    /// one.
    #[must_use]
    pub fn noise(&self, pixel: usize) -> Option<f32> {
        self.variances.get(pixel).map(|variance| variance.sqrt())
    }

    /// Whether the number of dark frames has come in since this was last true.
    pub(crate) fn take_due(&mut self) -> bool {
        let due = self.since_due >= self.cfg.due_after;
        if due {
            self.since_due = 0;
        }
        due
    }
}

/// Takes in the pixels of a dark frame.
struct Add<'a> {
    raw: &'a [U16],
    pedestals: &'a mut [f32],
    variances: &'a mut [f32],
    weight: f32,
    plausible: f32,
}

impl Kernel for Add<'_> {
    type Out = DarkFrame;

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Isa) -> DarkFrame {
        // As wide as the numbers beside them.
        let (mut good, mut used, mut other) = (0u32, 0u32, 0u32);
        let pixels = self.raw.iter().zip(self.pedestals).zip(self.variances);
        for ((raw, pedestal), variance) in pixels {
            let raw = raw.get();
            let distance = f32::from(raw) - *pedestal;
            let counts = raw <= ADU && distance.abs() <= self.plausible;
            good += u32::from(!pedestal.is_nan());
            other += u32::from(!pedestal.is_nan() && raw > ADU);
            used += u32::from(counts);
            // A weight of 0 changes nothing, and a store without a condition is the faster one.
            let weight = if counts { self.weight } else { 0.0 };
            let spread = *variance + weight * distance * distance;
            *variance = (1.0 - weight) * spread;
            *pedestal += weight * distance;
        }
        DarkFrame {
            used: used as usize,
            other_gain: other as usize,
            implausible: (good - other - used) as usize,
        }
    }
}

#[cfg(test)]
mod tests;
