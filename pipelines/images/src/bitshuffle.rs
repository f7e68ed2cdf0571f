//! Lossless compression: bit transpose, then LZ4.
//!
//! The bits of the pixels are sorted by their significance, so that the upper ones, which are 0 in
//! most pixels, follow each other; LZ4 then finds them repeated. The bytes are those of the bitshuffle
//! library (<https://github.com/kiyo-masui/bitshuffle>), HDF5 filter 32008 with LZ4:
//!
//! - Pixels are compressed in blocks of 8192 bytes, or of another multiple of eight pixels. Each block
//!   is the length of its LZ4 block in bytes (u32, big-endian), then the LZ4 block. The last one is
//!   shorter where the image ends within it.
//! - Pixels behind the last multiple of eight, at most seven, follow as they are.
//! - A *chunk* of HDF5, and an image in a DECTRIS stream (`bslz4`), has a header before that: the
//!   length of the image in bytes (u64, big-endian), and that of a block (u32, big-endian).
//!
//! The LZ4 blocks come from the C library, as the reference library's do, and are equal byte by byte
//! where the versions of it compress alike.

mod transpose;

use lz4::block::{compress_to_buffer, decompress_to_buffer};
use pollux_pipelines::simd::Simd;
use transpose::GROUP;

#[cfg(test)]
mod tests;

/// Bytes of a chunk before its first block.
pub const HEADER_LEN: usize = 12;

/// Bytes of a block, if nothing else is configured.
const DEFAULT_BLOCK: usize = 8192;
/// Bytes of a block before its LZ4 block.
const LENGTH_LEN: usize = 4;
/// Bytes that LZ4 can compress at once (`LZ4_MAX_INPUT_SIZE`).
const MAX_BLOCK: usize = 0x7E00_0000;

/// An image that cannot be compressed, or data that is not a compressed image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BitshuffleError {
    /// Pixels of another size than the transpose has.
    #[error("pixels of {0} bytes cannot be transposed: use 1, 2, 4 or 8")]
    PixelSize(usize),
    /// A block that is not a whole number of groups of eight pixels, or that LZ4 cannot compress.
    #[error(
        "a block of {bytes} bytes is invalid: use a multiple of {multiple} bytes, at most {MAX_BLOCK}"
    )]
    Block {
        /// Length of the block.
        bytes: usize,
        /// Bytes of eight pixels.
        multiple: usize,
    },
    /// A number of bytes that is no whole number of pixels.
    #[error("an image of {bytes} bytes has no whole number of pixels of {pixel_size} bytes")]
    Image {
        /// Length of the image.
        bytes: usize,
        /// Bytes of a pixel.
        pixel_size: usize,
    },
    /// A buffer that is too short for what is written to it.
    #[error("a buffer of {bytes} bytes is too short: {needed} bytes are needed")]
    Buffer {
        /// Length of the buffer.
        bytes: usize,
        /// Length that suffices.
        needed: u64,
    },
    /// Data that ends within a header or a block, or that has more bytes than the image.
    #[error("the compressed image has {bytes} bytes, but its headers say {needed}")]
    Length {
        /// Length of the data.
        bytes: usize,
        /// Length by the headers up to the place at which they differ.
        needed: usize,
    },
    /// An LZ4 block that is invalid, or that is not one of the block's length.
    #[error("the LZ4 block at byte {at} is no block of {bytes} bytes")]
    Lz4 {
        /// Offset in the data.
        at: usize,
        /// Length that it should have once decompressed.
        bytes: usize,
    },
}

/// Compressor and decompressor of images whose pixels have 1, 2, 4 or 8 bytes.
///
/// It allocates in the constructors only; a decompressor also for the first chunk with blocks that
/// are longer than the ones before, up to the length of the image.
#[derive(Debug)]
pub struct Bitshuffle {
    simd: Simd,
    pixel_size: usize,
    /// Bytes of a block.
    block: usize,
    /// The planes of a block.
    planes: Vec<u8>,
}

