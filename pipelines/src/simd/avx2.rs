//! Lanes in two registers of AVX2.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256, __m256i, _CMP_LE_OQ, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadl_epi64,
    _mm_movehl_ps, _mm_shuffle_ps, _mm256_add_epi32, _mm256_add_ps, _mm256_and_ps,
    _mm256_and_si256, _mm256_blendv_ps, _mm256_castps_si256, _mm256_castps256_ps128,
    _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cmpeq_epi8,
    _mm256_cmpeq_epi32, _mm256_cvtepu8_epi32, _mm256_cvtepu32_epi64, _mm256_cvtsi256_si32,
    _mm256_div_ps, _mm256_extractf128_ps, _mm256_extracti128_si256, _mm256_i32gather_epi32,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_maskload_epi32, _mm256_max_epu32, _mm256_max_ps,
    _mm256_min_epu32, _mm256_movemask_epi8, _mm256_movemask_ps, _mm256_mul_ps, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32,
    _mm256_set1_epi8, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_set1_ps, _mm256_shuffle_epi8,
    _mm256_shuffle_epi32, _mm256_shuffle_ps, _mm256_slli_epi32, _mm256_slli_si256,
    _mm256_sllv_epi32, _mm256_sqrt_ps, _mm256_srli_epi32, _mm256_srlv_epi32, _mm256_storeu_ps,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_sub_ps,
};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Sub};

use zerocopy::byteorder::little_endian::U32;

use super::lanes::{Kernel, LANES, Lanes, TABLE};
use super::words::{self, BLOCK, Decoder, LAST, MEMBERS, Words, nth_set};

/// Lanes of a register.
const HALF: usize = LANES / 2;

/// Proof that the CPU has AVX2, and what all that have it have too, BMI 1 and POPCNT: there is no
/// other way to make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isa(());

impl Isa {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt"))
        .then_some(Self(()))
    }

    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: `self` proves that the CPU has the instructions.
        unsafe { run(self, kernel) }
    }

    #[inline]
    pub(super) fn decode<D: Decoder>(self, decoder: D) -> D::Out {
        // SAFETY: `self` proves that the CPU has the instructions.
        unsafe { decode(self, decoder) }
    }
}

#[target_feature(enable = "avx2,bmi1,popcnt")]
fn run<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    kernel.run::<F32s>(isa)
}

#[target_feature(enable = "avx2,bmi1,popcnt")]
fn decode<D: Decoder>(isa: Isa, decoder: D) -> D::Out {
    decoder.vector::<U32s>(isa)
}

/// Made from an [`Isa`] or from others of its kind, so it proves what that proves.
#[derive(Clone, Copy)]
pub(super) struct F32s(__m256, __m256);

/// As [`F32s`].
#[derive(Clone, Copy)]
pub(super) struct U32s(__m256i, __m256i);

/// Intrinsics on an [`F32s`] or [`U32s`], or with an [`Isa`] at hand. The loads and stores among them are of
/// half an array, and need no alignment.
macro_rules! avx2 {
    ($intrinsic:expr) => {
        // SAFETY: as above: the CPU has the instructions, and halves are as long as registers.
        unsafe { $intrinsic }
    };
}

macro_rules! operators {
    ($vector:ident $($operator:ident $name:ident $intrinsic:ident;)*) => {$(
        impl $operator for $vector {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                let low = avx2!($intrinsic(self.0, other.0));
                Self(low, avx2!($intrinsic(self.1, other.1)))
            }
        }
    )*};
}
operators! { F32s Add add _mm256_add_ps; Sub sub _mm256_sub_ps; Mul mul _mm256_mul_ps; Div div _mm256_div_ps; }
operators! { U32s Add add _mm256_add_epi32; Sub sub _mm256_sub_epi32; BitAnd bitand _mm256_and_si256; BitOr bitor _mm256_or_si256; }

impl Lanes for F32s {
    type Isa = Isa;
    /// All bits of a lane, or none.
    type Mask = Self;

