//! Stage `compress`: images as the outputs take them.

use pollux_pipelines::simd::Simd;
use pollux_pipelines::{Batch, Output, Stage};
use serde::{Deserialize, Serialize};
use zerocopy::IntoBytes as _;

use super::env::ImagesEnv;
use super::pixel::StagePixel;
use super::work::{Encoding, Findings, Work};
use crate::bitshuffle::Bitshuffle;
use crate::sparse::{Compressed, CsrCompressor};

/// How images are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Without loss: bit transpose, then LZ4.
    #[default]
    BitshuffleLz4,
    /// The pixels at or above a threshold alone, as compressed sparse rows; an image that would become
    /// longer is compressed without loss instead.
    Sparse,
}

/// Options of the stage `compress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompressOptions {
    /// How.
    pub method: Method,
    /// Photons from which on a pixel is stored, for `sparse`: a number above 0.
    pub min_photons: Option<f32>,
}

pub(super) struct Compress<P> {
    dense: Bitshuffle,
    sparse: Option<CsrCompressor<P>>,
    /// Of the longest chunk.
    chunk_bytes: usize,
}

impl<P: StagePixel> Compress<P> {
    pub(super) fn new(options: &CompressOptions, env: &ImagesEnv) -> Result<Self, String> {
        let dense = Bitshuffle::new(Simd::best(), size_of::<P>());
        let dense = dense.map_err(|error| error.to_string())?;
        let sparse = match (options.method, options.min_photons) {
            (Method::Sparse, Some(photons)) if photons > 0.0 && photons.is_finite() => {
                let sparse = CsrCompressor::new(Simd::best(), env.shape, P::threshold(photons));
                Some(sparse.map_err(|error| error.to_string())?)
            }
            (Method::Sparse, photons) => {
                let given = photons.map_or_else(|| "missing".into(), |photons| photons.to_string());
                return Err(format!(
                    "min_photons is {given}: method = \"sparse\" needs the number of photons, above 0, \
                     from which on a pixel is stored"
                ));
            }
            (Method::BitshuffleLz4, Some(_)) => {
                return Err("min_photons belongs to method = \"sparse\": remove it".into());
            }
            (Method::BitshuffleLz4, None) => None,
        };
        let chunk_bytes = dense.max_len(env.shape.pixels() * size_of::<P>());
        Ok(Self {
            dense,
            sparse,
            chunk_bytes,
        })
    }

    fn compress(&mut self, pixels: &[P], findings: &mut Findings<P>) {
        if let Some(sparse) = &mut self.sparse
            && let Ok(Compressed::Sparse(csr)) = sparse.compress(pixels)
        {
            // Another stage of this kind may have run before.
            findings.row_offsets.clear();
            findings.columns.clear();
            findings.values.clear();
            findings.row_offsets.extend_from_slice(csr.row_offsets());
            findings.columns.extend_from_slice(csr.columns());
            findings.values.extend_from_slice(csr.values());
            findings.encoding = Encoding::Sparse;
            return;
        }
        // Grows once.
        findings.room.resize(self.chunk_bytes, 0);
        let (bytes, room) = (pixels.as_bytes(), &mut findings.room);
        // A chunk that is not shorter stays raw.
        if let Ok(len) = self.dense.compress_chunk(bytes, room)
            && len < bytes.len()
        {
            findings.chunk_len = len;
            findings.encoding = Encoding::BitshuffleLz4;
        }
    }
}

impl<P: StagePixel> Stage for Compress<P> {
    type In = Work<P>;
    type Out = Work<P>;

    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Work<P>>, out: &mut impl Output<Work<P>>) {
        for mut work in batch.drain() {
            if !work.findings.vetoed {
                self.compress(work.image.pixels(), &mut work.findings);
            }
            out.push(work);
        }
    }
}
