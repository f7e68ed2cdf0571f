//! Pedestals, gains and masks of JUNGFRAU modules.
//!
//! A pixel of a JUNGFRAU chooses one of three gains by itself, by the charge that it collects. Each
//! pixel has a pedestal (ADU without signal) and a gain (ADU per photon) for each of them:
//! photons = (ADU - pedestal) / gain. G0 is the highest gain; those of G1 and G2 are negative, which
//! means that a larger signal gives fewer ADU.
//!
//! [`Calibration`] holds checked maps, [`fit_gains`] makes gain maps from frames whose photons are
//! known, and [`PedestalTracker`] follows the pedestals of G0 by dark frames.

mod fit;
mod map;
mod module;
pub(crate) mod raw;
mod tracking;

pub use self::fit::{Fit, FitError, FitOptions, Pair, fit_gains};
pub use self::map::{Map, MapError};
pub use self::module::{Calibration, CalibrationError};
pub use self::raw::{Gain, Reading};
pub use self::tracking::{DarkFrame, PedestalTracker, TrackingConfig, TrackingError};

#[cfg(test)]
pub(crate) mod tests;