impl Bitshuffle {
    /// For pixels of `pixel_size` bytes, in blocks of 8192 bytes, the default of the reference library.
    ///
    /// # Errors
    ///
    /// [`BitshuffleError::PixelSize`].
    pub fn new(simd: Simd, pixel_size: usize) -> Result<Self, BitshuffleError> {
        Self::with_block(simd, pixel_size, DEFAULT_BLOCK)
    }

    /// The same in blocks of `block` bytes.
    ///
    /// # Errors
    ///
    /// [`BitshuffleError::PixelSize`] and [`BitshuffleError::Block`].
    pub fn with_block(
        simd: Simd,
        pixel_size: usize,
        block: usize,
    ) -> Result<Self, BitshuffleError> {
        if !matches!(pixel_size, 1 | 2 | 4 | 8) {
            return Err(BitshuffleError::PixelSize(pixel_size));
        }
        check_block(pixel_size, block)?;
        Ok(Self {
            simd,
            pixel_size,
            block,
            planes: vec![0; block],
        })
    }

    /// Bytes of the longest chunk that an image of so many bytes can become.
    #[must_use]
    pub fn max_len(&self, image: usize) -> usize {
        let blocks = image.div_ceil(self.block);
        // The sum of LZ4_compressBound.
        let lz4 = image + image / 255 + 16 * blocks;
        HEADER_LEN + blocks * LENGTH_LEN + lz4
    }

    /// Compresses an image to a chunk: header, then blocks. Returns the chunk's length.
    ///
    /// # Errors
    ///
    /// [`BitshuffleError::Image`], and [`BitshuffleError::Buffer`] if `chunk` is shorter than
    /// [`max_len`](Self::max_len).
    pub fn compress_chunk(
        &mut self,
        image: &[u8],
        chunk: &mut [u8],
    ) -> Result<usize, BitshuffleError> {
        let needed = self.max_len(image.len());
        match chunk.split_at_mut_checked(HEADER_LEN) {
            Some((header, blocks)) if HEADER_LEN + blocks.len() >= needed => {
                header[..8].copy_from_slice(&(image.len() as u64).to_be_bytes());
                header[8..].copy_from_slice(&(self.block as u32).to_be_bytes());
                Ok(HEADER_LEN + self.compress(image, blocks)?)
            }
            _ => Err(BitshuffleError::Buffer {
                bytes: chunk.len(),
                needed: needed as u64,
            }),
        }
    }

    /// Compresses an image to blocks without a header, as `compress_lz4` of the reference library
    /// does. Returns their length.
    ///
    /// # Errors
    ///
    /// [`BitshuffleError::Image`], and [`BitshuffleError::Buffer`] if `out` is too short; one of
    /// [`max_len`](Self::max_len) suffices.
    pub fn compress(&mut self, image: &[u8], out: &mut [u8]) -> Result<usize, BitshuffleError> {
        let too_short = BitshuffleError::Buffer {
            bytes: out.len(),
            needed: self.max_len(image.len()) as u64,
        };
        let (image, last) = image.split_at(self.in_blocks(image.len())?);
        let mut at = 0;
        for block in image.chunks(self.block) {
            let Some(planes) = self.planes.get_mut(..block.len()) else {
                continue;
            };
            transpose::to_planes(self.simd, self.pixel_size, block, planes);
            let room = out.get_mut(at..).and_then(<[u8]>::split_first_chunk_mut);
            let Some((length, room)) = room else {
                return Err(too_short);
            };
            // The C library takes the length of a buffer as an i32.
            let longest = room.len().min(i32::MAX as usize);
            let (room, _) = room.split_at_mut(longest);
            let Ok(compressed) = compress_to_buffer(planes, None, false, room) else {
                return Err(too_short);
            };
            *length = (compressed as u32).to_be_bytes();
            at += LENGTH_LEN + compressed;
        }
        let Some(room) = out.get_mut(at..at + last.len()) else {
            return Err(too_short);
        };
        room.copy_from_slice(last);
        Ok(at + last.len())
    }

