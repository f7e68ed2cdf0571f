//! Axis of the radial curve.

use anyhow::{Context as _, Result};
use pollux_images::Shape;
use pollux_images::integrate::Integrator;
use pollux_images::stages::IntegrateOptions;
use serde::Deserialize as _;

/// The radial coordinate of a run's curves.
#[derive(Clone, Debug)]
pub struct Axis {
    /// As pyFAI names it: `q_nm^-1`, `2th_deg`, ...
    pub unit: String,
    /// Of the middle of each bin.
    pub radial: Vec<f64>,
}

impl Axis {
    /// The axis of the stage `integrate`, if there is one; `mask` is true for bad pixels.
    ///
    /// # Errors
    /// Options that the stage refuses.
    pub fn of(stages: &[toml::Table], shape: Shape, mask: &[bool]) -> Result<Option<Self>> {
        let is_integrate = |stage: &&toml::Table| {
            stage.get("name").and_then(toml::Value::as_str) == Some("integrate")
        };
        let Some(stage) = stages.iter().find(is_integrate) else {
            return Ok(None);
        };
        let mut options = stage.clone();
        options.remove("name");
        let options = IntegrateOptions::deserialize(options).context("[[stage]] integrate")?;
        let curve = &options.curve;
        // The axis depends on the mask, unless a range is configured.
        let integrator = Integrator::new(shape, &options.geometry, curve, Some(mask));
        let integrator = integrator.context("[[stage]] integrate")?;
        let unit = toml::Value::try_from(curve.unit).context("[[stage]] integrate")?;
        Ok(Some(Self {
            unit: unit.as_str().unwrap_or_default().to_owned(),
            radial: integrator.radial().to_vec(),
        }))
    }
}
