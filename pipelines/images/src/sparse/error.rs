//! What is wrong with a configuration, an image or a record.

use crate::pixel::Shape;

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

/// The length of an image or a mask.
pub(super) fn check_len(
    what: &'static str,
    len: usize,
    expected: usize,
) -> Result<(), SparseError> {
    if len != expected {
        return Err(SparseError::Length {
            what,
            len,
            expected,
        });
    }
    Ok(())
}
