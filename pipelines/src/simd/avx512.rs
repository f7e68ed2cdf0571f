//! Lanes in one register of AVX-512.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m512, __m512i, __mmask16, _CMP_LE_OQ, _mm_loadu_si128, _mm512_add_epi32, _mm512_add_ps,
    _mm512_alignr_epi32, _mm512_and_si512, _mm512_castsi512_si256, _mm512_cmp_ps_mask,
    _mm512_cmpeq_epi32_mask, _mm512_cmple_epu32_mask, _mm512_cvtepu8_epi32, _mm512_cvtepu32_epi64,
    _mm512_cvtsi512_si32, _mm512_div_ps, _mm512_extracti64x4_epi64, _mm512_i32gather_epi32,
    _mm512_loadu_ps, _mm512_loadu_si512, _mm512_lzcnt_epi32, _mm512_mask_add_ps,
    _mm512_mask_blend_ps, _mm512_mask_permutexvar_epi32, _mm512_maskz_compress_epi32,
    _mm512_maskz_loadu_epi8, _mm512_maskz_loadu_epi32, _mm512_maskz_mov_epi32, _mm512_maskz_mov_ps,
    _mm512_maskz_set1_epi8, _mm512_maskz_set1_epi32, _mm512_max_ps, _mm512_min_epu32,
    _mm512_movepi8_mask, _mm512_mul_ps, _mm512_or_si512, _mm512_permutex2var_epi32,
    _mm512_permutex2var_ps, _mm512_permutexvar_epi32, _mm512_reduce_add_ps,
    _mm512_reduce_max_epu32, _mm512_reduce_max_ps, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_set1_ps, _mm512_setzero_si512, _mm512_sllv_epi32, _mm512_sqrt_ps, _mm512_srlv_epi32,
    _mm512_storeu_ps, _mm512_storeu_si512, _mm512_sub_epi32, _mm512_sub_ps, _mm512_test_epi32_mask,
    _pdep_u64,
};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Sub};

use zerocopy::byteorder::little_endian::U32;

use super::lanes::{Kernel, LANES, Lanes, TABLE};
use super::words::{self, BLOCK, Decoder, Words};

/// Proof that the CPU has AVX-512 F, VL, BW, DQ and CD, and BMI 1 and 2, as all servers with
/// AVX-512 have: there is no other way to make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isa(());

impl Isa {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
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

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512cd,bmi1,bmi2,popcnt")]
fn run<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    kernel.run::<F32s>(isa)
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512cd,bmi1,bmi2,popcnt")]
fn decode<D: Decoder>(isa: Isa, decoder: D) -> D::Out {
    decoder.vector::<U32s>(isa)
}

/// Made from an [`Isa`] or from others of its kind, so it proves what that proves.
#[derive(Clone, Copy)]
pub(super) struct F32s(__m512);

/// As [`F32s`].
#[derive(Clone, Copy)]
pub(super) struct U32s(__m512i);

/// Intrinsics on an [`F32s`] or [`U32s`], or with an [`Isa`] at hand. The loads and stores among them are of
/// whole arrays, and need no alignment.
macro_rules! avx512 {
    ($intrinsic:expr) => {
        // SAFETY: as above: the CPU has the instructions, and arrays are as long as registers.
        unsafe { $intrinsic }
    };
}

macro_rules! operators {
    ($vector:ident $($operator:ident $name:ident $intrinsic:ident;)*) => {$(
        impl $operator for $vector {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                Self(avx512!($intrinsic(self.0, other.0)))
            }
        }
    )*};
}
operators! { F32s Add add _mm512_add_ps; Sub sub _mm512_sub_ps; Mul mul _mm512_mul_ps; Div div _mm512_div_ps; }
operators! { U32s Add add _mm512_add_epi32; Sub sub _mm512_sub_epi32; BitAnd bitand _mm512_and_si512; BitOr bitor _mm512_or_si512; }

impl Lanes for F32s {
    type Isa = Isa;
    type Mask = __mmask16;

    #[inline(always)]
    fn splat(_: Isa, value: f32) -> Self {
        Self(avx512!(_mm512_set1_ps(value)))
    }

    #[inline(always)]
    fn load(_: Isa, values: &[f32; LANES]) -> Self {
        Self(avx512!(_mm512_loadu_ps(values.as_ptr())))
    }

    #[inline(always)]
    fn store(self) -> [f32; LANES] {
        let mut values = [0.0; LANES];
        avx512!(_mm512_storeu_ps(values.as_mut_ptr(), self.0));
        values
    }