    #[inline(always)]
    fn splat(_: Isa, value: f32) -> Self {
        let register = avx2!(_mm256_set1_ps(value));
        Self(register, register)
    }

    #[inline(always)]
    fn load(_: Isa, values: &[f32; LANES]) -> Self {
        let (low, high) = values.split_at(LANES / 2);
        let low = avx2!(_mm256_loadu_ps(low.as_ptr()));
        Self(low, avx2!(_mm256_loadu_ps(high.as_ptr())))
    }

    #[inline(always)]
    fn store(self) -> [f32; LANES] {
        let mut values = [0.0; LANES];
        let (low, high) = values.split_at_mut(LANES / 2);
        avx2!(_mm256_storeu_ps(low.as_mut_ptr(), self.0));
        avx2!(_mm256_storeu_ps(high.as_mut_ptr(), self.1));
        values
    }

    #[inline(always)]
    fn pick(isa: Isa, table: &[f32; TABLE], index: &[u8; LANES]) -> Self {
        Self::load(isa, &index.map(|i| table[usize::from(i) % TABLE]))
    }

    #[inline(always)]
    fn gather(isa: Isa, table: &[u32], index: &[u32; LANES]) -> [u32; LANES] {
        words::gather::<U32s>(isa, table, index)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        let low = avx2!(_mm256_max_ps(self.0, other.0));
        Self(low, avx2!(_mm256_max_ps(self.1, other.1)))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(avx2!(_mm256_sqrt_ps(self.0)), avx2!(_mm256_sqrt_ps(self.1)))
    }

    #[inline(always)]
    fn le(self, other: Self) -> Self {
        let low = avx2!(_mm256_cmp_ps::<_CMP_LE_OQ>(self.0, other.0));
        Self(low, avx2!(_mm256_cmp_ps::<_CMP_LE_OQ>(self.1, other.1)))
    }

    #[inline(always)]
    fn and(a: Self, b: Self) -> Self {
        let low = avx2!(_mm256_and_ps(a.0, b.0));
        Self(low, avx2!(_mm256_and_ps(a.1, b.1)))
    }

    #[inline(always)]
    fn or_else(self, mask: Self, other: Self) -> Self {
        let low = avx2!(_mm256_blendv_ps(other.0, self.0, mask.0));
        Self(low, avx2!(_mm256_blendv_ps(other.1, self.1, mask.1)))
    }

    #[inline(always)]
    fn only(self, mask: Self) -> Self {
        Self::and(self, mask)
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        let half = avx2!(_mm256_max_ps(self.0, self.1));
        let half = Self(half, half).store();
        half[..LANES / 2]
            .iter()
            .fold(f32::NEG_INFINITY, |a, &b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let eight = avx2!(_mm256_add_ps(self.0, self.1));
        let upper = avx2!(_mm256_extractf128_ps::<1>(eight));
        let four = avx2!(_mm_add_ps(_mm256_castps256_ps128(eight), upper));
        let two = avx2!(_mm_add_ps(four, _mm_movehl_ps(four, four)));
        let one = avx2!(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)));
        avx2!(_mm_cvtss_f32(one))
    }

    #[inline(always)]
    fn bits(mask: Self) -> u16 {
        let low = avx2!(_mm256_movemask_ps(mask.0));
        (low | avx2!(_mm256_movemask_ps(mask.1)) << 8) as u16
    }
}

/// All bits of the first lanes, none of the others, from a place that depends on how many.
const FIRST: [i32; 2 * HALF] = {
    let (mut lanes, mut lane) = ([0; 2 * HALF], 0);
    while lane < HALF {
        lanes[lane] = -1;
        lane += 1;
    }
    lanes
};

#[inline(always)]
fn lanes(bytes: &[u8; HALF]) -> __m256i {
    avx2!(_mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes.as_ptr().cast())))
}

/// The lanes of the mask, in their order.
#[inline(always)]
fn members(register: __m256i, mask: u8) -> __m256i {
    let members = lanes(&MEMBERS[usize::from(mask)]);
    avx2!(_mm256_permutevar8x32_epi32(register, members))
}

