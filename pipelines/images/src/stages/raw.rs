//! Stages for raw images, whose pixels have no unit: lossless compression.

use std::marker::PhantomData;

use pollux_pipelines::{Batch, Output, Stage};
use serde::{Deserialize, Serialize};
use zerocopy::IntoBytes as _;

use super::env::ImagesEnv;
use super::lossless::Lossless;
use super::work::Work;
use crate::receive::Raw;

/// Options of the stage `compress` for raw images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawCompressOptions {
    /// How.
    pub method: RawMethod,
}

/// How raw images are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RawMethod {
    /// Without loss: bit transpose, then LZ4.
    #[default]
    BitshuffleLz4,
}

pub(super) struct CompressRaw<P> {
    lossless: Lossless,
    pixel: PhantomData<fn(P)>,
}

impl<P> CompressRaw<P> {
    pub(super) fn new(env: &ImagesEnv) -> Result<Self, String> {
        Ok(Self {
            lossless: Lossless::new::<P>(env.shape)?,
            pixel: PhantomData,
        })
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.lossless.chunk_bytes()
    }
}

impl<P: Raw> Stage for CompressRaw<P> {
    type In = Work<P>;
    type Out = Work<P>;

    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Work<P>>, out: &mut impl Output<Work<P>>) {
        for mut work in batch.drain() {
            let pixels = work.image.pixels().as_bytes();
            self.lossless.compress(pixels, &mut work.findings);
            out.push(work);
        }
    }
}
