//! Images as compressed sparse rows (CSR).
//!
//! Pixels at or above a threshold are stored: their values, row by row, the column of each, and for
//! each row where its pixels begin. Bad pixels are counted, and not stored. Saturated pixels are
//! stored with their code. Pixels below the threshold are dropped, and are 0 once expanded.
//!
//! An image of which so many pixels are stored that its CSR is not shorter than the image itself
//! stays dense: [`Compressed::Dense`].
//!
//! [`SparseRecord`] is the layout in files and streams (docs/formats/sparse-image.md).

mod compress;
mod error;
mod image;
mod record;
mod value;

pub use compress::{Compressed, CsrCompressor};
pub use error::SparseError;
pub use image::CsrImage;
pub use record::{HEADER_LEN, MAGIC, SparseRecord, VERSION, encode_dense};
pub use value::{Column, Value};

#[cfg(test)]
mod tests;