/// As [`Words::last_of`].
#[inline(always)]
fn last_of(register: __m256i, mask: u8, before: __m256i) -> __m256i {
    let last = lanes(&LAST[usize::from(mask)]);
    let register = avx2!(_mm256_permutevar8x32_epi32(register, last));
    // Bit 7 says that there is none; the sign of a lane chooses.
    let none = avx2!(_mm256_castsi256_ps(_mm256_slli_epi32::<24>(last)));
    let (register, before) = avx2!((_mm256_castsi256_ps(register), _mm256_castsi256_ps(before)));
    avx2!(_mm256_castps_si256(_mm256_blendv_ps(
        register, before, none
    )))
}

/// Every other lane of two registers, from the first on.
#[inline(always)]
fn evens(U32s(low, high): U32s) -> __m256i {
    // Two lanes of either register in each half, of which the middle pairs change places.
    let (low, high) = avx2!((_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)));
    let evens = avx2!(_mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(
        low, high
    )));
    avx2!(_mm256_permute4x64_epi64::<0b11_01_10_00>(evens))
}

#[inline(always)]
fn last(register: __m256i) -> __m256i {
    let lane = avx2!(_mm256_set1_epi32(HALF as i32 - 1));
    avx2!(_mm256_permutevar8x32_epi32(register, lane))
}

#[inline(always)]
fn prefix_sum(register: __m256i) -> __m256i {
    let sum = avx2!(_mm256_add_epi32(register, _mm256_slli_si256::<4>(register)));
    let sum = avx2!(_mm256_add_epi32(sum, _mm256_slli_si256::<8>(sum)));
    // So far each half for itself: the sum of the lower one is missing in the upper.
    let ends = avx2!(_mm256_shuffle_epi32::<0xFF>(sum));
    let lower = avx2!(_mm256_permute2x128_si256::<0x08>(ends, ends));
    avx2!(_mm256_add_epi32(sum, lower))
}

/// All bits of the lanes where `a` <= `b`.
#[inline(always)]
fn le(a: __m256i, b: __m256i) -> __m256i {
    avx2!(_mm256_cmpeq_epi32(_mm256_min_epu32(a, b), a))
}

/// All bits of the lanes in the mask.
#[inline(always)]
fn chosen(mask: u8) -> __m256i {
    const BITS: [u8; HALF] = [1, 2, 4, 8, 16, 32, 64, 128];
    let bits = lanes(&BITS);
    let mask = avx2!(_mm256_set1_epi32(i32::from(mask)));
    avx2!(_mm256_cmpeq_epi32(_mm256_and_si256(mask, bits), bits))
}

impl Words for U32s {
    type Isa = Isa;

    #[inline(always)]
    fn splat(_: Isa, value: u32) -> Self {
        let register = avx2!(_mm256_set1_epi32(value as i32));
        Self(register, register)
    }

    #[inline(always)]
    fn of(_: Isa, words: &[u32; LANES]) -> Self {
        let (low, high) = words.split_at(HALF);
        let low = avx2!(_mm256_loadu_si256(low.as_ptr().cast()));
        Self(low, avx2!(_mm256_loadu_si256(high.as_ptr().cast())))
    }

    #[inline(always)]
    fn evens(isa: Isa, [low, high]: [&[u32; LANES]; 2]) -> Self {
        Self(evens(Self::of(isa, low)), evens(Self::of(isa, high)))
    }

    #[inline(always)]
    fn load(_: Isa, words: &[U32]) -> Self {
        let (low, high) = words.split_at(words.len().min(HALF));
        let half = |words: &[U32]| {
            let first = &FIRST[HALF - words.len().min(HALF)..][..HALF];
            let mask = avx2!(_mm256_loadu_si256(first.as_ptr().cast()));
            // SAFETY: the CPU has the instruction, which reads no lane that is not in the mask.
            unsafe { _mm256_maskload_epi32(words.as_ptr().cast(), mask) }
        };
        Self(half(low), half(high))
    }

