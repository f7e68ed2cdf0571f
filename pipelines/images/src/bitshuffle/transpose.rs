//! Bit planes: bit p of all elements of a block, one plane after the other.
//!
//! Plane p of n elements is n / 8 bytes, in which bit i of byte j is that of element 8 j + i. The
//! planes of an element of several bytes follow each other from the least significant bit on.

use pollux_pipelines::simd::{BLOCK, Decoder, Kernel, Lanes, Simd, Words};

use super::GROUP;

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
        1 => simd.run(FromPlanes {
            planes,
            elements: block.as_chunks_mut::<1>().0,
        }),
        2 => simd.run(FromPlanes {
            planes,
            elements: block.as_chunks_mut::<2>().0,
        }),
        4 => simd.run(FromPlanes {
            planes,
            elements: block.as_chunks_mut::<4>().0,
        }),
        _ => simd.run(FromPlanes {
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
        let stride = self.elements.len() / GROUP;
        let (tiles, rest) = self.elements.as_chunks::<BLOCK>();
        for (tile, elements) in tiles.iter().enumerate() {
            for n in 0..T::BYTES {
                let words = words(std::array::from_fn(|i| elements[i].byte(n)));
                for (bit, word) in words.into_iter().enumerate() {
                    let at = (8 * n + bit) * stride + 8 * tile;
                    if let Some(place) = self.planes.get_mut(at..at + 8) {
                        place.copy_from_slice(&word.to_le_bytes());
                    }
                }
            }
        }
        for (group, elements) in rest.as_chunks::<GROUP>().0.iter().enumerate() {
            for n in 0..T::BYTES {
                let bytes = u64::from_le_bytes(std::array::from_fn(|i| elements[i].byte(n)));
                for (bit, byte) in transposed(bytes).to_le_bytes().into_iter().enumerate() {
                    let at = (8 * n + bit) * stride + 8 * tiles.len() + group;
                    if let Some(place) = self.planes.get_mut(at) {
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
            let groups = words(bytes).map(transposed);
            words(gathered(&groups))
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

impl<T: Element> Kernel for FromPlanes<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self, _: V::Isa) {
        let stride = self.elements.len() / GROUP;
        let (tiles, rest) = self.elements.as_chunks_mut::<BLOCK>();
        let behind = 8 * tiles.len();
        for (tile, elements) in tiles.iter_mut().enumerate() {
            let mut bytes = [[0; BLOCK]; 8];
            for (n, bytes) in bytes.iter_mut().enumerate().take(T::BYTES) {
                let words: [u64; 8] = std::array::from_fn(|bit| {
                    let at = (8 * n + bit) * stride + 8 * tile;
                    let place = self.planes.get(at..).and_then(<[u8]>::first_chunk);
                    place.map_or(0, |word| u64::from_le_bytes(*word))
                });
                let groups = self::words(gathered(&words)).map(transposed);
                *bytes = flat(groups);
            }
            *elements = std::array::from_fn(|i| T::of(|n| bytes[n][i]));
        }
        for (group, elements) in rest.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
            let mut bytes = [[0; GROUP]; 8];
            for (n, bytes) in bytes.iter_mut().enumerate().take(T::BYTES) {
                let planes = u64::from_le_bytes(std::array::from_fn(|bit| {
                    let at = (8 * n + bit) * stride + behind + group;
                    self.planes.get(at).copied().unwrap_or(0)
                }));
                *bytes = transposed(planes).to_le_bytes();
            }
            *elements = std::array::from_fn(|i| T::of(|n| bytes[n][i]));
        }
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

/// Byte 0 of each word, then byte 1 of each, and so on.
#[inline(always)]
fn gathered(words: &[u64; 8]) -> [u8; BLOCK] {
    std::array::from_fn(|i| (words[i % 8] >> (i / 8 * 8)) as u8)
}

#[inline(always)]
fn words(bytes: [u8; BLOCK]) -> [u64; 8] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

#[inline(always)]
fn flat(words: [u64; 8]) -> [u8; BLOCK] {
    std::array::from_fn(|i| (words[i / 8] >> (i % 8 * 8)) as u8)
}
