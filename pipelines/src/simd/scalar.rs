//! Lanes without instructions of their own: the reference for the others.

use std::array::from_fn;
use std::ops::{Add, Div, Mul, Sub};

use super::lanes::{LANES, Lanes, TABLE};

#[derive(Clone, Copy)]
pub(super) struct F32s([f32; LANES]);

impl F32s {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(from_fn(|i| f(self.0[i], other.0[i])))
    }
}

macro_rules! operators {
    ($($operator:ident $name:ident $symbol:tt;)*) => {$(
        impl $operator for F32s {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                self.zip(other, |a, b| a $symbol b)
            }
        }
    )*};
}
operators! { Add add +; Sub sub -; Mul mul *; Div div /; }

impl Lanes for F32s {
    type Isa = ();
    type Mask = [bool; LANES];

    #[inline(always)]
    fn splat((): (), value: f32) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    fn load((): (), values: &[f32; LANES]) -> Self {
        Self(*values)
    }

    #[inline(always)]
    fn store(self) -> [f32; LANES] {
        self.0
    }

    #[inline(always)]
    fn pick((): (), table: &[f32; TABLE], index: &[u8; LANES]) -> Self {
        Self(index.map(|i| table[usize::from(i) % TABLE]))
    }

    #[inline(always)]
    fn gather((): (), table: &[u32], index: &[u32; LANES]) -> [u32; LANES] {
        let Some(last) = table.len().checked_sub(1) else {
            return [0; LANES];
        };
        index.map(|i| table[last.min(i as usize)])
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.map(f32::sqrt))
    }

    #[inline(always)]
    fn le(self, other: Self) -> Self::Mask {
        from_fn(|i| self.0[i] <= other.0[i])
    }

    #[inline(always)]
    fn and(a: Self::Mask, b: Self::Mask) -> Self::Mask {
        from_fn(|i| a[i] & b[i])
    }

    #[inline(always)]
    fn or_else(self, mask: Self::Mask, other: Self) -> Self {
        Self(from_fn(|i| if mask[i] { self.0[i] } else { other.0[i] }))
    }

    #[inline(always)]
    fn only(self, mask: Self::Mask) -> Self {
        self.or_else(mask, Self([0.0; LANES]))
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        self.0
            .into_iter()
            .fold(f32::NEG_INFINITY, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn bits(mask: Self::Mask) -> u16 {
        (0..LANES).fold(0, |bits, i| bits | u16::from(mask[i]) << i)
    }
}
