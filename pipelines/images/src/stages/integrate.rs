//! Stage `integrate`: the radial curve of each image.

use std::marker::PhantomData;

use pollux_pipelines::{Batch, Output, Stage};
use serde::{Deserialize, Serialize};

use super::env::ImagesEnv;
use super::pixel::StagePixel;
use super::work::Work;
use crate::integrate::{Geometry, IntegrationConfig, Integrator, RadialUnit, Variance};

/// Options of the stage `integrate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegrateOptions {
    /// Position of the detector.
    pub geometry: Geometry,
    /// Bins, range and corrections.
    #[serde(default)]
    pub curve: IntegrationConfig,
    /// Whether images that were vetoed are integrated too.
    #[serde(default)]
    pub vetoed: bool,
}

/// The radial coordinate of the curves, which the stage `integrate` adds to the environment.
#[derive(Clone, Debug, PartialEq)]
pub struct RadialAxis {
    /// Its unit.
    pub unit: RadialUnit,
    /// Its value in the middle of each bin.
    pub values: Vec<f64>,
}

pub(super) struct Integrate<P> {
    integrator: Integrator,
    unit: RadialUnit,
    vetoed: bool,
    pixel: PhantomData<fn(P)>,
}

impl<P> Integrate<P> {
    pub(super) fn new(options: &IntegrateOptions, env: &ImagesEnv) -> Result<Self, String> {
        let mask = env.mask.as_deref();
        let integrator = Integrator::new(env.shape, &options.geometry, &options.curve, mask);
        let integrator = integrator.map_err(|error| error.to_string())?;
        if integrator.is_empty() {
            return Err("no pixel is in a bin: correct the range, the geometry or the mask".into());
        }
        Ok(Self {
            integrator,
            unit: options.curve.unit,
            vetoed: options.vetoed,
            pixel: PhantomData,
        })
    }

    pub(super) fn axis(&self) -> RadialAxis {
        RadialAxis {
            unit: self.unit,
            values: self.integrator.radial().to_vec(),
        }
    }
}

impl<P: StagePixel> Stage for Integrate<P> {
    type In = Work<P>;
    type Out = Work<P>;

    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Work<P>>, out: &mut impl Output<Work<P>>) {
        for mut work in batch.drain() {
            // The integrator was made for the shape of these images.
            if (self.vetoed || !work.findings.vetoed)
                && let Ok(curve) = self
                    .integrator
                    .integrate(work.image.pixels(), Variance::Poisson)
            {
                let mean = curve.mean.iter().map(|&mean| mean as f32);
                work.findings.curve.clear();
                work.findings.curve.extend(mean);
                let sigma = curve.sigma.iter().map(|&sigma| sigma as f32);
                work.findings.sigma.clear();
                work.findings.sigma.extend(sigma);
            }
            out.push(work);
        }
    }
}
