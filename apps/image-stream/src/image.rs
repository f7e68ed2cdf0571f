//! An image as the outputs take it: facts about it, and its pixels in a buffer that is handed over.

use std::fmt::Debug;
use std::sync::Arc;

use pollux_images::Shape;
use pollux_images::peaks::Peak;
use pollux_images::receive::Stored;
use pollux_images::stages::{StackFacts, Work};

/// Type of a pixel. Pixels are stored in little-endian order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelType {
    /// Raw: counts (EIGER).
    U8,
    /// Raw: gain bits and ADU, or counts (EIGER).
    U16,
    /// Raw: counts (EIGER).
    U32,
    /// Photons, as [`pollux_images::Pixel`] defines them.
    I16,
    /// Photons.
    I32,
    /// Photons.
    F32,
}

impl PixelType {
    /// Size of a pixel in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
        }
    }

    /// Its name in NumPy.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::F32 => "float32",
        }
    }

    /// Largest value of a valid pixel, where the type has one.
    #[must_use]
    pub const fn largest(self) -> Option<u32> {
        match self {
            // 0xC000 is saturated, and 0xFFFF is an error.
            Self::U16 => Some(0xBFFF),
            Self::U8 => Some(u8::MAX as u32 - 1),
            Self::U32 => Some(u32::MAX - 1),
            Self::I16 => Some(i16::MAX as u32 - 1),
            Self::I32 => Some(i32::MAX as u32 - 1),
            Self::F32 => None,
        }
    }
}

/// Largest number of 64-bit words in a loss map.
pub const MAX_LOSS_WORDS: usize = 64;

/// Loss map of an image: bit p % 64 of word p / 64 of a module is set if its packet p is missing. The
/// words of a module follow those of the module before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossMap([u64; MAX_LOSS_WORDS]);

impl LossMap {
    /// No packet is missing.
    pub const COMPLETE: Self = Self([0; MAX_LOSS_WORDS]);

    /// The loss map of those words. Words beyond [`MAX_LOSS_WORDS`] are ignored:
    /// [`Detector::check`](crate::Detector::check) refuses a detector that has them.
    #[must_use]
    pub fn new(words: &[u64]) -> Self {
        let mut map = Self::COMPLETE;
        for (to, from) in map.0.iter_mut().zip(words) {
            *to = *from;
        }
        map
    }

    /// The first `n` words, at most all.
    #[must_use]
    pub fn words(&self, n: usize) -> &[u64] {
        &self.0[..n.min(MAX_LOSS_WORDS)]
    }

    /// Number of missing packets.
    #[must_use]
    pub fn missing(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// Facts about an image, beside its pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageFacts {
    /// Frame number of the detector.
    pub frame: u64,
    /// Time of the detector: a clock of 10 MHz.
    pub timestamp: u64,
    /// Exposure time in units of 100 ns.
    pub exposure: u32,
    /// Number of the bunch (JUNGFRAU: detSpec1).
    pub bunch: u64,
    /// Number of Bragg peaks.
    pub peaks: u32,
    /// Whether the veto kept the image; a vetoed one may be written for monitoring.
    pub kept: bool,
    /// Missing packets.
    pub loss: LossMap,
    /// The event of the stack that the image belongs to.
    pub stack: StackFacts,
}

impl Default for ImageFacts {
    fn default() -> Self {
        Self {
            frame: 0,
            timestamp: 0,
            exposure: 0,
            bunch: 0,
            peaks: 0,
            kept: true,
            loss: LossMap::COMPLETE,
            stack: StackFacts::default(),
        }
    }
}

/// All pixels of an image, row by row. `B` is a handle of a buffer, which frees it or returns it to
/// its pool when it is dropped.
#[derive(Clone, Debug)]
pub enum Dense<B> {
    /// As they are in memory.
    Raw(B),
    /// Bitshuffle and LZ4, in the format of the HDF5 filter 32008: the number of bytes in the image
    /// (u64 BE), the bytes of a block (u32 BE), then the blocks, each behind its length (u32 BE).
    BitshuffleLz4(B),
}

/// The pixels of an image that are not zero: compressed sparse rows.
#[derive(Clone, Debug)]
pub struct Sparse<B> {
    /// The pixels of row r are those from `rows[r]` to `rows[r + 1]`: u32 LE, one more than rows.
    pub rows: B,
    /// Column of each pixel: u16 LE.
    pub columns: B,
    /// Value of each pixel, in the type of the image, LE.
    pub values: B,
}

/// Pixels of an image in either form.
#[derive(Clone, Debug)]
pub enum Pixels<B> {
    /// All pixels.
    Dense(Dense<B>),
    /// Those that are not zero.
    Sparse(Sparse<B>),
}

/// What stages found in an image: a handle that frees the findings, or returns them, when it is dropped.
pub trait Found: Debug + Send + Sync {
    /// Bragg peaks.
    fn peaks(&self) -> &[Peak];
    /// Radial curve: mean of each bin, and its standard error, in photons; empty without one.
    fn curve(&self) -> [&[f32]; 2];
}

impl<P: Stored> Found for Work<P> {
    fn peaks(&self) -> &[Peak] {
        &self.findings.peaks
    }

