//! Sixteen numbers of single precision at once, for kernels.

use std::ops::{Add, Div, Mul, Sub};

/// Numbers in a vector: one register of AVX-512, two of AVX2.
pub const LANES: usize = 16;
/// Numbers in a table of [`Lanes::pick`]: four registers of AVX-512.
pub const TABLE: usize = 64;

/// Sixteen numbers of single precision.
pub trait Lanes:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// Proof that the CPU has the instructions.
    type Isa: Copy;
    /// Which of the lanes.
    type Mask: Copy;

    /// The same number in all lanes.
    fn splat(isa: Self::Isa, value: f32) -> Self;
    /// A number in each lane.
    fn load(isa: Self::Isa, values: &[f32; LANES]) -> Self;
    /// The numbers of all lanes.
    fn store(self) -> [f32; LANES];
    /// Element `index[lane]` of the table, modulo its length.
    fn pick(isa: Self::Isa, table: &[f32; TABLE], index: &[u8; LANES]) -> Self;
    /// Element `index[lane]` of a table; its last one where there is none, or 0.
    fn gather(isa: Self::Isa, table: &[u32], index: &[u32; LANES]) -> [u32; LANES];
    /// The larger one; `other` where they cannot be compared.
    #[must_use]
    fn max(self, other: Self) -> Self;
    /// The square root.
    #[must_use]
    fn sqrt(self) -> Self;
    /// Where `self` <= `other`; not where they cannot be compared.
    fn le(self, other: Self) -> Self::Mask;
    /// The lanes that are in both masks.
    fn and(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// `self` in the lanes of the mask, else `other`.
    #[must_use]
    fn or_else(self, mask: Self::Mask, other: Self) -> Self;
    /// `self` in the lanes of the mask, else zero.
    #[must_use]
    fn only(self, mask: Self::Mask) -> Self;
    /// `self`, a sum that is not -0, and in the lanes of the mask so much more.
    #[must_use]
    #[inline(always)]
    fn plus(self, mask: Self::Mask, more: Self) -> Self {
        self + more.only(mask)
    }
    /// The largest number of all lanes.
    fn largest(self) -> f32;
    /// The sum of all lanes: of the lower and the upper half, of the halves of that, and so on, which
    /// is four steps where one lane after the other is sixteen.
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut sums = self.store();
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                sums[lane] += sums[lane + half];
            }
        }
        sums[0]
    }
    /// Bit n: lane n.
    fn bits(mask: Self::Mask) -> u16;
}

/// A piece of work that is compiled for each set of instructions. `run` must be
/// `#[inline(always)]`, and so must be what it calls: only then is it compiled with them.
pub trait Kernel {
    /// Result of the kernel.
    type Out;
    /// Does the work with the instructions of which `isa` is the proof.
    fn run<V: Lanes>(self, isa: V::Isa) -> Self::Out;
}
