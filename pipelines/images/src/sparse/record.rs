//! A sparse image as bytes (docs/formats/sparse-image.md).

use zerocopy::FromBytes as _;
use zerocopy::byteorder::little_endian::{U16, U32};

use super::error::{SparseError, check_len};
use super::image::CsrImage;
use super::value::{Column, Value, is_bad};
use crate::pixel::Shape;

/// First bytes of a record.
pub const MAGIC: [u8; 4] = *b"PXSI";
/// Version of the layout.
pub const VERSION: u8 = 1;
/// Bytes of a record before its arrays.
pub const HEADER_LEN: usize = 40;

/// Bytes that the length of a record is a multiple of.
const ALIGN: usize = 8;

impl<P: Value, C: Column> CsrImage<P, C> {
    /// Length of its record in bytes.
    #[must_use]
    pub fn record_len(&self) -> usize {
        let columns = (self.stored * C::BYTES).next_multiple_of(4);
        let arrays = 4 * self.row_offsets.len() + columns + self.stored * P::BYTES;
        (HEADER_LEN + arrays).next_multiple_of(ALIGN)
    }

    /// Appends its record, as the image of this number. Does not allocate if `out` has the capacity.
    pub fn encode(&self, number: u64, out: &mut Vec<u8>) {
        let start = out.len();
        header::<P>(
            number,
            self.shape,
            C::BYTES,
            self.stored,
            self.bad,
            self.threshold,
            out,
        );
        out.resize(start + self.record_len(), 0);
        let (_, arrays) = out.split_at_mut(start + HEADER_LEN);
        let (offsets, arrays) = arrays.split_at_mut(4 * self.row_offsets.len());
        for (to, offset) in offsets.as_chunks_mut().0.iter_mut().zip(&self.row_offsets) {
            *to = offset.to_le_bytes();
        }
        let (columns, values) = arrays.split_at_mut((self.stored * C::BYTES).next_multiple_of(4));
        C::store(self.columns(), columns);
        P::store(self.values(), values);
    }
}

/// Appends the record of an image that stays dense. Does not allocate if `out` has the capacity.
///
/// # Errors
///
/// [`SparseError::Length`].
pub fn encode_dense<P: Value>(
    number: u64,
    shape: Shape,
    threshold: P,
    image: &[P],
    out: &mut Vec<u8>,
) -> Result<(), SparseError> {
    check_len("image", image.len(), shape.pixels())?;
    let bad = image.iter().map(|&pixel| u32::from(is_bad(pixel))).sum();
    let start = out.len();
    header::<P>(number, shape, 0, image.len(), bad, threshold, out);
    let len = (HEADER_LEN + image.len() * P::BYTES).next_multiple_of(ALIGN);
    out.resize(start + len, 0);
    let (_, values) = out.split_at_mut(start + HEADER_LEN);
    P::store(image, values);
    Ok(())
}

fn header<P: Value>(
    number: u64,
    shape: Shape,
    column_len: usize,
    stored: usize,
    bad: u32,
    threshold: P,
    out: &mut Vec<u8>,
) {
    out.extend(MAGIC);
    out.extend([VERSION, P::TYPE, column_len as u8, 0]);
    out.extend(number.to_le_bytes());
    let words = [
        shape.rows as u32,
        shape.columns as u32,
        stored as u32,
        bad,
        threshold.bits(),
        0,
    ];
    out.extend(words.into_iter().flat_map(u32::to_le_bytes));
}

/// A record of an image that was read from bytes, whose every field has been checked.
#[derive(Debug, Clone, Copy)]
pub struct SparseRecord<'a> {
    number: u64,
    shape: Shape,
    bad: u32,
    threshold: u32,
    value_type: u8,
    /// Empty if the image is dense.
    row_offsets: &'a [U32],
    columns: Columns<'a>,
    values: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