    fn curve(&self) -> [&[f32]; 2] {
        [&self.findings.curve, &self.findings.sigma]
    }
}

/// An image to be handed to an output: its facts, and pixels as [`Dense`] or [`Pixels`].
#[derive(Clone, Debug)]
pub struct ImageRecord<P> {
    /// Facts about the image.
    pub facts: ImageFacts,
    /// Its pixels.
    pub pixels: P,
    /// What stages found in it, if they found anything.
    pub found: Option<Arc<dyn Found>>,
}

/// Reason why the pixels of an image are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PixelError {
    /// The number of bytes is another than that of the image.
    #[error("an image of {shape} pixels of {bytes_each} bytes has {bytes} bytes: give {} bytes", shape.pixels() * bytes_each)]
    Size {
        /// Shape of the image.
        shape: Shape,
        /// Bytes of a pixel.
        bytes_each: usize,
        /// Bytes given, or those that a compressed image says that it has.
        bytes: u64,
    },
    /// Compressed data without its header.
    #[error("a bitshuffle-LZ4 image of {0} bytes: it starts with a header of 12 bytes")]
    Header(usize),
    /// Rows, columns and values of a sparse image do not belong together.
    #[error(
        "a sparse image with {rows} bytes of row offsets, {columns} of columns and {values} of values: \
         give (rows + 1) u32 that do not decrease, from 0 to the number of pixels, and a column and a \
         value for each pixel"
    )]
    Sparse {
        /// Bytes of the row offsets.
        rows: usize,
        /// Bytes of the columns.
        columns: usize,
        /// Bytes of the values.
        values: usize,
    },
}

impl<B: AsRef<[u8]>> Dense<B> {
    /// The stored bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Raw(bytes) | Self::BitshuffleLz4(bytes) => bytes.as_ref(),
        }
    }

    /// Checks the size; the size that it has when it is decompressed, where it is compressed.
    ///
    /// # Errors
    /// Another number of bytes than that of the image.
    pub fn check(&self, shape: Shape, pixel: PixelType) -> Result<(), PixelError> {
        let bytes = match self {
            Self::Raw(bytes) => bytes.as_ref().len() as u64,
            Self::BitshuffleLz4(bytes) => {
                let bytes = bytes.as_ref();
                match bytes.first_chunk::<8>() {
                    Some(total) if bytes.len() >= 12 => u64::from_be_bytes(*total),
                    _ => return Err(PixelError::Header(bytes.len())),
                }
            }
        };
        let expected = (shape.pixels() * pixel.bytes()) as u64;
        (bytes == expected).then_some(()).ok_or(PixelError::Size {
            shape,
            bytes_each: pixel.bytes(),
            bytes,
        })
    }
}

impl<B: AsRef<[u8]>> Sparse<B> {
    /// Row offsets.
    pub fn row_offsets(&self) -> impl Iterator<Item = u32> {
        let (offsets, _) = self.rows.as_ref().as_chunks();
        offsets.iter().map(|&bytes| u32::from_le_bytes(bytes))
    }

