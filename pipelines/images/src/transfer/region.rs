//! A region of interest, and its place in a buffer.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Shape;

/// Most pixels of a receiver's buffer: 16 images of 16 Mpixel.
pub const MAX_BUFFER_PIXELS: usize = 1 << 28;

/// A rectangle of an image, and where its pixels lie in the buffer of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// First row.
    #[serde(default)]
    pub first_row: usize,
    /// Number of rows.
    pub rows: usize,
    /// First column.
    #[serde(default)]
    pub first_column: usize,
    /// Number of columns.
    pub columns: usize,
    /// Place of the first pixel in the buffer, in pixels.
    #[serde(default)]
    pub offset: usize,
    /// From row to row in the buffer, in pixels. By default the rows follow each other without a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<usize>,
}

impl Region {
    /// All pixels of an image, without gaps.
    #[must_use]
    pub const fn whole(shape: Shape) -> Self {
        Self {
            first_row: 0,
            rows: shape.rows,
            first_column: 0,
            columns: shape.columns,
            offset: 0,
            stride: None,
        }
    }

    /// Number of pixels.
    #[must_use]
    pub const fn pixels(&self) -> usize {
        self.rows * self.columns
    }

    /// From row to row in the buffer, in pixels.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.stride.unwrap_or(self.columns)
    }

    /// Where each row lies in the buffer.
    pub(super) fn places(&self) -> impl Iterator<Item = Range<usize>> {
        let Self {
            offset, columns, ..
        } = *self;
        let stride = self.stride();
        (0..self.rows).map(move |row| {
            let start = offset + row * stride;
            start..start + columns
        })
    }
}

/// Rows and columns as half-open ranges.
impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Those of a region that is not checked yet may be beyond all numbers.
        let end = |first: usize, count: usize| first.saturating_add(count);
        write!(
            f,
            "rows {}..{}, columns {}..{}",
            self.first_row,
            end(self.first_row, self.rows),
            self.first_column,
            end(self.first_column, self.columns)
        )
    }
}
