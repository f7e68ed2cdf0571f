//! Stage `integrate`: the radial curve of each image.

use std::marker::PhantomData;

use pollux_pipelines::{Batch, Output, Stage};
use serde::{Deserialize, Serialize};

use super::env::ImagesEnv;
use super::pixel::StagePixel;
use super::work::Work;
use crate::integrate::{Geometry, IntegrationConfig, Integrator, Variance};

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

pub(super) struct Integrate<P> {
    integrator: Integrator,
    vetoed: bool,
    pixel: PhantomData<fn(P)>,
}

impl<P> Integrate<P> {
    pub(super) fn new(options: &IntegrateOptions, env: &ImagesEnv) -> Result<Self, String> {
        let mask = env.mask.as_deref();
        let integrator = Integrator::new(env.shape, &options.geometry, &options.curve, mask);
        Ok(Self {
            integrator: integrator.map_err(|error| error.to_string())?,
            vetoed: options.vetoed,
            pixel: PhantomData,
        })
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
            }
            out.push(work);
        }
    }
}
