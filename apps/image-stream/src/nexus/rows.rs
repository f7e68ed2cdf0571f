//! Extendible two-dimensional dataset: a row for each image, of which the end may be empty.

use hdf5_metno::{Dataset, Group, Result};
use ndarray::ArrayView2;

use super::column::describe;

/// Bytes of a chunk on disk.
const CHUNK: usize = 1 << 16;
/// Columns of a chunk: those beyond the longest row of the images of a chunk take no space.
const COLUMNS: usize = 64;

/// A dataset of numbers of four bytes, and the rows to be appended to it.
pub(super) struct Rows {
    set: Dataset,
    columns: usize,
    /// Where no number is.
    empty: f32,
    /// The numbers of the waiting rows one after another, and the length of each.
    waiting: Vec<f32>,
    lengths: Vec<usize>,
    /// The rows as they are written.
    block: Vec<f32>,
}

impl Rows {
    /// An empty dataset in `group` with rows of so many columns; `empty` is where no number is.
    pub(super) fn create(
        group: &Group,
        (name, units, what): (&str, &str, &str),
        columns: usize,
        empty: f32,
    ) -> Result<Self> {
        let wide = columns.clamp(1, COLUMNS);
        let set = group
            .new_dataset::<f32>()
            .chunk((CHUNK / size_of::<f32>() / wide, wide))
            .fill_value(empty)
            .shape((0.., columns))
            .create(name)?;
        describe(&set, units, what)?;
        Ok(Self {
            set,
            columns,
            empty,
            waiting: Vec::new(),
            lengths: Vec::new(),
            block: Vec::new(),
        })
    }

    /// Adds a row, as far as there are columns for it.
    pub(super) fn push(&mut self, row: impl Iterator<Item = f32>) {
        let before = self.waiting.len();
        self.waiting.extend(row.take(self.columns));
        self.lengths.push(self.waiting.len() - before);
    }

    /// Appends the waiting rows.
    pub(super) fn flush(&mut self) -> Result<()> {
        let rows = self.lengths.len();
        let width = self.lengths.iter().copied().max().unwrap_or_default();
        if rows == 0 {
            return Ok(());
        }
        let start = self.set.shape().first().copied().unwrap_or_default();
        let end = start + rows;
        self.set.resize((end, self.columns))?;
        if width > 0 {
            self.block.clear();
            let mut rest = &self.waiting[..];
            for &length in &self.lengths {
                let (row, behind) = rest.split_at(length);
                self.block.extend_from_slice(row);
                self.block
                    .resize(self.block.len() + width - length, self.empty);
                rest = behind;
            }
            let block = ArrayView2::from_shape((rows, width), &self.block)?;
            self.set.write_slice(block, (start..end, 0..width))?;
        }
        self.waiting.clear();
        self.lengths.clear();
        Ok(())
    }
}
