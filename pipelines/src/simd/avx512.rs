//! Lanes in one register of AVX-512.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m512, __mmask16, _CMP_LE_OQ, _mm_loadu_si128, _mm512_add_ps, _mm512_cmp_ps_mask,
    _mm512_cvtepu8_epi32, _mm512_div_ps, _mm512_loadu_ps, _mm512_mask_blend_ps,
    _mm512_maskz_mov_ps, _mm512_max_ps, _mm512_mul_ps, _mm512_permutex2var_ps,
    _mm512_reduce_max_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_sqrt_ps, _mm512_storeu_ps,
    _mm512_sub_ps, _mm512_test_epi32_mask,
};
use std::ops::{Add, Div, Mul, Sub};

use super::{Kernel, LANES, Lanes, TABLE};

/// Proof that the CPU has AVX-512 F, VL, BW and DQ: there is no other way to make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isa(());

impl Isa {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq"))
        .then_some(Self(()))
    }

    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: `self` proves that the CPU has the instructions.
        unsafe { run(self, kernel) }
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
fn run<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    kernel.run::<F32s>(isa)
}

/// Made from an [`Isa`] or from others of its kind, so it proves what that proves.
#[derive(Clone, Copy)]
pub(super) struct F32s(__m512);

/// Intrinsics on an [`F32s`] or with an [`Isa`] at hand. The loads and stores among them are of
/// whole arrays, and need no alignment.
macro_rules! avx512 {
    ($intrinsic:expr) => {
        // SAFETY: as above: the CPU has the instructions, and arrays are as long as registers.
        unsafe { $intrinsic }
    };
}

macro_rules! operators {
    ($($operator:ident $name:ident $intrinsic:ident;)*) => {$(
        impl $operator for F32s {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                Self(avx512!($intrinsic(self.0, other.0)))
            }
        }
    )*};
}
operators! { Add add _mm512_add_ps; Sub sub _mm512_sub_ps; Mul mul _mm512_mul_ps; Div div _mm512_div_ps; }

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
    fn largest(self) -> f32 {
        avx512!(_mm512_reduce_max_ps(self.0))
    }

    #[inline(always)]
    fn bits(mask: __mmask16) -> u16 {
        mask
    }
}
