//! Beam and position of the detector.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Position of the detector and energy of the beam, as files and streams describe them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BeamConfig {
    /// Photon energy in eV.
    pub photon_energy_ev: f64,
    /// Distance of the detector from the sample, in m.
    pub distance_m: f64,
    /// Row and column of the beam, in pixels; the middle of the image by default.
    pub centre: Option<(f64, f64)>,
    /// Side of a pixel, in m.
    pub pixel_m: f64,
    /// Exposure time in s.
    pub count_time_s: f64,
    /// Time from image to image, in s.
    pub frame_time_s: f64,
}

impl BeamConfig {
    /// Checks the numbers.
    pub(super) fn check(&self) -> Result<()> {
        for (key, value) in [
            ("photon_energy_ev", self.photon_energy_ev),
            ("distance_m", self.distance_m),
            ("pixel_m", self.pixel_m),
            ("count_time_s", self.count_time_s),
            ("frame_time_s", self.frame_time_s),
        ] {
            let valid = value > 0.0 && value.is_finite();
            ensure!(valid, "[beam] {key} = {value}: a finite number above 0");
        }
        let (row, column) = self.centre.unwrap_or_default();
        ensure!(
            row.is_finite() && column.is_finite(),
            "[beam] centre = [{row}, {column}]: two finite numbers"
        );
        Ok(())
    }
}

impl Default for BeamConfig {
    fn default() -> Self {
        Self {
            photon_energy_ev: 12_400.0,
            distance_m: 0.1,
            centre: None,
            pixel_m: 75e-6,
            count_time_s: 100e-6,
            frame_time_s: 1e-3,
        }
    }
}
