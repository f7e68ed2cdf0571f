//! Images as chunks of bitshuffle and LZ4.

use pollux_pipelines::simd::Simd;

use super::work::{Encoding, Findings};
use crate::Shape;
use crate::bitshuffle::Bitshuffle;

/// Compresses whole images.
pub(super) struct Lossless {
    bitshuffle: Bitshuffle,
    /// Of the longest chunk.
    chunk_bytes: usize,
}

impl Lossless {
    /// For images of this shape with pixels of type `P`.
    pub(super) fn new<P>(shape: Shape) -> Result<Self, String> {
        let bitshuffle = Bitshuffle::new(Simd::best(), size_of::<P>());
        let bitshuffle = bitshuffle.map_err(|error| error.to_string())?;
        let chunk_bytes = bitshuffle.max_len(shape.pixels() * size_of::<P>());
        Ok(Self {
            bitshuffle,
            chunk_bytes,
        })
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Compresses the bytes of an image. A chunk that is not shorter stays raw.
    pub(super) fn compress<P>(&mut self, bytes: &[u8], findings: &mut Findings<P>) {
        // It grows once, if the desk has not allocated it.
        findings.room.resize(self.chunk_bytes, 0);
        if let Ok(len) = self.bitshuffle.compress_chunk(bytes, &mut findings.room)
            && len < bytes.len()
        {
            findings.chunk_len = len;
            findings.encoding = Encoding::BitshuffleLz4;
        }
    }
}
