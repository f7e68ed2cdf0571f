//! Stage `compress`: images as the outputs take them.

use pollux_pipelines::simd::Simd;
use pollux_pipelines::{Batch, Output, Stage};
use serde::{Deserialize, Serialize};
use zerocopy::IntoBytes as _;

use super::env::ImagesEnv;
use super::lossless::Lossless;
use super::pixel::StagePixel;
use super::work::{Capacity, Encoding, Findings, Work};
use crate::receive::Image;
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
    dense: Lossless,
    /// With its threshold in photons.
    sparse: Option<(f32, CsrCompressor<P>)>,
    rows: usize,
    /// Whether vetoed images are compressed too.
    vetoed: bool,
}

impl<P: StagePixel> Compress<P> {
    pub(super) fn new(options: &CompressOptions, env: &ImagesEnv) -> Result<Self, String> {
        let dense = Lossless::new::<P>(env.shape)?;
        let sparse = match (options.method, options.min_photons) {
            (Method::Sparse, Some(photons)) if photons > 0.0 && photons.is_finite() => {
                let sparse = CsrCompressor::new(Simd::best(), env.shape, P::threshold(photons));
                Some((photons, sparse.map_err(|error| error.to_string())?))
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
        Ok(Self {
            dense,
            sparse,
            rows: env.shape.rows,
            vetoed: env.vetoed,
        })
    }

    /// Adds what it finds in the largest image.
    pub(super) fn add_to(&self, capacity: &mut Capacity) {
        capacity.chunk_bytes = self.dense.chunk_bytes();
        if let Some((_, sparse)) = &self.sparse {
            capacity.rows = self.rows + 1;
            capacity.sparse_pixels = sparse.limit().unwrap_or_default();
        }
    }

    fn compress(&mut self, image: &Image<P>, findings: &mut Findings<P>) {
        let pixels = image.pixels();
        let compressed = self.sparse.as_mut().map(|(photons, sparse)| {
            match image.marks_from(*photons) {
                // The number of bad pixels is no finding.
                Some(marks) => sparse.compress_masked(pixels, marks, 0),
                None => sparse.compress(pixels),
            }
        });
        if let Some(Ok(Compressed::Sparse(csr))) = compressed {
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
        self.dense.compress(pixels.as_bytes(), findings);
    }
}

impl<P: StagePixel> Stage for Compress<P> {
    type In = Work<P>;
    type Out = Work<P>;

    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Work<P>>, out: &mut impl Output<Work<P>>) {
        for mut work in batch.drain() {
            if self.vetoed || !work.findings.vetoed {
                self.compress(&work.image, &mut work.findings);
            }
            out.push(work);
        }
    }
}