enum Columns<'a> {
    Dense,
    Two(&'a [U16]),
    Four(&'a [U32]),
}

impl<'a> SparseRecord<'a> {
    /// Reads the record at the start of the bytes. Returns it and the bytes behind it.
    ///
    /// # Errors
    ///
    /// [`SparseError::Truncated`] and [`SparseError::Field`].
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SparseError> {
        let header = Header::parse(bytes)?;
        let len = header.len();
        let record = usize::try_from(len)
            .ok()
            .and_then(|len| bytes.split_at_checked(len));
        let (record, behind) = record.ok_or(SparseError::Truncated {
            len: bytes.len(),
            needed: len,
        })?;
        let stored = header.stored as usize;
        let rest = record.get(HEADER_LEN..).unwrap_or_default();
        let (row_offsets, rest) = words::<U32>(rest, header.offsets());
        let (columns, rest) = match header.column_len {
            0 => (Columns::Dense, rest),
            2 => {
                let (columns, rest) = words(rest, stored);
                (Columns::Two(columns), rest)
            }
            _ => {
                let (columns, rest) = words(rest, stored);
                (Columns::Four(columns), rest)
            }
        };
        let (padding, rest) = rest.split_at(header.column_padding().min(rest.len()));
        let (values, tail) = rest.split_at((stored * header.value_len()).min(rest.len()));
        if let Some(&byte) = padding.iter().chain(tail).find(|&&byte| byte != 0) {
            return Err(field("padding", byte.into()));
        }
        let record = Self {
            number: header.number,
            shape: header.shape,
            bad: header.bad,
            threshold: header.threshold,
            value_type: header.value_type,
            row_offsets,
            columns,
            values,
        };
        record.check_rows(stored)?;
        Ok((record, behind))
    }

    /// Offsets ascend from 0 to the number of stored pixels, and so do the columns of each row, which
    /// are within the image.
    fn check_rows(&self, stored: usize) -> Result<(), SparseError> {
        let (Some(first), Some(last)) = (self.row_offsets.first(), self.row_offsets.last()) else {
            return Ok(());
        };
        if first.get() != 0 {
            return Err(field("first row offset", first.get().into()));
        }
        if last.get() as usize != stored {
            return Err(field("last row offset", last.get().into()));
        }
        for ends in self.row_offsets.windows(2) {
            let &[start, end] = ends else { continue };
            let mut next = 0;
            let pixels = start.get() as usize..end.get() as usize;
            if pixels.start > pixels.end || pixels.end > stored {
                return Err(field("row offset", end.get().into()));
            }
            for pixel in pixels {
                let column = self.column(pixel);
                if column < next || column >= self.shape.columns as u64 {
                    return Err(field("column", column));
                }
                next = column + 1;
            }
        }
        Ok(())
    }

    fn column(&self, pixel: usize) -> u64 {
        match self.columns {
            Columns::Dense => (pixel % self.shape.columns) as u64,
            Columns::Two(columns) => columns.get(pixel).map_or(0, |column| column.get().into()),
            Columns::Four(columns) => columns.get(pixel).map_or(0, |column| column.get().into()),
        }
    }

    /// Number of the image.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Shape of the dense image.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether all pixels are stored, the bad ones too.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        matches!(self.columns, Columns::Dense)
    }

    /// Number of bad pixels.
    #[must_use]
    pub fn bad(&self) -> u32 {
        self.bad
    }

    /// Number of the type of its values: [`Value::TYPE`].
    #[must_use]
    pub fn value_type(&self) -> u8 {
        self.value_type
    }

    /// Value from which on pixels are stored.
    ///
    /// # Errors
    ///
    /// [`SparseError::Type`].
    pub fn threshold<P: Value>(&self) -> Result<P, SparseError> {
        self.check_type::<P>()?;
        Ok(P::from_bits(self.threshold))
    }

    /// Stored pixels: row, column and value.
    ///
    /// # Errors
    ///
    /// [`SparseError::Type`].
    pub fn pixels<P: Value>(&self) -> Result<impl Iterator<Item = (usize, usize, P)>, SparseError> {
        self.check_type::<P>()?;
        let values = self.values.chunks_exact(P::BYTES);
        let mut row = 0;
        Ok(values.enumerate().map(move |(n, bytes)| {
            let mut value = [P::from_bits(0)];
            P::load(bytes, &mut value);
            let [value] = value;
            if self.is_dense() {
                return (n / self.shape.columns, n % self.shape.columns, value);
            }
            let ends = self.row_offsets.iter().skip(row + 1);
            row += ends.take_while(|end| end.get() as usize <= n).count();
            (row, self.column(n) as usize, value)
        }))
    }

    /// Writes the dense image, with 0 where no pixel is stored.
    ///
    /// # Errors
    ///
    /// [`SparseError::Type`] and [`SparseError::Length`].
    pub fn expand<P: Value>(&self, image: &mut [P]) -> Result<(), SparseError> {
        check_len("image", image.len(), self.shape.pixels())?;
        image.fill(P::from_bits(0));
        for (row, column, value) in self.pixels::<P>()? {
            if let Some(pixel) = image.get_mut(row * self.shape.columns + column) {
                *pixel = value;
            }
        }
        Ok(())
    }

    fn check_type<P: Value>(&self) -> Result<(), SparseError> {
        if self.value_type != P::TYPE {
            return Err(SparseError::Type(self.value_type));
        }
        Ok(())
    }
}

