//! Lanes in two registers of AVX2.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256, _CMP_LE_OQ, _mm256_add_ps, _mm256_and_ps, _mm256_blendv_ps, _mm256_cmp_ps,
    _mm256_div_ps, _mm256_loadu_ps, _mm256_max_ps, _mm256_movemask_ps, _mm256_mul_ps,
    _mm256_set1_ps, _mm256_sqrt_ps, _mm256_storeu_ps, _mm256_sub_ps,
};
use std::ops::{Add, Div, Mul, Sub};

use super::{Kernel, LANES, Lanes, TABLE};

/// Proof that the CPU has AVX2: there is no other way to make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isa(());

impl Isa {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Out {
        // SAFETY: `self` proves that the CPU has the instructions.
        unsafe { run(self, kernel) }
    }
}

#[target_feature(enable = "avx2")]
fn run<K: Kernel>(isa: Isa, kernel: K) -> K::Out {
    kernel.run::<F32s>(isa)
}

/// Made from an [`Isa`] or from others of its kind, so it proves what that proves.
#[derive(Clone, Copy)]
pub(super) struct F32s(__m256, __m256);

/// Intrinsics on an [`F32s`] or with an [`Isa`] at hand. The loads and stores among them are of
/// half an array, and need no alignment.
macro_rules! avx2 {
    ($intrinsic:expr) => {
        // SAFETY: as above: the CPU has the instructions, and halves are as long as registers.
        unsafe { $intrinsic }
    };
}

macro_rules! operators {
    ($($operator:ident $name:ident $intrinsic:ident;)*) => {$(
        impl $operator for F32s {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                let low = avx2!($intrinsic(self.0, other.0));
                Self(low, avx2!($intrinsic(self.1, other.1)))
            }
        }
    )*};
}
operators! { Add add _mm256_add_ps; Sub sub _mm256_sub_ps; Mul mul _mm256_mul_ps; Div div _mm256_div_ps; }

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
    fn bits(mask: Self) -> u16 {
        let low = avx2!(_mm256_movemask_ps(mask.0));
        (low | avx2!(_mm256_movemask_ps(mask.1)) << 8) as u16
    }
}
