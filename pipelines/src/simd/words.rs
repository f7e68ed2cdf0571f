//! Sixteen whole numbers at once, for decoders.

use std::ops::{Add, BitAnd, BitOr, Sub};

use zerocopy::byteorder::little_endian::U32;

use super::lanes::LANES;

/// Bytes of a [block](Words::block).
pub const BLOCK: usize = 64;

/// Sixteen numbers of 32 bits; sums and differences wrap. Bit n of a mask stands for lane n.
pub trait Words:
    Copy + Add<Output = Self> + Sub<Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self>
{
    /// Proof that the CPU has the instructions.
    type Isa: Copy;
    /// Whether [`compress`](Self::compress) is one instruction, and not several and a table.
    const COMPRESSES: bool = false;

    /// The same word in all lanes.
    fn splat(isa: Self::Isa, value: u32) -> Self;
    /// A word in each lane.
    fn of(isa: Self::Isa, words: &[u32; LANES]) -> Self;
    /// Every other word, from the first on.
    fn evens(isa: Self::Isa, words: [&[u32; LANES]; 2]) -> Self;
    /// The first sixteen words of what is left of a packet; zeros in the lanes behind its end.
    fn load(isa: Self::Isa, words: &[U32]) -> Self;
    /// The first bytes of what is left of a packet, and zeros behind its end. Written in one piece,
    /// if the CPU can, so that what is read of them next does not wait for several.
    fn block(isa: Self::Isa, bytes: &[u8]) -> [u8; BLOCK];
    /// The word of each lane's number in a list; its last one where there is none, or 0.
    fn gather(isa: Self::Isa, words: &[u32], numbers: Self) -> Self;
    /// A byte in each lane.
    fn widen(isa: Self::Isa, bytes: &[u8; LANES]) -> Self;
    /// Writes the words of all lanes.
    fn store(self, words: &mut [u32; LANES]);
    /// Each lane, added to the bits of `base`, with which it has none in common.
    fn store_with(self, base: u64, words: &mut [u64; LANES]);
    /// The lanes of the mask, in their order from the first place on; what is behind them is of
    /// no meaning.
    fn compress(self, keep: u16, words: &mut [u32; LANES]);
    /// Shifts each lane to the left.
    #[must_use]
    fn shl(self, bits: u32) -> Self;
    /// Shifts each lane to the right, and zeros in.
    #[must_use]
    fn shr(self, bits: u32) -> Self;
    /// Where the two are equal.
    fn eq(self, other: Self) -> u16;
    /// Where `self` <= `other`.
    fn le(self, other: Self) -> u16;
    /// 1 where `self` <= `other`, else 0.
    #[must_use]
    fn at_most(self, other: Self) -> Self;
    /// The smaller one.
    #[must_use]
    fn min(self, other: Self) -> Self;
    /// The largest of all lanes.
    fn largest(self) -> u32;
    /// `self` in the lanes of the mask, else zero.
    #[must_use]
    fn only(self, mask: u16) -> Self;
    /// In each lane `self` of the last lane up to it that is in the mask, or `before`, which is the
    /// same in all lanes, if none is.
    #[must_use]
    fn last_of(self, mask: u16, before: Self) -> Self;
    /// In each lane the sum of all up to it.
    #[must_use]
    fn prefix_sum(self) -> Self;
    /// The last lane, in each lane.
    #[must_use]
    fn last(self) -> Self;
    /// The first lane.
    fn first(self) -> u32;
    /// Bit 7 of each byte.
    fn high_bits(isa: Self::Isa, bytes: &[u8; BLOCK]) -> u64;
    /// `value` in the bytes of the mask, else zero: the inverse of [`high_bits`](Self::high_bits).
    fn bytes_of(isa: Self::Isa, mask: u64, value: u8) -> [u8; BLOCK];
    /// Place of set bit number `n`, counted from 0; 64 where there is none. `n` is below 64.
    fn nth_set(isa: Self::Isa, bits: u64, n: u32) -> u32;
}

/// As [`Lanes::gather`](super::lanes::Lanes::gather), by the words of the same instructions.
#[inline(always)]
pub(super) fn gather<W: Words>(isa: W::Isa, table: &[u32], index: &[u32; LANES]) -> [u32; LANES] {
    let mut words = [0; LANES];
    W::gather(isa, table, W::of(isa, index)).store(&mut words);
    words
}