    /// Columns of the pixels.
    pub fn column_numbers(&self) -> impl Iterator<Item = u16> {
        let (columns, _) = self.columns.as_ref().as_chunks();
        columns.iter().map(|&bytes| u16::from_le_bytes(bytes))
    }

    /// Checks lengths and row offsets, and that each column is in the image.
    ///
    /// # Errors
    /// Parts that do not belong together.
    pub fn check(&self, shape: Shape, pixel: PixelType) -> Result<(), PixelError> {
        let (rows, columns) = (self.rows.as_ref().len(), self.columns.as_ref().len());
        let values = self.values.as_ref().len();
        let pixels = values / pixel.bytes();
        let lengths =
            rows == 4 * (shape.rows + 1) && columns == 2 * pixels && values % pixel.bytes() == 0;
        let mut last = 0;
        let mut rising = self.row_offsets().next() == Some(0);
        for offset in self.row_offsets() {
            rising &= offset >= last;
            last = offset;
        }
        let inside = self
            .column_numbers()
            .all(|column| usize::from(column) < shape.columns);
        (lengths && rising && inside && last as usize == pixels)
            .then_some(())
            .ok_or(PixelError::Sparse {
                rows,
                columns,
                values,
            })
    }
}

impl<B: AsRef<[u8]>> Pixels<B> {
    /// Number of bytes that are stored.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.bytes().len(),
            Self::Sparse(Sparse {
                rows,
                columns,
                values,
            }) => [rows, columns, values]
                .iter()
                .map(|part| part.as_ref().len())
                .sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SHAPE: Shape = Shape {
        rows: 2,
        columns: 3,
    };

    fn sparse(rows: &[u32], columns: &[u16]) -> Sparse<Vec<u8>> {
        Sparse {
            rows: rows.iter().flat_map(|n| n.to_le_bytes()).collect(),
            columns: columns.iter().flat_map(|n| n.to_le_bytes()).collect(),
            values: vec![1; columns.len() * 4],
        }
    }

    #[test]
    fn dense_pixels_have_the_size_of_the_image() {
        let check = |pixels: Dense<Vec<u8>>| pixels.check(SHAPE, PixelType::I16);
        assert_eq!(check(Dense::Raw(vec![0; 12])), Ok(()));
        for bytes in [0, 11, 13] {
            let error = check(Dense::Raw(vec![0; bytes])).unwrap_err();
            assert!(error.to_string().ends_with("give 12 bytes"), "{error}");
        }
        let mut compressed = 12u64.to_be_bytes().to_vec();
        assert_eq!(
            check(Dense::BitshuffleLz4(compressed.clone())),
            Err(PixelError::Header(8))
        );
        compressed.extend(8192u32.to_be_bytes());
        assert_eq!(check(Dense::BitshuffleLz4(compressed.clone())), Ok(()));
        compressed[0] = 0xFF;
        assert!(check(Dense::BitshuffleLz4(compressed)).is_err());
    }

    #[test]
    fn parts_of_a_sparse_image_belong_together() {
        let check = |image: Sparse<Vec<u8>>| image.check(SHAPE, PixelType::F32);
        assert_eq!(check(sparse(&[0, 0, 0], &[])), Ok(()));
        assert_eq!(check(sparse(&[0, 2, 3], &[0, 2, 1])), Ok(()));
        for wrong in [
            sparse(&[], &[]),
            sparse(&[0, 0], &[]),
            sparse(&[1, 1, 1], &[0]),
            sparse(&[0, 2, 1], &[0]),
            sparse(&[0, 1, 2], &[0]),
            sparse(&[0, 1, 1], &[3]),
        ] {
            assert!(check(wrong).is_err());
        }
    }

    #[test]
    fn a_loss_map_counts_its_packets() {
        let map = LossMap::new(&[1 << 63 | 1, 0b111]);
        assert_eq!(map.missing(), 5);
        assert_eq!(map.words(2), [1 << 63 | 1, 0b111]);
        assert_eq!(LossMap::new(&[u64::MAX; 70]).missing(), 64 * 64);
    }
}
