//! Raw JUNGFRAU pixels to photons.
//!
//! photons = (ADU - pedestal) / gain, with the pedestal and the gain of the pixel at the gain that its
//! two upper bits name (R. Ponsard, "High Throughput, Low Latency Online Image Processing by GPU/FPGA
//! Coprocessors using RDMA Techniques", 2020, section 4.2.1).
//! [`Reading`](crate::calibration::Reading) has the codes of raw pixels, and [`Pixel`](crate::Pixel)
//! those of converted ones.
//!
//! # Precision
//! Nearly all pixels are in G0, and memory limits the speed. So the table of G0 has 4 bytes a pixel:
//! the pedestal in quarters of an ADU, and the inverse gain in 16 bits, of which the unit is a power
//! of two that suits the largest inverse gain of each block of 64 pixels. All types of output are made
//! from it, so that the integers are the rounded `f32`. The result of a pixel in G0 is off by at most
//!
//! * 1/8 ADU: 0.00025 photons where a photon is 507 ADU. The noise of a pixel is several ADU;
//! * 1/65534 of what the signal would be at the smallest gain of the block: where these are equal,
//!   0.0003 photons of 20.
//!
//! G1 and G2 have tables of `f32`, and their results are off by a few units in the last place.

mod kernel;
mod notes;
mod output;
mod tables;

use pollux_pipelines::simd::Simd;
use zerocopy::FromBytes as _;
use zerocopy::byteorder::little_endian::U16;

use self::kernel::{Convert, ConvertAndMark, SetPedestals};
pub use self::notes::{NoteConfig, Notes};
pub use self::output::Output;
use self::tables::{BLOCK, Tables};
use crate::Shape;
use crate::calibration::raw::NO_GAIN;
use crate::calibration::{Calibration, PedestalTracker};

/// Converts images of one module, or ranges of their pixels.
#[derive(Clone, Debug)]
pub struct Converter {
    simd: Simd,
    shape: Shape,
    tables: Tables,
}

/// Pixels cannot be converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The number of bytes is not that of the pixels.
    #[error("{bytes} bytes of raw data for {pixels} pixels: give two bytes for each pixel")]
    Bytes {
        /// Bytes of raw data.
        bytes: usize,
        /// Pixels of the output.
        pixels: usize,
    },
    /// The number of words for marks is not that of the pixels.
    #[error("{words} words of marks for {pixels} pixels: give one word for each 64 pixels")]
    Marks {
        /// Number of words.
        words: usize,
        /// Pixels of the output.
        pixels: usize,
    },
    /// The range starts within a block of 64 pixels, or it ends outside the image.
    #[error(
        "pixels {first} to {end} of {shape}: start at a multiple of 64, and end within the image"
    )]
    Range {
        /// First pixel.
        first: usize,
        /// Pixel after the last.
        end: usize,
        /// Shape of the image.
        shape: Shape,
    },
    /// Pedestals are of another module.
    #[error("pedestals of {pixels} pixels for {shape}: track the pedestals of this module")]
    Pedestals {
        /// Number of pedestals.
        pixels: usize,
        /// Shape of the image.
        shape: Shape,
    },
}

impl Converter {
    /// Makes the tables of a module; uses the best instruction set of this CPU.
    #[must_use]
    pub fn new(calibration: &Calibration) -> Self {
        Self::with_simd(calibration, Simd::best())
    }

    /// As [`new`](Self::new), with the given instruction set; the results do not depend on it.
    #[must_use]
    pub fn with_simd(calibration: &Calibration, simd: Simd) -> Self {
        Self {
            simd,
            shape: calibration.shape(),
            tables: Tables::new(calibration),
        }
    }

    /// Shape of the images.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Converts `out.len()` pixels from `first` on, which is 0 for an image and a multiple of 64 for a
    /// packet. `raw` holds them as `u16`, little endian, at any address.
    ///
    /// # Errors
    /// Numbers of pixels that do not fit each other or the image; nothing is converted then.
    pub fn convert<P: Output>(
        &self,
        first: usize,
        raw: &[u8],
        out: &mut [P],
    ) -> Result<(), ConvertError> {
        self.each_part(first, raw, out, |blocks, _| self.simd.run(blocks))
    }

    /// Converts as [`convert`](Self::convert), and marks the pixels whose converted value is at least
    /// `threshold` photons, a finite number: bit n of word m is set for pixel `first + 64 m + n`.
    /// Saturated pixels are marked, bad ones are not. Returns the number of marked pixels.
    ///
    /// # Errors
    /// Numbers of pixels that do not fit each other or the image; nothing is converted then.
    pub fn convert_and_mark<P: Output>(
        &self,
        first: usize,
        raw: &[u8],
        threshold: f32,
        out: &mut [P],
        marks: &mut [u64],
    ) -> Result<usize, ConvertError> {
        let words = out.len().div_ceil(BLOCK);
        if marks.len() != words {
            return Err(ConvertError::Marks {
                words: marks.len(),
                pixels: out.len(),
            });
        }
        let [count] = self.mark(first, raw, [threshold], out, [marks])?;
        Ok(count)
    }