/// A decoder of packets, or another piece of work on whole numbers. Both ways must be
/// `#[inline(always)]`, and so must be what `vector` calls: only then is it compiled with the
/// instructions.
pub trait Decoder {
    /// Result of the decoder.
    type Out;
    /// The plain way, which is the reference.
    fn scalar(self) -> Self::Out;
    /// The same with the instructions of which `isa` is the proof.
    fn vector<W: Words>(self, isa: W::Isa) -> Self::Out;
}

/// For each mask of eight lanes: which of them are in it, in their order.
pub(super) const MEMBERS: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut n) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][n] = lane as u8;
                n += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
};

/// For each mask of eight lanes, and for each lane: the last one up to it that is in the mask, or
/// [`NONE`].
pub(super) const LAST: [[u8; 8]; 256] = {
    let mut table = [[NONE; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut last) = (0, NONE);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                last = lane as u8;
            }
            table[mask][lane] = last;
            lane += 1;
        }
        mask += 1;
    }
    table
};
/// No lane.
pub(super) const NONE: u8 = 0x80;

/// As [`Words::nth_set`], for CPUs on which PDEP is slow (AMD's before Zen 3) or missing.
#[inline(always)]
pub(super) fn nth_set(bits: u64, n: u32) -> u32 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Set bits in each byte: of pairs, of fours, of eights.
    let pairs = bits - ((bits >> 1) & (0x55 * EACH));
    let fours = (pairs & (0x33 * EACH)) + ((pairs >> 2) & (0x33 * EACH));
    let eights = (fours + (fours >> 4)) & (0x0F * EACH);
    // In each byte those up to it, 64 at most.
    let up_to = eights.wrapping_mul(EACH);
    // Bytes up to which there are no more than `n`: the one that is looked for is behind them.
    let byte = (((0x80 | u64::from(n)) * EACH - up_to) & (0x80 * EACH)).count_ones();
    if byte == 8 {
        return 64;
    }
    let before = ((up_to << 8) >> (8 * byte)) as u8;
    let members = &MEMBERS[usize::from((bits >> (8 * byte)) as u8)];
    8 * byte + u32::from(members[(n as usize).wrapping_sub(before.into()) % 8])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zerocopy::IntoBytes as _;

    use super::*;
    use crate::simd::Simd;

    /// Every operation, as [`Words`] describes it.
    struct Every<'a> {
        a: [u32; LANES],
        b: [u32; LANES],
        packet: &'a [U32],
        bytes: [u8; LANES],
        mask: u16,
        bits: u64,
        n: u32,
    }

    type Results = (
        Vec<[u32; LANES]>,
        [u64; LANES],
        [u32; 5],
        u64,
        [[u8; BLOCK]; 2],
    );

    const BASE: u64 = 0x1234_5678_0000_0000;

    /// The first so many lanes; the others are of no meaning.
    fn cut(mut words: [u32; LANES], mask: u16) -> [u32; LANES] {
        words[mask.count_ones() as usize..].fill(0);
        words
    }

    impl Decoder for Every<'_> {
        type Out = Results;

        fn scalar(self) -> Results {
            let Self { a, b, mask, .. } = self;
            let lanes = |f: &dyn Fn(usize) -> u32| -> [u32; LANES] { std::array::from_fn(f) };
            let has = |lane: usize| mask >> lane & 1 == 1;
            let bits = |f: &dyn Fn(usize) -> bool| {
                (0..LANES).fold(0, |bits, i| bits | u32::from(f(i)) << i)
            };
            let mut kept = [0; LANES];
            let members = (0..LANES).filter(|&lane| has(lane));
            kept.iter_mut()
                .zip(members)
                .for_each(|(to, lane)| *to = a[lane]);
            let words = vec![
                [self.n; LANES],
                lanes(&|i| self.packet.get(i).map_or(0, |word| word.get())),
                self.bytes.map(u32::from),
                kept,
                lanes(&|i| a[i] << 7),
                lanes(&|i| a[i] >> 19),
                lanes(&|i| if has(i) { a[i] } else { 0 }),
                lanes(&|i| (0..=i).rev().find(|&i| has(i)).map_or(b[0], |i| a[i])),
                lanes(&|i| a[..=i].iter().fold(0, |sum, &n| sum.wrapping_add(n))),
                [a[LANES - 1]; LANES],
                lanes(&|i| a[i].wrapping_add(b[i])),
                lanes(&|i| a[i].wrapping_sub(b[i])),
                lanes(&|i| a[i].min(b[i])),
                lanes(&|i| a[i] & b[i]),
                lanes(&|i| a[i] | b[i]),
                lanes(&|i| u32::from(a[i] <= b[i])),
                lanes(&|i| b[(a[i] % 32).min(LANES as u32 - 1) as usize]),
                lanes(&|i| if i < 8 { a[2 * i] } else { b[2 * i - LANES] }),
            ];
            let mut left = self.bits;
            (0..self.n).for_each(|_| left &= left.wrapping_sub(1));
            let numbers = [
                a[0],
                bits(&|i| a[i] == b[i]),
                left.trailing_zeros(),
                bits(&|i| a[i] <= b[i]),
                a.iter().fold(0, |largest, &n| largest.max(n)),
            ];
            let mut block = [0; BLOCK];
            let bytes = self.packet.as_bytes();
            let bytes = &bytes[..bytes.len().min(BLOCK)];
            block[..bytes.len()].copy_from_slice(bytes);
            let high = (0..BLOCK).fold(0, |bits, i| bits | u64::from(block[i] >> 7) << i);
            let value = self.bytes[0];
            let marked = std::array::from_fn(|i| value * (self.bits >> i & 1) as u8);
            (
                words,
                a.map(|word| u64::from(word) | BASE),
                numbers,
                high,
                [block, marked],
            )
        }

        #[inline(always)]
        fn vector<W: Words>(self, isa: W::Isa) -> Results {
            let Self { mask, .. } = self;
            let (a, b) = (W::of(isa, &self.a), W::of(isa, &self.b));
            let store = |words: W| {
                let mut out = [0; LANES];
                words.store(&mut out);
                out
            };
            let mut kept = [0; LANES];
            a.compress(mask, &mut kept);
            let words = vec![
                store(W::splat(isa, self.n)),
                store(W::load(isa, self.packet)),
                store(W::widen(isa, &self.bytes)),
                cut(kept, mask),
                store(a.shl(7)),
                store(a.shr(19)),
                store(a.only(mask)),
                store(a.last_of(mask, W::splat(isa, b.first()))),
                store(a.prefix_sum()),
                store(a.last()),
                store(a + b),
                store(a - b),
                store(a.min(b)),
                store(a & b),
                store(a | b),
                store(a.at_most(b)),
                store(W::gather(isa, &self.b, a & W::splat(isa, 31))),
                store(W::evens(isa, [&self.a, &self.b])),
            ];
            let mut with = [0; LANES];
            a.store_with(BASE, &mut with);
            let numbers = [
                a.first(),
                a.eq(b).into(),
                W::nth_set(isa, self.bits, self.n),
                a.le(b).into(),
                a.largest(),
            ];
            let block = W::block(isa, self.packet.as_bytes());
            let marked = W::bytes_of(isa, self.bits, self.bytes[0]);
            let high = W::high_bits(isa, &block);
            (words, with, numbers, high, [block, marked])
        }
    }

    proptest! {
        #[test]
        fn all_sets_of_instructions_agree(
            a in any::<[u32; LANES]>(),
            mut b in any::<[u32; LANES]>(),
            packet in prop::collection::vec(any::<u32>(), 0..20),
            bytes in any::<[u8; LANES]>(),
            (mask, equal) in any::<(u16, u16)>(),
            (bits, sparse, n) in (any::<u64>(), any::<u64>(), 0..64u32),
        ) {
            for lane in (0..LANES).filter(|lane| equal >> lane & 1 == 1) {
                b[lane] = a[lane];
            }
            let packet: Vec<U32> = packet.into_iter().map(U32::new).collect();
            let every = |bits| Every { a, b, packet: &packet, bytes, mask, bits, n };
            for bits in [bits, bits & sparse, bits | sparse, u64::MAX, 0] {
                let expected = Simd::SCALAR.decode(every(bits));
                for simd in Simd::all() {
                    prop_assert_eq!(&simd.decode(every(bits)), &expected, "{:?}", simd);
                }
            }
        }
    }
}