    #[inline(always)]
    fn pick(isa: Isa, table: &[f32; TABLE], index: &[u8; LANES]) -> Self {
        let (rows, _) = table.as_chunks::<LANES>();
        let row = |i: usize| Self::load(isa, &rows[i]).0;
        let index = avx512!(_mm512_cvtepu8_epi32(_mm_loadu_si128(index.as_ptr().cast())));
        // Bits 0 to 4 choose from two registers, bit 5 the pair.
        let low = avx512!(_mm512_permutex2var_ps(row(0), index, row(1)));
        let high = avx512!(_mm512_permutex2var_ps(row(2), index, row(3)));
        let upper = avx512!(_mm512_test_epi32_mask(
            index,
            _mm512_set1_epi32(2 * LANES as i32)
        ));
        Self(high).or_else(upper, Self(low))
    }

    #[inline(always)]
    fn gather(isa: Isa, table: &[u32], index: &[u32; LANES]) -> [u32; LANES] {
        words::gather::<U32s>(isa, table, index)
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(avx512!(_mm512_max_ps(self.0, other.0)))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(avx512!(_mm512_sqrt_ps(self.0)))
    }

    #[inline(always)]
    fn le(self, other: Self) -> __mmask16 {
        avx512!(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, other.0))
    }

    #[inline(always)]
    fn and(a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }

    #[inline(always)]
    fn or_else(self, mask: __mmask16, other: Self) -> Self {
        Self(avx512!(_mm512_mask_blend_ps(mask, other.0, self.0)))
    }

    #[inline(always)]
    fn only(self, mask: __mmask16) -> Self {
        Self(avx512!(_mm512_maskz_mov_ps(mask, self.0)))
    }

    #[inline(always)]
    fn plus(self, mask: __mmask16, more: Self) -> Self {
        Self(avx512!(_mm512_mask_add_ps(self.0, mask, self.0, more.0)))
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        avx512!(_mm512_reduce_max_ps(self.0))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // Halves, halves of these, and so on: a tree, in the order of the other paths.
        avx512!(_mm512_reduce_add_ps(self.0))
    }

    #[inline(always)]
    fn bits(mask: __mmask16) -> u16 {
        mask
    }
}

impl Words for U32s {
    type Isa = Isa;
    const COMPRESSES: bool = true;

    #[inline(always)]
    fn splat(_: Isa, value: u32) -> Self {
        Self(avx512!(_mm512_set1_epi32(value as i32)))
    }

    #[inline(always)]
    fn of(_: Isa, words: &[u32; LANES]) -> Self {
        Self(avx512!(_mm512_loadu_si512(words.as_ptr().cast())))
    }

    #[inline(always)]
    fn evens(isa: Isa, [low, high]: [&[u32; LANES]; 2]) -> Self {
        let numbers = Self::of(isa, &std::array::from_fn(|i| 2 * i as u32)).0;
        let (low, high) = (Self::of(isa, low).0, Self::of(isa, high).0);
        Self(avx512!(_mm512_permutex2var_epi32(low, numbers, high)))
    }

