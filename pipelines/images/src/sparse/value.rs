//! Types of pixels and of column numbers, as they are stored.

use crate::pixel::Pixel;

/// A pixel that a sparse image stores: `i16`, `i32` or `f32`.
pub trait Value: Pixel {
    /// Number of the type in a record.
    const TYPE: u8;
    /// Bytes of a value.
    const BYTES: usize;

    /// The bits of the value; those of an `i16` with its sign extended.
    fn bits(self) -> u32;
    /// The value that has these bits; of an `i16`, the lower ones.
    fn from_bits(bits: u32) -> Self;
    /// Writes values to bytes, little-endian, as far as there are both.
    fn store(values: &[Self], bytes: &mut [u8]);
    /// Reads values from bytes, little-endian, as far as there are both.
    fn load(bytes: &[u8], values: &mut [Self]);
}

/// Whether a pixel is bad.
#[inline(always)]
pub(super) fn is_bad<P: Pixel>(pixel: P) -> bool {
    pixel.photons().is_nan()
}

/// Number of a column: `u16` or `u32`.
pub trait Column: Copy + Send + Sync + 'static {
    /// Largest number.
    const MAX: usize;
    /// Bytes of a number.
    const BYTES: usize;

    /// The column of this number, which is at most [`MAX`](Self::MAX).
    fn new(number: u32) -> Self;
    /// Its number.
    fn number(self) -> usize;
    /// Writes columns to bytes, little-endian, as far as there are both.
    fn store(columns: &[Self], bytes: &mut [u8]);
}

macro_rules! value {
    ($type:ident, $number:literal, $bytes:literal, $bits:expr, $from:expr) => {
        impl Value for $type {
            const TYPE: u8 = $number;
            const BYTES: usize = $bytes;

            #[inline(always)]
            fn bits(self) -> u32 {
                $bits(self)
            }

            #[inline(always)]
            fn from_bits(bits: u32) -> Self {
                $from(bits)
            }

            fn store(values: &[Self], bytes: &mut [u8]) {
                for (to, value) in bytes.as_chunks_mut().0.iter_mut().zip(values) {
                    *to = value.to_le_bytes();
                }
            }

            fn load(bytes: &[u8], values: &mut [Self]) {
                for (to, value) in values.iter_mut().zip(bytes.as_chunks().0) {
                    *to = Self::from_le_bytes(*value);
                }
            }
        }
    };
}
value! { i16, 1, 2, |value| i32::from(value) as u32, |bits| bits as i16 }
value! { i32, 2, 4, |value| value as u32, |bits| bits as i32 }
value! { f32, 3, 4, f32::to_bits, f32::from_bits }

macro_rules! column {
    ($type:ident, $bytes:literal) => {
        impl Column for $type {
            const MAX: usize = $type::MAX as usize;
            const BYTES: usize = $bytes;

            #[inline(always)]
            fn new(number: u32) -> Self {
                number as $type
            }

            #[inline(always)]
            fn number(self) -> usize {
                self as usize
            }

            fn store(columns: &[Self], bytes: &mut [u8]) {
                for (to, column) in bytes.as_chunks_mut().0.iter_mut().zip(columns) {
                    *to = column.to_le_bytes();
                }
            }
        }
    };
}
column! { u16, 2 }
column! { u32, 4 }
