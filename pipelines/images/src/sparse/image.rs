//! An image as CSR in memory.

use super::error::{SparseError, check_len};
use super::value::{Column, Value};
use crate::pixel::Shape;

/// Pixels of an image as compressed sparse rows.
///
/// The pixels of row r are `row_offsets()[r]` to `row_offsets()[r + 1]` of `columns()` and `values()`,
/// with columns ascending: the arrays `indptr`, `indices` and `data` of `scipy.sparse.csr_matrix`.
#[derive(Debug, Clone)]
pub struct CsrImage<P, C = u16> {
    pub(super) shape: Shape,
    pub(super) threshold: P,
    pub(super) bad: u32,
    pub(super) stored: usize,
    /// One more than there are rows.
    pub(super) row_offsets: Vec<u32>,
    /// For the largest image that is not dense, and one more word of a mask.
    pub(super) columns: Vec<C>,
    pub(super) values: Vec<P>,
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
