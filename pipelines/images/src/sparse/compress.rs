//! Dense images to CSR.
//!
//! A word of the mask stands for 64 pixels. In a sparse image most words are 0, and whole groups of
//! words are skipped at once. Of a word with few pixels they are taken four by four, without a
//! branch for each; of one with many they are moved to the front of vectors.

use pollux_pipelines::simd::{Decoder, LANES, Simd, Words};

use super::error::{SparseError, check_len};
use super::image::CsrImage;
use super::value::{Column, Value, is_bad};
use crate::pixel::Shape;

/// Pixels of a word of a mask.
const WORD: usize = u64::BITS as usize;
/// Words that are skipped together.
const GROUP: usize = 16;
/// Pixels of a word that are taken at once.
const STEP: usize = 4;
/// Pixels of a word from which on vectors are faster.
const DENSE: u32 = 12;

/// A compressed image.
#[derive(Debug, Clone, Copy)]
pub enum Compressed<'a, P, C> {
    /// Its CSR, which is shorter than the image.
    Sparse(&'a CsrImage<P, C>),
    /// The CSR would not be shorter: the dense image is to be kept.
    Dense,
}

/// Compressor of images of one shape to CSR. It allocates in its constructor, for the image with most
/// pixels that is not yet dense.
#[derive(Debug)]
pub struct CsrCompressor<P, C = u16> {
    simd: Simd,
    /// Largest number of pixels whose CSR is shorter than the image; none if not even that of no
    /// pixel is.
    limit: Option<usize>,
    /// The mask of one row.
    words: Vec<u64>,
    image: CsrImage<P, C>,
}

impl<P: Value, C: Column> CsrCompressor<P, C> {
    /// For images of this shape, of which the pixels at or above the threshold are stored.
    ///
    /// # Errors
    ///
    /// [`SparseError::Shape`], [`SparseError::Columns`], and [`SparseError::Threshold`] if the
    /// threshold is the code of a bad or of a saturated pixel.
    pub fn new(simd: Simd, shape: Shape, threshold: P) -> Result<Self, SparseError> {
        let Shape { rows, columns } = shape;
        let pixels = rows.checked_mul(columns).unwrap_or(0);
        if pixels == 0 || u32::try_from(pixels).is_err() {
            return Err(SparseError::Shape(shape));
        }
        let max = C::MAX.saturating_add(1);
        if columns > max {
            return Err(SparseError::Columns { columns, max });
        }
        if !threshold.is_valid() {
            return Err(SparseError::Threshold(format!("{threshold:?}")));
        }
        let offsets = size_of::<u32>() * (rows + 1);
        let shorter = (pixels * P::BYTES).checked_sub(offsets + 1);
        let limit = shorter.map(|bytes| bytes / (P::BYTES + C::BYTES));
        let places = limit.map_or(0, |limit| limit + WORD);
        Ok(Self {
            simd,
            limit,
            words: vec![0; columns.div_ceil(WORD)],
            image: CsrImage {
                shape,
                threshold,
                bad: 0,
                stored: 0,
                row_offsets: vec![0; rows + 1],
                columns: vec![C::new(0); places],
                values: vec![P::from_bits(0); places],
            },
        })
    }

    /// Largest number of stored pixels: an image with more of them stays dense. `None` if each image
    /// of this shape does.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Compresses an image.
    ///
    /// # Errors
    ///
    /// [`SparseError::Length`].
    pub fn compress(&mut self, image: &[P]) -> Result<Compressed<'_, P, C>, SparseError> {
        check_len("image", image.len(), self.image.shape.pixels())?;
        let threshold = self.image.threshold;
        let mask = Computed { threshold, bad: 0 };
        Ok(self.rows(image, mask))
    }

    /// Compresses an image by its mask: bit n of word w is set if pixel 64 w + n, counted over the
    /// whole image, is at or above the threshold and not bad. Bits behind the last pixel are 0. `bad`
    /// is the number of bad pixels.
    ///
    /// # Errors
    ///
    /// [`SparseError::Length`].
    pub fn compress_masked(
        &mut self,
        image: &[P],
        mask: &[u64],
        bad: u32,
    ) -> Result<Compressed<'_, P, C>, SparseError> {
        let pixels = self.image.shape.pixels();
        check_len("image", image.len(), pixels)?;
        check_len("mask", mask.len(), pixels.div_ceil(WORD))?;
        let columns = self.image.shape.columns;
        Ok(self.rows(image, Given { mask, columns, bad }))
    }

    fn rows<M: RowMask<P>>(&mut self, image: &[P], mask: M) -> Compressed<'_, P, C> {
        let Some(limit) = self.limit else {
            return Compressed::Dense;
        };
        let CsrImage {
            shape,
            row_offsets,
            columns,
            values,
            ..
        } = &mut self.image;
        let rows = Rows {
            image,
            row_len: shape.columns,
            mask,
            words: &mut self.words,
            row_offsets,
            out: Output {
                columns,
                values,
                stored: 0,
                limit,
            },
        };
        let Some((stored, bad)) = self.simd.decode(rows) else {
            return Compressed::Dense;
        };
        (self.image.stored, self.image.bad) = (stored, bad);
        Compressed::Sparse(&self.image)
    }
}

