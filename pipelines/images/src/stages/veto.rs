//! Stage `veto`: vetoes images with too few intense pixels.

use std::marker::PhantomData;

use pollux_pipelines::{Batch, Output, Stage};

use super::pixel::StagePixel;
use super::work::Work;
use crate::veto::{Veto, VetoConfig};

pub(super) struct VetoStage<P> {
    veto: Veto,
    pixel: PhantomData<fn(P)>,
}

impl<P> VetoStage<P> {
    pub(super) fn new(config: VetoConfig) -> Result<Self, String> {
        Ok(Self {
            veto: Veto::new(config).map_err(|error| error.to_string())?,
            pixel: PhantomData,
        })
    }
}

impl<P: StagePixel> Stage for VetoStage<P> {
    type In = Work<P>;
    type Out = Work<P>;

    /// The next stage finds the image in the cache.
    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Work<P>>, out: &mut impl Output<Work<P>>) {
        for mut work in batch.drain() {
            let noted = work.image.count_from(self.veto.min_photons());
            let intense = noted.unwrap_or_else(|| self.veto.count(work.image.pixels()));
            work.findings.intense = Some(intense);
            work.findings.vetoed |= !self.veto.accepts(intense);
            out.push(work);
        }
    }
}
