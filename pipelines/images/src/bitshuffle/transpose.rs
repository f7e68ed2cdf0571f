//! Bit planes: bit p of all elements of a block, one plane after the other.
//!
//! Plane p of n elements is n / 8 bytes, in which bit i of byte j is that of element 8 j + i. The
//! planes of an element of several bytes follow each other from the least significant bit on.

use pollux_pipelines::simd::{BLOCK, Decoder, Simd, Words};

/// Elements whose number a block is a multiple of: bits of a byte.
pub(super) const GROUP: usize = 8;

/// An element of a block, little-endian.
trait Element: Copy {
    /// Its length in bytes.
    const BYTES: usize;
    /// Byte number `n`.
    fn byte(self, n: usize) -> u8;
    /// The element that has these bytes.
    fn of(byte: impl Fn(usize) -> u8) -> Self;
}

/// By shifts of whole elements, which are compiled to vectors where the bytes of an array are not.
macro_rules! element {
    ($($bytes:literal $word:ty)*) => {$(
        impl Element for [u8; $bytes] {
            const BYTES: usize = $bytes;

            #[inline(always)]
            fn byte(self, n: usize) -> u8 {
                (<$word>::from_le_bytes(self) >> (8 * n)) as u8
            }

            #[inline(always)]
            fn of(byte: impl Fn(usize) -> u8) -> Self {
                (0..$bytes)
                    .fold(0, |word, n| word | <$word>::from(byte(n)) << (8 * n))
                    .to_le_bytes()
            }
        }
    )*};
}
element! { 1 u8 2 u16 4 u32 8 u64 }

/// Writes the planes of a block of elements of `size` bytes. The block is a multiple of eight elements
/// long, and as long as the planes.
pub(super) fn to_planes(simd: Simd, size: usize, block: &[u8], planes: &mut [u8]) {
    match size {
        1 => simd.decode(ToPlanes {
            elements: block.as_chunks::<1>().0,
            planes,
        }),
        2 => simd.decode(ToPlanes {
            elements: block.as_chunks::<2>().0,
            planes,
        }),
        4 => simd.decode(ToPlanes {
            elements: block.as_chunks::<4>().0,
            planes,
        }),
        _ => simd.decode(ToPlanes {
            elements: block.as_chunks::<8>().0,
            planes,
        }),
    }
}

/// Writes the elements of planes: the inverse of [`to_planes`].
pub(super) fn from_planes(simd: Simd, size: usize, planes: &[u8], block: &mut [u8]) {
    match size {
        1 => simd.decode(FromPlanes {
            planes,
            elements: block.as_chunks_mut::<1>().0,
        }),
        2 => simd.decode(FromPlanes {
            planes,
            elements: block.as_chunks_mut::<2>().0,
        }),
        4 => simd.decode(FromPlanes {
            planes,
            elements: block.as_chunks_mut::<4>().0,
        }),
        _ => simd.decode(FromPlanes {
            planes,
            elements: block.as_chunks_mut::<8>().0,
        }),
    }
}

struct ToPlanes<'a, T> {
    elements: &'a [T],
    planes: &'a mut [u8],
}

impl<T: Element> ToPlanes<'_, T> {
    /// Takes the bytes of 64 elements to the words of eight planes.
    #[inline(always)]
    fn all(self, words: impl Fn([u8; BLOCK]) -> [u64; 8]) {
        let (tiles, rest) = self.elements.as_chunks::<BLOCK>();
        let groups = self.elements.len() / GROUP;
        let mut planes = self.planes.chunks_exact_mut(groups.max(1));
        for n in 0..T::BYTES {
            let mut planes = std::array::from_fn::<_, 8, _>(|_| planes.next().unwrap_or_default());
            for (tile, elements) in tiles.iter().enumerate() {
                let words = words(std::array::from_fn(|i| elements[i].byte(n)));
                for (plane, word) in planes.iter_mut().zip(words) {
                    if let Some(place) = plane.as_chunks_mut().0.get_mut(tile) {
                        *place = word.to_le_bytes();
                    }
                }
            }
            for (group, elements) in rest.as_chunks::<GROUP>().0.iter().enumerate() {
                let bytes = u64::from_le_bytes(std::array::from_fn(|i| elements[i].byte(n)));
                let bytes = transposed(bytes).to_le_bytes();
                for (plane, byte) in planes.iter_mut().zip(bytes) {
                    if let Some(place) = plane.get_mut(8 * tiles.len() + group) {
                        *place = byte;
                    }
                }
            }
        }
    }
}

