//! Sparse images of a file: rows, columns and values of all of them, one after the other.

use hdf5_metno::{Group, Result};

use super::column::{Column, group};
use crate::image::{PixelType, Sparse};

/// Pixels that are gathered before they are appended.
const GATHERED: usize = 1 << 18;

/// The group `sparse`.
pub(super) struct SparseColumns {
    image: Column<u64>,
    first: Column<u64>,
    rows: Column<u32>,
    columns: Column<u16>,
    values: Values,
    pixels: u64,
}

/// Values in the type of the image.
enum Values {
    U8(Column<u8>),
    U16(Column<u16>),
    U32(Column<u32>),
    I16(Column<i16>),
    I32(Column<i32>),
    F32(Column<f32>),
}

impl SparseColumns {
    pub(super) fn create(entry: &Group, pixel: PixelType) -> Result<Self> {
        let at = &group(entry, "sparse", "NXcollection")?;
        Ok(Self {
            image: Column::create(at, "image", "", "Number of the image in the file")?,
            first: Column::create(at, "first", "", "Its first pixel in columns and values")?,
            rows: Column::create(
                at,
                "rows",
                "",
                "Offsets of its rows from that pixel, and its number of pixels",
            )?,
            columns: Column::create(at, "columns", "", "Column of each pixel")?,
            values: Values::create(at, pixel)?,
            pixels: 0,
        })
    }

    /// Adds an image that was checked.
    pub(super) fn push<B: AsRef<[u8]>>(&mut self, number: u64, image: &Sparse<B>) -> Result<()> {
        self.image.push(number);
        self.first.push(self.pixels);
        self.rows.extend(image.row_offsets());
        let before = self.columns.waiting();
        self.columns.extend(image.column_numbers());
        self.pixels += (self.columns.waiting() - before) as u64;
        self.values.extend(image.values.as_ref());
        if self.columns.waiting() >= GATHERED {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.values.flush()?;
        self.columns.flush()?;
        self.rows.flush()?;
        self.first.flush()?;
        self.image.flush()
    }
}

impl Values {
    fn create(at: &Group, pixel: PixelType) -> Result<Self> {
        let (name, what) = ("values", "Value of each pixel");
        Ok(match pixel {
            PixelType::U8 => Self::U8(Column::create(at, name, "", what)?),
            PixelType::U16 => Self::U16(Column::create(at, name, "", what)?),
            PixelType::U32 => Self::U32(Column::create(at, name, "", what)?),
            PixelType::I16 => Self::I16(Column::create(at, name, "", what)?),
            PixelType::I32 => Self::I32(Column::create(at, name, "", what)?),
            PixelType::F32 => Self::F32(Column::create(at, name, "", what)?),
        })
    }

    fn extend(&mut self, bytes: &[u8]) {
        let (twos, fours) = (bytes.as_chunks().0, bytes.as_chunks().0);
        match self {
            Self::U8(column) => column.extend(bytes.iter().copied()),
            Self::U32(column) => column.extend(fours.iter().map(|&it| u32::from_le_bytes(it))),
            Self::U16(column) => column.extend(twos.iter().map(|&it| u16::from_le_bytes(it))),
            Self::I16(column) => column.extend(twos.iter().map(|&it| i16::from_le_bytes(it))),
            Self::I32(column) => column.extend(fours.iter().map(|&it| i32::from_le_bytes(it))),
            Self::F32(column) => column.extend(fours.iter().map(|&it| f32::from_le_bytes(it))),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Self::U8(column) => column.flush(),
            Self::U32(column) => column.flush(),
            Self::U16(column) => column.flush(),
            Self::I16(column) => column.flush(),
            Self::I32(column) => column.flush(),
            Self::F32(column) => column.flush(),
        }
    }
}