/// The header of a record, with valid fields.
struct Header {
    value_type: u8,
    column_len: u8,
    number: u64,
    shape: Shape,
    stored: u32,
    bad: u32,
    threshold: u32,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, SparseError> {
        let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(SparseError::Truncated {
                len: bytes.len(),
                needed: HEADER_LEN as u64,
            });
        };
        let (words, _) = header.as_chunks::<4>();
        let [
            magic,
            kinds,
            low,
            high,
            rows,
            columns,
            stored,
            bad,
            threshold,
            reserved,
        ] = std::array::from_fn(|i| words[i]);
        let number = |word| u64::from(u32::from_le_bytes(word));
        if magic != MAGIC {
            return Err(field("magic", number(magic)));
        }
        let [version, value_type, column_len, zero] = kinds;
        let pixels = number(rows) * number(columns);
        let known = if column_len == 0 { 0 } else { number(bad) } + number(stored);
        for (valid, name, value) in [
            (version == VERSION, "version", version.into()),
            (matches!(value_type, 1..=3), "value type", value_type.into()),
            (
                matches!(column_len, 0 | 2 | 4),
                "column length",
                column_len.into(),
            ),
            (zero == 0, "reserved byte", zero.into()),
            (number(reserved) == 0, "reserved word", number(reserved)),
            (pixels != 0, "number of pixels", pixels),
            (u32::try_from(pixels).is_ok(), "number of pixels", pixels),
            (known <= pixels, "number of stored pixels", number(stored)),
            (number(bad) <= pixels, "number of bad pixels", number(bad)),
            (
                column_len != 0 || number(stored) == pixels,
                "number of stored pixels",
                number(stored),
            ),
        ] {
            if !valid {
                return Err(field(name, value));
            }
        }
        Ok(Self {
            value_type,
            column_len,
            number: number(low) | number(high) << 32,
            shape: Shape {
                rows: number(rows) as usize,
                columns: number(columns) as usize,
            },
            stored: number(stored) as u32,
            bad: number(bad) as u32,
            threshold: number(threshold) as u32,
        })
    }

    fn offsets(&self) -> usize {
        if self.column_len == 0 {
            0
        } else {
            self.shape.rows + 1
        }
    }

    fn value_len(&self) -> usize {
        if self.value_type == 1 { 2 } else { 4 }
    }

    fn column_padding(&self) -> usize {
        let columns = self.stored as usize * usize::from(self.column_len);
        columns.next_multiple_of(4) - columns
    }

    /// Length of the record.
    fn len(&self) -> u64 {
        let pixel = usize::from(self.column_len) + self.value_len();
        let arrays = 4 * self.offsets() + self.stored as usize * pixel + self.column_padding();
        (HEADER_LEN + arrays).next_multiple_of(ALIGN) as u64
    }
}

fn field(field: &'static str, value: u64) -> SparseError {
    SparseError::Field { field, value }
}

/// The first `count` numbers of bytes, and what is behind them.
fn words<T: zerocopy::FromBytes + zerocopy::Immutable + zerocopy::Unaligned>(
    bytes: &[u8],
    count: usize,
) -> (&[T], &[u8]) {
    <[T]>::ref_from_prefix_with_elems(bytes, count).unwrap_or((&[], bytes))
}