    #[inline(always)]
    fn block(_: Isa, bytes: &[u8]) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let there = bytes.len().min(BLOCK);
        block[..there].copy_from_slice(&bytes[..there]);
        block
    }

    #[inline(always)]
    fn gather(isa: Isa, words: &[u32], numbers: Self) -> Self {
        // Numbers are signed to the instruction: of a longer list it could not reach the end.
        let words = &words[..words.len().min(i32::MAX as usize)];
        let Some(last) = words.len().checked_sub(1) else {
            return Self::splat(isa, 0);
        };
        let numbers = numbers.min(Self::splat(isa, last as u32));
        let half = |numbers| {
            // SAFETY: the CPU has the instruction, and no number is beyond the last of `words`.
            unsafe { _mm256_i32gather_epi32::<4>(words.as_ptr().cast(), numbers) }
        };
        Self(half(numbers.0), half(numbers.1))
    }

    #[inline(always)]
    fn widen(_: Isa, bytes: &[u8; LANES]) -> Self {
        let (halves, _) = bytes.as_chunks::<HALF>();
        Self(lanes(&halves[0]), lanes(&halves[1]))
    }

    #[inline(always)]
    fn store(self, words: &mut [u32; LANES]) {
        let (low, high) = words.split_at_mut(HALF);
        avx2!(_mm256_storeu_si256(low.as_mut_ptr().cast(), self.0));
        avx2!(_mm256_storeu_si256(high.as_mut_ptr().cast(), self.1));
    }

    #[inline(always)]
    fn store_with(self, base: u64, words: &mut [u64; LANES]) {
        let base = avx2!(_mm256_set1_epi64x(base as i64));
        let quarters = avx2!([
            _mm256_castsi256_si128(self.0),
            _mm256_extracti128_si256::<1>(self.0),
            _mm256_castsi256_si128(self.1),
            _mm256_extracti128_si256::<1>(self.1),
        ]);
        let (places, _) = words.as_chunks_mut::<{ LANES / 4 }>();
        for (place, quarter) in places.iter_mut().zip(quarters) {
            let sums = avx2!(_mm256_or_si256(_mm256_cvtepu32_epi64(quarter), base));
            avx2!(_mm256_storeu_si256(place.as_mut_ptr().cast(), sums));
        }
    }

    #[inline(always)]
    fn compress(self, keep: u16, words: &mut [u32; LANES]) {
        let [low, high] = keep.to_le_bytes();
        avx2!(_mm256_storeu_si256(
            words.as_mut_ptr().cast(),
            members(self.0, low)
        ));
        let upper = &mut words[low.count_ones() as usize..][..HALF];
        avx2!(_mm256_storeu_si256(
            upper.as_mut_ptr().cast(),
            members(self.1, high)
        ));
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        let bits = avx2!(_mm256_set1_epi32(bits as i32));
        let low = avx2!(_mm256_sllv_epi32(self.0, bits));
        Self(low, avx2!(_mm256_sllv_epi32(self.1, bits)))
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        let bits = avx2!(_mm256_set1_epi32(bits as i32));
        let low = avx2!(_mm256_srlv_epi32(self.0, bits));
        Self(low, avx2!(_mm256_srlv_epi32(self.1, bits)))
    }

    #[inline(always)]
    fn eq(self, other: Self) -> u16 {
        let equal = |a, b| {
            let equal = avx2!(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)));
            avx2!(_mm256_movemask_ps(equal)) as u8
        };
        u16::from_le_bytes([equal(self.0, other.0), equal(self.1, other.1)])
    }

    #[inline(always)]
    fn le(self, other: Self) -> u16 {
        let mask = |a| {
            let all = avx2!(_mm256_castsi256_ps(a));
            avx2!(_mm256_movemask_ps(all)) as u8
        };
        u16::from_le_bytes([mask(le(self.0, other.0)), mask(le(self.1, other.1))])
    }

    #[inline(always)]
    fn at_most(self, other: Self) -> Self {
        let low = avx2!(_mm256_srli_epi32::<31>(le(self.0, other.0)));
        Self(low, avx2!(_mm256_srli_epi32::<31>(le(self.1, other.1))))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        let low = avx2!(_mm256_min_epu32(self.0, other.0));
        Self(low, avx2!(_mm256_min_epu32(self.1, other.1)))
    }

    #[inline(always)]
    fn largest(self) -> u32 {
        let eight = avx2!(_mm256_max_epu32(self.0, self.1));
        let four = avx2!(_mm256_max_epu32(
            eight,
            _mm256_permute2x128_si256::<0x01>(eight, eight)
        ));
        let two = avx2!(_mm256_max_epu32(four, _mm256_shuffle_epi32::<0x4E>(four)));
        let one = avx2!(_mm256_max_epu32(two, _mm256_shuffle_epi32::<0xB1>(two)));
        avx2!(_mm256_cvtsi256_si32(one)) as u32
    }

    #[inline(always)]
    fn only(self, mask: u16) -> Self {
        let [low, high] = mask.to_le_bytes();
        let low = avx2!(_mm256_and_si256(self.0, chosen(low)));
        Self(low, avx2!(_mm256_and_si256(self.1, chosen(high))))
    }

    #[inline(always)]
    fn last_of(self, mask: u16, before: Self) -> Self {
        let [low, high] = mask.to_le_bytes();
        let low = last_of(self.0, low, before.0);
        let before = last(low);
        // What was before holds in the upper lanes only if there was nothing in the lower ones.
        Self(low, last_of(self.1, high, before))
    }

    #[inline(always)]
    fn prefix_sum(self) -> Self {
        let low = prefix_sum(self.0);
        Self(low, avx2!(_mm256_add_epi32(prefix_sum(self.1), last(low))))
    }

    #[inline(always)]
    fn last(self) -> Self {
        let register = last(self.1);
        Self(register, register)
    }

    #[inline(always)]
    fn first(self) -> u32 {
        avx2!(_mm256_cvtsi256_si32(self.0)) as u32
    }

    #[inline(always)]
    fn high_bits(_: Isa, bytes: &[u8; BLOCK]) -> u64 {
        let (low, high) = bytes.split_at(BLOCK / 2);
        let [low, high] = [low, high].map(|half| {
            let half = avx2!(_mm256_loadu_si256(half.as_ptr().cast()));
            u64::from(avx2!(_mm256_movemask_epi8(half)) as u32)
        });
        low | high << (BLOCK / 2)
    }

    #[inline(always)]
    fn bytes_of(_: Isa, mask: u64, value: u8) -> [u8; BLOCK] {
        // Of four bytes of the mask, the one that has the bit of each byte.
        const BYTE: [u8; BLOCK / 2] = {
            let (mut numbers, mut i) = ([0; BLOCK / 2], 0);
            while i < numbers.len() {
                numbers[i] = i as u8 / 8;
                i += 1;
            }
            numbers
        };
        let byte = avx2!(_mm256_loadu_si256(BYTE.as_ptr().cast()));
        let bit = avx2!(_mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64));
        let value = avx2!(_mm256_set1_epi8(value as i8));
        let mut bytes = [0; BLOCK];
        let (halves, _) = bytes.as_chunks_mut::<{ BLOCK / 2 }>();
        for (half, bits) in halves.iter_mut().zip([mask, mask >> (BLOCK / 2)]) {
            let bits = avx2!(_mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), byte));
            let set = avx2!(_mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), bit));
            let marked = avx2!(_mm256_and_si256(set, value));
            avx2!(_mm256_storeu_si256(half.as_mut_ptr().cast(), marked));
        }
        bytes
    }

    #[inline(always)]
    fn nth_set(_: Isa, bits: u64, n: u32) -> u32 {
        nth_set(bits, n)
    }
}