    /// Converts a packet as [`convert`](Self::convert) does, and writes its notes.
    ///
    /// # Errors
    /// As [`convert`](Self::convert), and notes of another number of pixels. The notes are then
    /// cleared.
    pub fn convert_and_note<P: Output>(
        &self,
        first: usize,
        raw: &[u8],
        out: &mut [P],
        notes: &mut Notes<'_>,
    ) -> Result<(), ConvertError> {
        let NoteConfig { count, mark } = notes.config;
        let words = notes.marks.len();
        if mark.is_some() && words != out.len().div_ceil(BLOCK) {
            let pixels = out.len();
            notes.clear();
            return Err(ConvertError::Marks { words, pixels });
        }
        let counted = match (count, mark) {
            (None, None) => self.convert(first, raw, out).map(|()| [0; 2]),
            (Some(count), Some(mark)) if count.to_bits() != mark.to_bits() => {
                let marks = [&mut [], &mut *notes.marks];
                self.mark(first, raw, [count, mark], out, marks)
            }
            (_, Some(threshold)) | (Some(threshold), None) => self
                .mark(first, raw, [threshold], out, [&mut *notes.marks])
                .map(|[count]| [count; 2]),
        };
        match counted {
            Ok([count, _]) => notes.set_count(count),
            Err(_) => notes.clear(),
        }
        counted.map(|_| ())
    }

    /// Converts, and counts the pixels that reach each of the thresholds; marks them where there are
    /// words for it, as many as blocks or none.
    #[inline]
    fn mark<P: Output, const N: usize>(
        &self,
        first: usize,
        raw: &[u8],
        thresholds: [f32; N],
        out: &mut [P],
        mut marks: [&mut [u64]; N],
    ) -> Result<[usize; N], ConvertError> {
        let least = thresholds.map(|threshold| P::least_photons(P::threshold(threshold)));
        let mut counts = [0; N];
        self.each_part(first, raw, out, |blocks, word| {
            let marks = marks.each_mut();
            let marks = marks.map(|marks| marks.get_mut(word..).unwrap_or_default());
            let found = self.simd.run(ConvertAndMark {
                blocks,
                least,
                marks,
            });
            for (count, found) in counts.iter_mut().zip(found) {
                *count += found;
            }
        })?;
        Ok(counts)
    }

    /// Takes over the pedestals of a tracker if it has counted its number of dark frames since the last
    /// time; returns whether it has. Call it between two images: the pedestals hold from the next one
    /// on, and copying them takes less time than converting an image.
    ///
    /// # Errors
    /// The tracker is of another module.
    pub fn follow(&mut self, tracker: &mut PedestalTracker) -> Result<bool, ConvertError> {
        let pixels = tracker.pedestals().len();
        if pixels != self.shape.pixels() {
            let shape = self.shape;
            return Err(ConvertError::Pedestals { pixels, shape });
        }
        let due = tracker.take_due();
        if due {
            self.simd.run(SetPedestals {
                blocks: &mut self.tables.g0,
                pedestals: tracker.pedestals(),
            });
        }
        Ok(due)
    }

    /// Runs a conversion of the whole blocks of a range, from word 0 of its marks on, and one of the
    /// pixels behind them.
    #[inline]
    fn each_part<P: Output>(
        &self,
        first: usize,
        raw: &[u8],
        out: &mut [P],
        mut run: impl FnMut(Convert<'_, P>, usize),
    ) -> Result<(), ConvertError> {
        let pixels = out.len();
        let raw = match <[U16]>::ref_from_bytes(raw) {
            Ok(raw) if raw.len() == pixels => raw,
            _ => {
                let bytes = raw.len();
                return Err(ConvertError::Bytes { bytes, pixels });
            }
        };
        let end = first.saturating_add(pixels);
        if !first.is_multiple_of(BLOCK) || end > self.shape.pixels() {
            let shape = self.shape;
            return Err(ConvertError::Range { first, end, shape });
        }
        let (raw, raw_rest) = raw.as_chunks::<BLOCK>();
        let (out, out_rest) = out.as_chunks_mut::<BLOCK>();
        let block = first / BLOCK;
        let tables = self.tables.from(block);
        run(Convert { raw, tables, out }, 0);
        if !raw_rest.is_empty() {
            let mut padded = [U16::new(NO_GAIN); BLOCK];
            padded[..raw_rest.len()].copy_from_slice(raw_rest);
            let mut converted = [[P::BAD; BLOCK]];
            let last = Convert {
                raw: &[padded],
                tables: self.tables.from(block + raw.len()),
                out: &mut converted,
            };
            run(last, raw.len());
            out_rest.copy_from_slice(&converted[0][..raw_rest.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