/// Where the mask of a row comes from.
trait RowMask<P> {
    /// Writes the mask of row number `row`, whose first pixel is bit 0 of the first word.
    fn scalar(&mut self, row: usize, pixels: &[P], words: &mut [u64]);
    /// The same with the instructions of which `isa` is the proof.
    fn vector<W: Words>(&mut self, isa: W::Isa, row: usize, pixels: &[P], words: &mut [u64]);
    /// Number of pixels in the mask, if that is known before the rows are.
    fn stored(&self) -> Option<usize>;
    /// Number of bad pixels: of the rows so far, or of all.
    fn bad(&self) -> u32;
}

/// A mask of the whole image.
struct Given<'a> {
    mask: &'a [u64],
    columns: usize,
    bad: u32,
}

impl<P> RowMask<P> for Given<'_> {
    #[inline(always)]
    fn scalar(&mut self, row: usize, _: &[P], words: &mut [u64]) {
        let first = row * self.columns;
        let mask = self.mask.get(first / WORD..).unwrap_or_default();
        let shift = first % WORD;
        if shift == 0 {
            for (word, mask) in words.iter_mut().zip(mask) {
                *word = *mask;
            }
        } else {
            let next = mask.iter().skip(1).chain([&0]);
            for ((word, low), high) in words.iter_mut().zip(mask).zip(next) {
                *word = low >> shift | high << (WORD - shift);
            }
        }
        cut(words, self.columns);
    }

    #[inline(always)]
    fn vector<W: Words>(&mut self, _: W::Isa, row: usize, pixels: &[P], words: &mut [u64]) {
        self.scalar(row, pixels, words);
    }

    #[inline(always)]
    fn stored(&self) -> Option<usize> {
        let counts = self.mask.iter().map(|word| word.count_ones());
        Some(counts.sum::<u32>() as usize)
    }

    fn bad(&self) -> u32 {
        self.bad
    }
}

/// The mask of pixels at or above a threshold.
struct Computed<P> {
    threshold: P,
    bad: u32,
}

impl<P: Value> Computed<P> {
    #[inline(always)]
    fn all(&mut self, pixels: &[P], words: &mut [u64], mask: impl Fn([bool; WORD]) -> u64) {
        let (chunks, rest) = pixels.as_chunks::<WORD>();
        let rest = padded(rest);
        for (word, chunk) in words.iter_mut().zip(chunks.iter().chain([&rest])) {
            *word = mask(chunk.map(|pixel| pixel >= self.threshold));
            let bad = chunk.iter().map(|&pixel| u32::from(is_bad(pixel)));
            self.bad += bad.sum::<u32>();
        }
        cut(words, pixels.len());
    }
}

impl<P: Value> RowMask<P> for Computed<P> {
    fn scalar(&mut self, _: usize, pixels: &[P], words: &mut [u64]) {
        self.all(pixels, words, |above| {
            let bits = above.into_iter().enumerate();
            bits.fold(0, |word, (n, above)| word | u64::from(above) << n)
        });
    }

    #[inline(always)]
    fn vector<W: Words>(&mut self, isa: W::Isa, _: usize, pixels: &[P], words: &mut [u64]) {
        self.all(
            pixels,
            words,
            #[inline(always)]
            |above| W::high_bits(isa, &above.map(|above| u8::from(above) << 7)),
        );
    }

    fn stored(&self) -> Option<usize> {
        None
    }

    fn bad(&self) -> u32 {
        self.bad
    }
}

/// Clears the bits behind the end of a row.
#[inline(always)]
fn cut(words: &mut [u64], columns: usize) {
    if let (Some(last), 1..) = (words.last_mut(), columns % WORD) {
        *last &= (1 << (columns % WORD)) - 1;
    }
}

/// The last pixels of a row, and zeros up to a whole word.
#[inline(always)]
fn padded<P: Value>(rest: &[P]) -> [P; WORD] {
    let mut padded = [P::from_bits(0); WORD];
    for (to, pixel) in padded.iter_mut().zip(rest) {
        *to = *pixel;
    }
    padded
}

/// Pixels that are stored so far.
struct Output<'a, P, C> {
    /// One more word than the limit.
    columns: &'a mut [C],
    values: &'a mut [P],
    stored: usize,
    limit: usize,
}