    /// Decompresses a chunk to the start of `image`. Returns the length of the image.
    ///
    /// # Errors
    ///
    /// [`BitshuffleError::Buffer`] if the image of the header is longer than `image`, which is
    /// therefore the limit to what is written and allocated; all others if the chunk is invalid.
    /// `image` then has any contents.
    pub fn decompress_chunk(
        &mut self,
        chunk: &[u8],
        image: &mut [u8],
    ) -> Result<usize, BitshuffleError> {
        let Some((header, _)) = chunk.split_first_chunk::<HEADER_LEN>() else {
            return Err(BitshuffleError::Length {
                bytes: chunk.len(),
                needed: HEADER_LEN,
            });
        };
        let &[a, b, c, d, e, f, g, h, block @ ..] = header;
        let len = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let block = match u32::from_be_bytes(block) {
            0 => DEFAULT_BLOCK,
            bytes => bytes as usize,
        };
        check_block(self.pixel_size, block)?;
        let bytes = image.len();
        let place = usize::try_from(len)
            .ok()
            .and_then(|len| image.get_mut(..len));
        let image = place.ok_or(BitshuffleError::Buffer { bytes, needed: len })?;
        self.decompress_blocks(chunk, HEADER_LEN, block, image)?;
        Ok(image.len())
    }

    /// Decompresses blocks without a header, which fill the image.
    ///
    /// # Errors
    ///
    /// All but [`BitshuffleError::Buffer`], if the data is no such image. `image` then has any
    /// contents.
    pub fn decompress(&mut self, data: &[u8], image: &mut [u8]) -> Result<(), BitshuffleError> {
        self.decompress_blocks(data, 0, self.block, image)
    }

    /// Decompresses the blocks from byte `start` of the data on.
    fn decompress_blocks(
        &mut self,
        data: &[u8],
        start: usize,
        block: usize,
        image: &mut [u8],
    ) -> Result<(), BitshuffleError> {
        let (image, last) = image.split_at_mut(self.in_blocks(image.len())?);
        let longest = block.min(image.len());
        if self.planes.len() < longest {
            self.planes.resize(longest, 0);
        }
        let mut rest = data.get(start..).unwrap_or_default();
        let ends_early = |rest: &[u8], len: usize| BitshuffleError::Length {
            bytes: data.len(),
            needed: (data.len() - rest.len()).saturating_add(len),
        };
        for block in image.chunks_mut(block) {
            let (&length, blocks) = rest
                .split_first_chunk::<LENGTH_LEN>()
                .ok_or_else(|| ends_early(rest, LENGTH_LEN))?;
            let length = u32::from_be_bytes(length) as usize;
            let (compressed, behind) = blocks
                .split_at_checked(length)
                .ok_or_else(|| ends_early(blocks, length))?;
            let bytes = block.len();
            let planes = self.planes.get_mut(..bytes);
            let len =
                planes.map(|planes| decompress_to_buffer(compressed, Some(bytes as i32), planes));
            match (len, self.planes.get(..bytes)) {
                (Some(Ok(len)), Some(planes)) if len == bytes => {
                    transpose::from_planes(self.simd, self.pixel_size, planes, block);
                }
                _ => {
                    let at = data.len() - blocks.len();
                    return Err(BitshuffleError::Lz4 { at, bytes });
                }
            }
            rest = behind;
        }
        if rest.len() != last.len() {
            return Err(ends_early(rest, last.len()));
        }
        last.copy_from_slice(rest);
        Ok(())
    }

    /// Bytes of an image that are in blocks: whole groups of pixels.
    fn in_blocks(&self, image: usize) -> Result<usize, BitshuffleError> {
        if !image.is_multiple_of(self.pixel_size) {
            return Err(BitshuffleError::Image {
                bytes: image,
                pixel_size: self.pixel_size,
            });
        }
        Ok(image - image % (GROUP * self.pixel_size))
    }
}

fn check_block(pixel_size: usize, bytes: usize) -> Result<(), BitshuffleError> {
    let multiple = GROUP * pixel_size;
    if bytes == 0 || bytes > MAX_BLOCK || !bytes.is_multiple_of(multiple) {
        return Err(BitshuffleError::Block { bytes, multiple });
    }
    Ok(())
}