    #[inline(always)]
    fn load(_: Isa, words: &[U32]) -> Self {
        let mask = ((1u32 << words.len().min(LANES)) - 1) as __mmask16;
        // SAFETY: the CPU has the instruction, which reads no lane that is not in the mask.
        Self(unsafe { _mm512_maskz_loadu_epi32(mask, words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn block(_: Isa, bytes: &[u8]) -> [u8; BLOCK] {
        let behind = BLOCK.saturating_sub(bytes.len());
        let mask = u64::MAX.checked_shr(behind as u32).unwrap_or(0);
        let mut block = [0; BLOCK];
        // SAFETY: the CPU has the instruction, which reads no byte that is not in the mask.
        let register = unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) };
        avx512!(_mm512_storeu_si512(block.as_mut_ptr().cast(), register));
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
        // SAFETY: the CPU has the instruction, and no number is beyond the last of `words`.
        Self(unsafe { _mm512_i32gather_epi32::<4>(numbers.0, words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn widen(_: Isa, bytes: &[u8; LANES]) -> Self {
        let bytes = avx512!(_mm_loadu_si128(bytes.as_ptr().cast()));
        Self(avx512!(_mm512_cvtepu8_epi32(bytes)))
    }

    #[inline(always)]
    fn store(self, words: &mut [u32; LANES]) {
        avx512!(_mm512_storeu_si512(words.as_mut_ptr().cast(), self.0));
    }

    #[inline(always)]
    fn store_with(self, base: u64, words: &mut [u64; LANES]) {
        let base = avx512!(_mm512_set1_epi64(base as i64));
        let halves = [
            avx512!(_mm512_castsi512_si256(self.0)),
            avx512!(_mm512_extracti64x4_epi64::<1>(self.0)),
        ];
        let (places, _) = words.as_chunks_mut::<{ LANES / 2 }>();
        for (place, half) in places.iter_mut().zip(halves) {
            let sums = avx512!(_mm512_or_si512(_mm512_cvtepu32_epi64(half), base));
            avx512!(_mm512_storeu_si512(place.as_mut_ptr().cast(), sums));
        }
    }

    #[inline(always)]
    fn compress(self, keep: u16, words: &mut [u32; LANES]) {
        Self(avx512!(_mm512_maskz_compress_epi32(keep, self.0))).store(words);
    }

    #[inline(always)]
    fn shl(self, bits: u32) -> Self {
        let bits = avx512!(_mm512_set1_epi32(bits as i32));
        Self(avx512!(_mm512_sllv_epi32(self.0, bits)))
    }

    #[inline(always)]
    fn shr(self, bits: u32) -> Self {
        let bits = avx512!(_mm512_set1_epi32(bits as i32));
        Self(avx512!(_mm512_srlv_epi32(self.0, bits)))
    }

    #[inline(always)]
    fn eq(self, other: Self) -> u16 {
        avx512!(_mm512_cmpeq_epi32_mask(self.0, other.0))
    }

    #[inline(always)]
    fn le(self, other: Self) -> u16 {
        avx512!(_mm512_cmple_epu32_mask(self.0, other.0))
    }

    #[inline(always)]
    fn at_most(self, other: Self) -> Self {
        Self(avx512!(_mm512_maskz_set1_epi32(self.le(other), 1)))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Self(avx512!(_mm512_min_epu32(self.0, other.0)))
    }

    #[inline(always)]
    fn largest(self) -> u32 {
        avx512!(_mm512_reduce_max_epu32(self.0))
    }

    #[inline(always)]
    fn only(self, mask: u16) -> Self {
        Self(avx512!(_mm512_maskz_mov_epi32(mask, self.0)))
    }

    #[inline(always)]
    fn last_of(self, mask: u16, before: Self) -> Self {
        // In each lane, the bits of the lanes up to it.
        const UP_TO: [u32; LANES] = {
            let (mut bits, mut lane) = ([0; LANES], 0);
            while lane < LANES {
                bits[lane] = (2 << lane) - 1;
                lane += 1;
            }
            bits
        };
        let up_to = avx512!(_mm512_loadu_si512(UP_TO.as_ptr().cast()));
        let marks = avx512!(_mm512_and_si512(_mm512_set1_epi32(i32::from(mask)), up_to));
        let some = avx512!(_mm512_test_epi32_mask(marks, marks));
        let last = avx512!(_mm512_sub_epi32(
            _mm512_set1_epi32(31),
            _mm512_lzcnt_epi32(marks)
        ));
        Self(avx512!(_mm512_mask_permutexvar_epi32(
            before.0, some, last, self.0
        )))
    }

    #[inline(always)]
    fn prefix_sum(self) -> Self {
        let none = avx512!(_mm512_setzero_si512());
        let sum = self + Self(avx512!(_mm512_alignr_epi32::<15>(self.0, none)));
        let sum = sum + Self(avx512!(_mm512_alignr_epi32::<14>(sum.0, none)));
        let sum = sum + Self(avx512!(_mm512_alignr_epi32::<12>(sum.0, none)));
        sum + Self(avx512!(_mm512_alignr_epi32::<8>(sum.0, none)))
    }

    #[inline(always)]
    fn last(self) -> Self {
        let lane = avx512!(_mm512_set1_epi32(LANES as i32 - 1));
        Self(avx512!(_mm512_permutexvar_epi32(lane, self.0)))
    }

    #[inline(always)]
    fn first(self) -> u32 {
        avx512!(_mm512_cvtsi512_si32(self.0)) as u32
    }

    #[inline(always)]
    fn high_bits(_: Isa, bytes: &[u8; BLOCK]) -> u64 {
        avx512!(_mm512_movepi8_mask(_mm512_loadu_si512(
            bytes.as_ptr().cast()
        )))
    }

    #[inline(always)]
    fn bytes_of(_: Isa, mask: u64, value: u8) -> [u8; BLOCK] {
        let mut bytes = [0; BLOCK];
        let register = avx512!(_mm512_maskz_set1_epi8(mask, value as i8));
        avx512!(_mm512_storeu_si512(bytes.as_mut_ptr().cast(), register));
        bytes
    }

    #[inline(always)]
    fn nth_set(_: Isa, bits: u64, n: u32) -> u32 {
        avx512!(_pdep_u64(1 << n, bits)).trailing_zeros()
    }
}