impl<P: Value, C: Column> Output<'_, P, C> {
    /// Places for the next `N` pixels.
    #[inline(always)]
    fn next<const N: usize>(&mut self) -> Option<(&mut [C; N], &mut [P; N])> {
        let columns = self.columns.get_mut(self.stored..)?.first_chunk_mut()?;
        let values = self.values.get_mut(self.stored..)?.first_chunk_mut()?;
        Some((columns, values))
    }

    /// Appends the pixels of a word, of which the first is in this column. False if there are then
    /// more than the limit.
    #[inline(always)]
    fn few(&mut self, word: u64, pixels: &[P; WORD], column: u32) -> bool {
        let count = word.count_ones() as usize;
        let Some((columns, values)) = self.next::<WORD>() else {
            return false;
        };
        let mut left = word;
        let (columns, _) = columns.as_chunks_mut::<STEP>();
        let (values, _) = values.as_chunks_mut::<STEP>();
        let steps = columns.iter_mut().zip(values).take(count.div_ceil(STEP));
        for (columns, values) in steps {
            for (to_column, value) in columns.iter_mut().zip(values) {
                // Behind the last pixel of the word some other is taken, and overwritten later.
                let n = left.trailing_zeros() as usize % WORD;
                *to_column = C::new(column + n as u32);
                *value = pixels[n];
                left &= left.wrapping_sub(1);
            }
        }
        self.stored += count;
        self.stored <= self.limit
    }

    /// The same for a word with many pixels.
    #[inline(always)]
    fn many<W: Words>(&mut self, isa: W::Isa, word: u64, pixels: &[P; WORD], column: u32) -> bool {
        let numbers = W::of(isa, &std::array::from_fn(|lane| lane as u32));
        let mut packed = [0; LANES];
        for (part, pixels) in pixels.as_chunks::<LANES>().0.iter().enumerate() {
            let first = part * LANES;
            let keep = (word >> first) as u16;
            let Some((columns, values)) = self.next::<LANES>() else {
                return false;
            };
            let bits = W::of(isa, &pixels.map(P::bits));
            bits.compress(keep, &mut packed);
            *values = packed.map(P::from_bits);
            let numbers = numbers + W::splat(isa, column + first as u32);
            numbers.compress(keep, &mut packed);
            *columns = packed.map(C::new);
            self.stored += keep.count_ones() as usize;
        }
        self.stored <= self.limit
    }
}

/// The compression of an image. It returns the numbers of stored and of bad pixels, or nothing
/// where the image stays dense.
struct Rows<'a, P, C, M> {
    image: &'a [P],
    row_len: usize,
    mask: M,
    words: &'a mut [u64],
    row_offsets: &'a mut [u32],
    out: Output<'a, P, C>,
}

impl<P: Value, C: Column, M> Rows<'_, P, C, M> {
    #[inline(always)]
    fn all(
        self,
        fill: impl Fn(&mut M, usize, &[P], &mut [u64]),
        append: impl Fn(&mut Output<P, C>, u64, &[P; WORD], u32) -> bool,
    ) -> Option<(usize, u32)>
    where
        M: RowMask<P>,
    {
        let Self {
            image,
            row_len,
            mut mask,
            words,
            row_offsets,
            mut out,
        } = self;
        if mask.stored().is_some_and(|stored| stored > out.limit) {
            return None;
        }
        let (first, ends) = row_offsets.split_first_mut()?;
        *first = 0;
        for (row, (pixels, end)) in image.chunks_exact(row_len).zip(ends).enumerate() {
            fill(&mut mask, row, pixels, words);
            let (chunks, rest) = pixels.as_chunks::<WORD>();
            for (group, words) in words.chunks(GROUP).enumerate() {
                if words.iter().fold(0, |all, word| all | word) == 0 {
                    continue;
                }
                let mut set = 0u32;
                for (n, word) in words.iter().enumerate() {
                    set |= u32::from(*word != 0) << n;
                }
                while set != 0 {
                    let n = set.trailing_zeros() as usize;
                    set &= set - 1;
                    let number = group * GROUP + n;
                    let word = words.get(n).copied().unwrap_or(0);
                    let column = (number * WORD) as u32;
                    let fits = match chunks.get(number) {
                        Some(pixels) => append(&mut out, word, pixels, column),
                        None => append(&mut out, word, &padded(rest), column),
                    };
                    if !fits {
                        return None;
                    }
                }
            }
            *end = out.stored as u32;
        }
        Some((out.stored, mask.bad()))
    }
}

impl<P: Value, C: Column, M: RowMask<P>> Decoder for Rows<'_, P, C, M> {
    type Out = Option<(usize, u32)>;

    fn scalar(self) -> Self::Out {
        self.all(M::scalar, |out, word, pixels, column| {
            out.few(word, pixels, column)
        })
    }

    #[inline(always)]
    fn vector<W: Words>(self, isa: W::Isa) -> Self::Out {
        self.all(
            #[inline(always)]
            |mask, row, pixels, words| mask.vector::<W>(isa, row, pixels, words),
            #[inline(always)]
            |out, word, pixels, column| {
                if !W::COMPRESSES || word.count_ones() < DENSE {
                    out.few(word, pixels, column)
                } else {
                    out.many::<W>(isa, word, pixels, column)
                }
            },
        )
    }
}