impl<T: Element> Decoder for ToPlanes<'_, T> {
    type Out = ();

    fn scalar(self) {
        self.all(|bytes| {
            let (groups, _) = bytes.as_chunks();
            by_bytes(std::array::from_fn(|i| {
                transposed(u64::from_le_bytes(groups[i]))
            }))
        });
    }

    #[inline(always)]
    fn vector<W: Words>(self, isa: W::Isa) {
        self.all(
            #[inline(always)]
            |mut bytes| {
                let mut words = [0; 8];
                // From the highest bit on: the next lower one takes its place.
                for word in words.iter_mut().rev() {
                    *word = W::high_bits(isa, &bytes);
                    bytes = bytes.map(|byte| byte << 1);
                }
                words
            },
        );
    }
}

struct FromPlanes<'a, T> {
    planes: &'a [u8],
    elements: &'a mut [T],
}

impl<T: Element> FromPlanes<'_, T> {
    /// Takes the words of eight planes to the bytes of 64 elements.
    #[inline(always)]
    fn all(self, bytes: impl Fn([u64; 8]) -> [u8; BLOCK]) {
        let groups = self.elements.len() / GROUP;
        let mut planes = self.planes.chunks_exact(groups.max(1));
        let planes: [[&[u8]; 8]; 8] =
            std::array::from_fn(|_| std::array::from_fn(|_| planes.next().unwrap_or_default()));
        let (tiles, rest) = self.elements.as_chunks_mut::<BLOCK>();
        let behind = 8 * tiles.len();
        for (tile, elements) in tiles.iter_mut().enumerate() {
            let mut tiles = [[0; BLOCK]; 8];
            for (to, planes) in tiles.iter_mut().zip(&planes).take(T::BYTES) {
                *to = bytes(planes.map(|plane| {
                    let word = plane.as_chunks().0.get(tile).copied();
                    u64::from_le_bytes(word.unwrap_or_default())
                }));
            }
            *elements = std::array::from_fn(|i| T::of(|n| tiles[n][i]));
        }
        for (group, elements) in rest.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
            let mut bytes = [[0; GROUP]; 8];
            for (bytes, planes) in bytes.iter_mut().zip(&planes).take(T::BYTES) {
                let bits = planes.map(|plane| plane.get(behind + group).copied().unwrap_or(0));
                *bytes = transposed(u64::from_le_bytes(bits)).to_le_bytes();
            }
            *elements = std::array::from_fn(|i| T::of(|n| bytes[n][i]));
        }
    }
}

impl<T: Element> Decoder for FromPlanes<'_, T> {
    type Out = ();

    fn scalar(self) {
        self.all(|words| {
            let groups = by_bytes(words).map(transposed);
            std::array::from_fn(|i| (groups[i / 8] >> (i % 8 * 8)) as u8)
        });
    }

    #[inline(always)]
    fn vector<W: Words>(self, isa: W::Isa) {
        self.all(
            #[inline(always)]
            |words| {
                let mut bytes = [0; BLOCK];
                for (bit, word) in words.into_iter().enumerate() {
                    let marked = W::bytes_of(isa, word, 1 << bit);
                    bytes = std::array::from_fn(|i| bytes[i] | marked[i]);
                }
                bytes
            },
        );
    }
}

/// Transposes a matrix of 8 x 8 bits: bit c of byte r becomes bit r of byte c. Blocks of one bit are
/// exchanged across the diagonal, then of 2 x 2 and of 4 x 4 (Warren, Hacker's Delight, 7-3).
#[inline(always)]
fn transposed(mut matrix: u64) -> u64 {
    for (shift, mask) in [
        (7, 0x00AA_00AA_00AA_00AA),
        (14, 0x0000_CCCC_0000_CCCC),
        (28, 0x0000_0000_F0F0_F0F0),
    ] {
        let differ = (matrix ^ (matrix >> shift)) & mask;
        matrix ^= differ ^ (differ << shift);
    }
    matrix
}

/// Transposes a matrix of 8 x 8 bytes, in the same way: byte c of word r becomes byte r of word c.
#[inline(always)]
fn by_bytes(mut words: [u64; 8]) -> [u64; 8] {
    for (rows, shift, mask) in [
        (1, 8, 0x00FF_00FF_00FF_00FF),
        (2, 16, 0x0000_FFFF_0000_FFFF),
        (4, 32, 0x0000_0000_FFFF_FFFF),
    ] {
        for row in (0..8).filter(|row| row & rows == 0) {
            let differ = ((words[row] >> shift) ^ words[row + rows]) & mask;
            words[row + rows] ^= differ;
            words[row] ^= differ << shift;
        }
    }
    words
}
