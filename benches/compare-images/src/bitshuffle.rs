//! Rows of the lossless compression. The peer, the reference library, is in a process of Python.

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};
use pollux_images::bitshuffle::Bitshuffle;
use pollux_pipelines::simd::Simd;

use crate::row::{Facts, Row, Turn, timed};

/// Compression of images of 16 bits a pixel.
pub(crate) struct Compress {
    name: &'static str,
    folder: PathBuf,
    images: Vec<Vec<u8>>,
    codec: Bitshuffle,
    out: Vec<u8>,
}

impl Compress {
    /// Writes the images for the peer, one after another.
    pub(crate) fn new(name: &'static str, images: Vec<Vec<u8>>, folder: PathBuf) -> Result<Self> {
        let codec = Bitshuffle::new(Simd::best(), size_of::<u16>())?;
        let longest = images.iter().map(Vec::len).max().unwrap_or(0);
        fs::write(folder.join(format!("{name}.images")), images.concat())?;
        Ok(Self {
            name,
            folder,
            out: vec![0; codec.max_len(longest)],
            images,
            codec,
        })
    }
}

impl Row for Compress {
    fn facts(&self) -> Facts {
        Facts {
            name: self.name,
            unit: "GB/s of images",
            peer_name: None,
        }
    }

    fn ours(&mut self) -> Result<Turn> {
        timed(self.images.iter().map(Vec::len).sum(), || {
            for image in &self.images {
                self.codec.compress(image, &mut self.out)?;
            }
            Ok(())
        })
    }

    fn peer(&mut self) -> Result<Turn> {
        bail!("{} has its peer in another process", self.name)
    }

    fn check(&mut self) -> Result<()> {
        for (n, image) in self.images.iter().enumerate() {
            let len = self.codec.compress(image, &mut self.out)?;
            let path = self.folder.join(format!("{}-{n}.bslz4", self.name));
            fs::write(path, &self.out[..len])?;
        }
        Ok(())
    }
}
