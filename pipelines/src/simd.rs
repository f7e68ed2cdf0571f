//! Sixteen numbers at once, with what the CPU offers.
//!
//! A [`Kernel`] is written once, over [`Lanes`], and compiled for AVX-512, for AVX2 and for
//! neither; [`Simd`] says which of them runs. All three do the same operations in the same order,
//! each rounded as IEEE 754 says and none fused, so that their results are equal bit by bit.
//!
//! A [`Decoder`] is written twice: once over [`Words`], compiled for AVX-512 and for AVX2, and once
//! plainly, for CPUs that have neither and as the reference that tests hold the other to.

mod avx2;
mod avx512;
mod lanes;
mod scalar;
mod words;

pub use lanes::{Kernel, LANES, Lanes, TABLE};
pub use words::{BLOCK, Decoder, Words};

/// A set of instructions that this CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simd(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Scalar,
    Avx2(avx2::Isa),
    Avx512(avx512::Isa),
}

impl Simd {
    /// The fastest.
    #[must_use]
    pub fn best() -> Self {
        Self::all().next().unwrap_or(Self::SCALAR)
    }

    /// The one that every CPU has.
    pub const SCALAR: Self = Self(Level::Scalar);

    /// All that this CPU has, the fastest first.
    pub fn all() -> impl Iterator<Item = Self> {
        let levels = [
            avx512::Isa::detect().map(Level::Avx512),
            avx2::Isa::detect().map(Level::Avx2),
            Some(Level::Scalar),
        ];
        levels.into_iter().flatten().map(Self)
    }

    /// Its name: `avx512`, `avx2` or `scalar`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Scalar => "scalar",
            Level::Avx2(_) => "avx2",
            Level::Avx512(_) => "avx512",
        }
    }

    /// Runs a kernel with these instructions.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Out {
        match self.0 {
            Level::Scalar => kernel.run::<scalar::F32s>(()),
            Level::Avx2(isa) => isa.run(kernel),
            Level::Avx512(isa) => isa.run(kernel),
        }
    }

    /// Runs a decoder with these instructions.
    #[inline]
    pub fn decode<D: Decoder>(self, decoder: D) -> D::Out {
        match self.0 {
            Level::Scalar => decoder.scalar(),
            Level::Avx2(isa) => isa.decode(decoder),
            Level::Avx512(isa) => isa.decode(decoder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation, on numbers that differ from lane to lane.
    struct Every([f32; LANES], [f32; LANES], [f32; TABLE], [u8; LANES]);

    impl Kernel for Every {
        type Out = (Vec<[u32; LANES]>, u16, [u32; 2], [u32; LANES]);

        #[inline(always)]
        fn run<V: Lanes>(self, isa: V::Isa) -> Self::Out {
            let (a, b) = (V::load(isa, &self.0), V::load(isa, &self.1));
            let mask = V::and(a.le(b), V::splat(isa, -0.5).le(a));
            let results = [
                a + b,
                a - b,
                a * b,
                a / b,
                a.max(b),
                (a * a).sqrt(),
                a.or_else(mask, b),
                a.only(mask),
                a.plus(mask, b),
                V::pick(isa, &self.2, &self.3),
            ];
            let bits = results.map(|result| result.store().map(f32::to_bits));
            let table = self.2.map(f32::to_bits);
            // Some are beyond the end.
            let index = self.3.map(|i| u32::from(i % 80) * 0x0101);
            let gathered = V::gather(isa, &table, &index.map(|i| i & 0x7f | i << 25 & (1 << 31)));
            let over_all = [a.largest(), a.sum()].map(f32::to_bits);
            assert_eq!(V::gather(isa, &[], &index), [0; LANES]);
            (bits.to_vec(), V::bits(mask), over_all, gathered)
        }
    }

    #[test]
    fn all_sets_of_instructions_agree_bit_by_bit() {
        let table = std::array::from_fn(|i| i as f32 * 1.1);
        for n in 0..64 {
            let a = std::array::from_fn(|i| (i * 7 + n) as f32 / 3.0 - 20.0);
            let b = std::array::from_fn(|i| (i * 5 + 2 * n) as f32 / 7.0 - 9.0);
            let index = std::array::from_fn(|i| (i * 11 + n) as u8);
            let expected = Simd::SCALAR.run(Every(a, b, table, index));
            for simd in Simd::all() {
                assert_eq!(simd.run(Every(a, b, table, index)), expected, "{simd:?}");
            }
            assert!((0..LANES).all(|i| expected.0[0][i] == (a[i] + b[i]).to_bits()));
            let one_by_one: f32 = a.iter().sum();
            assert!((f32::from_bits(expected.2[1]) - one_by_one).abs() < 1e-3);
        }
        assert_eq!(Simd::all().last(), Some(Simd::SCALAR));
    }
}
