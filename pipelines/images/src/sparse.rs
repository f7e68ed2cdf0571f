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
mod record;
mod value;

use crate::pixel::Shape;

pub use compress::CsrCompressor;
pub use record::{HEADER_LEN, MAGIC, SparseRecord, VERSION, encode_dense};
pub use value::{Column, Value};

#[cfg(test)]
mod tests;

/// A configuration or an image that cannot be compressed, or bytes that are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SparseError {
    /// An image without pixels, or whose pixels cannot be counted in 32 bits.
    #[error("images of {0} pixels cannot be stored: use 1 to 4294967295 pixels")]
    Shape(Shape),
    /// More columns than the type of column numbers has values.
    #[error("rows of {columns} pixels are too long: use at most {max}, or wider column numbers")]
    Columns {
        /// Pixels of a row.
        columns: usize,
        /// Largest number of them.
        max: usize,
    },
    /// A threshold that is the code of a bad or of a saturated pixel.
    #[error("the threshold is {0}, which is no number of photons")]
    Threshold(String),
    /// An image or a mask of another shape.
    #[error("the {what} has a length of {len} instead of {expected}")]
    Length {
        /// `image` or `mask`.
        what: &'static str,
        /// Its length.
        len: usize,
        /// Length of its shape.
        expected: usize,
    },
    /// A record that ends early.
    #[error("the record has {len} bytes, but its header says {needed}")]
    Truncated {
        /// Bytes that there are.
        len: usize,
        /// Length of the record.
        needed: u64,
    },
    /// A field of a record without a meaning.
    #[error("the record's {field} is {value}, which is invalid")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// Pixels of another type than those of the record.
    #[error("the record has pixels of type {0}, which are not those that are read")]
    Type(u8),
}

/// Pixels of an image as compressed sparse rows.
///
/// The pixels of row r are `row_offsets()[r]` to `row_offsets()[r + 1]` of `columns()` and `values()`,
/// with columns ascending: the arrays `indptr`, `indices` and `data` of `scipy.sparse.csr_matrix`.
#[derive(Debug, Clone)]
pub struct CsrImage<P, C = u16> {
    shape: Shape,
    threshold: P,
    bad: u32,
    stored: usize,
    /// One more than there are rows.
    row_offsets: Vec<u32>,
    /// As long as the largest image and one more word of a mask.
    columns: Vec<C>,
    values: Vec<P>,
}

impl<P: Value, C: Column> CsrImage<P, C> {
    /// Shape of the dense image.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Value from which on pixels are stored.
    #[must_use]
    pub fn threshold(&self) -> P {
        self.threshold
    }

    /// Number of bad pixels, which are not stored.
    #[must_use]
    pub fn bad(&self) -> u32 {
        self.bad
    }

    /// Where the pixels of each row begin, and where those of the last one end.
    #[must_use]
    pub fn row_offsets(&self) -> &[u32] {
        &self.row_offsets
    }

    /// Column of each stored pixel.
    #[must_use]
    pub fn columns(&self) -> &[C] {
        self.columns.get(..self.stored).unwrap_or_default()
    }

    /// Value of each stored pixel.
    #[must_use]
    pub fn values(&self) -> &[P] {
        self.values.get(..self.stored).unwrap_or_default()
    }

    /// Writes the dense image, with 0 where no pixel is stored.
    ///
    /// # Errors
    ///
    /// [`SparseError::Length`].
    pub fn expand(&self, image: &mut [P]) -> Result<(), SparseError> {
        check_len("image", image.len(), self.shape.pixels())?;
        image.fill(P::from_bits(0));
        let rows = image.chunks_exact_mut(self.shape.columns);
        for (row, ends) in rows.zip(self.row_offsets.windows(2)) {
            let &[start, end] = ends else { continue };
            let pixels = start as usize..end as usize;
            let columns = self.columns.get(pixels.clone()).unwrap_or_default();
            let values = self.values.get(pixels).unwrap_or_default();
            for (column, value) in columns.iter().zip(values) {
                if let Some(pixel) = row.get_mut(column.number()) {
                    *pixel = *value;
                }
            }
        }
        Ok(())
    }
}

/// A compressed image.
#[derive(Debug, Clone, Copy)]
pub enum Compressed<'a, P, C> {
    /// Its CSR, which is shorter than the image.
    Sparse(&'a CsrImage<P, C>),
    /// The CSR would not be shorter: the dense image is to be kept.
    Dense,
}

fn check_len(what: &'static str, len: usize, expected: usize) -> Result<(), SparseError> {
    if len != expected {
        return Err(SparseError::Length {
            what,
            len,
            expected,
        });
    }
    Ok(())
}
