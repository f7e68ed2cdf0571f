//! CRC-32 (IEEE 802.3) of a header: 60 bytes, which general code takes byte by byte for the most
//! part.
//!
//! The bytes are a polynomial over GF(2), of which three carry-less products fold 128 bits onto the
//! next 128, and three more reduce the rest to 32 bits (V. Gopal et al., *Fast CRC Computation for
//! Generic Polynomials Using PCLMULQDQ Instruction*, Intel 2009; the constants are those of the
//! reflected polynomial).

use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_clmulepi64_si128, _mm_cvtsi128_si32, _mm_set_epi32, _mm_set_epi64x,
    _mm_srli_si128, _mm_xor_si128,
};

/// Bytes and words of a header.
const HEADER: usize = 64;
const WORDS: usize = HEADER / 4;

/// CRC of a header without its second word, the CRC itself.
#[inline]
pub(super) fn header_crc(header: &[u8; HEADER]) -> u32 {
    if is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: the processor has the feature.
        return unsafe { folded(header) };
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&header[..4]);
    crc.update(&header[8..]);
    crc.finalize()
}

/// `header_crc` by folding: four blocks of 16 bytes, of which the first begins with four zero bytes in
/// the place of the CRC. Zero bytes in front do not change the remainder, and the initial value
/// is added to the first four bytes behind them.
#[target_feature(enable = "pclmulqdq")]
fn folded(header: &[u8; HEADER]) -> u32 {
    let (words, _) = header.as_chunks::<4>();
    let mut word = [0; WORDS];
    for (word, bytes) in word.iter_mut().zip(words) {
        *word = u32::from_le_bytes(*bytes).cast_signed();
    }
    let block = |n: usize| _mm_set_epi32(word[n + 3], word[n + 2], word[n + 1], word[n]);
    // x^(128+32) and x^(128-32) modulo the polynomial.
    let fold_keys = _mm_set_epi64x(0x0_ccaa_009e, 0x1_7519_97d0);
    let fold = |rest: __m128i, next: __m128i| {
        let low = _mm_clmulepi64_si128::<0x00>(rest, fold_keys);
        let high = _mm_clmulepi64_si128::<0x11>(rest, fold_keys);
        _mm_xor_si128(_mm_xor_si128(low, high), next)
    };
    let first = _mm_set_epi32(word[3], word[2], !word[0], 0);
    let rest = fold(fold(fold(first, block(4)), block(8)), block(12));
    // From 128 bits to 96, and to 64.
    let low_32 = _mm_set_epi32(0, 0, 0, -1);
    let rest = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x10>(rest, fold_keys),
        _mm_srli_si128::<8>(rest),
    );
    let to_64 = _mm_set_epi64x(0, 0x1_63cd_6124);
    let rest = _mm_xor_si128(
        _mm_clmulepi64_si128::<0x00>(_mm_and_si128(rest, low_32), to_64),
        _mm_srli_si128::<4>(rest),
    );
    // Barrett reduction: the polynomial, and the quotient of x^64 by it.
    let barrett = _mm_set_epi64x(0x1_f701_1641, 0x1_db71_0641);
    let quotient = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(rest, low_32), barrett);
    let product = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(quotient, low_32), barrett);
    let crc = _mm_srli_si128::<4>(_mm_xor_si128(rest, product));
    !_mm_cvtsi128_si32(crc).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn folding_is_the_crc(low in any::<[u8; 32]>(), high in any::<[u8; 32]>()) {
            let mut header = [0; HEADER];
            header[..32].copy_from_slice(&low);
            header[32..].copy_from_slice(&high);
            let mut crc = crc32fast::Hasher::new();
            crc.update(&header[..4]);
            crc.update(&header[8..]);
            prop_assert_eq!(header_crc(&header), crc.finalize());
        }
    }
}
