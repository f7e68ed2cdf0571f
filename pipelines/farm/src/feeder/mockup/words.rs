//! Words of events in a row, eight at a time, in the widest vectors that the processor has.

use core::arch::x86_64::{
    _mm256_add_epi64, _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi64x, _mm256_setzero_si256,
    _mm256_storeu_si256, _mm256_testz_si256, _mm256_xor_si256, _mm512_add_epi64, _mm512_or_si512,
    _mm512_set_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_test_epi64_mask, _mm512_xor_si512,
};

/// Bytes of a word.
pub(super) const WORD: usize = size_of::<u64>();

/// Words of a block. A block of an event has no number 0 but in front: 8 divides all numbers.
const WORDS: usize = 8;

/// Eight words in memory.
type Block = [[u8; WORD]; WORDS];

/// A word: the node + 1 that it suspends, the event, and the number of the word.
#[inline(always)]
pub(super) fn word(suspended: u32, event: u64, number: u64) -> u64 {
    u64::from(suspended) << 32 | (event & 0xFFFF) << 16 | number & 0xFFFF
}

/// Blocks of an event of so many bytes, if it has whole ones.
#[inline]
pub(super) fn blocks_of(bytes: usize) -> Option<usize> {
    let blocks = bytes / size_of::<Block>();
    (blocks > 0 && blocks * size_of::<Block>() == bytes).then_some(blocks)
}

/// The blocks of data.
#[inline]
pub(super) fn blocks(data: &[u8]) -> &[Block] {
    data.as_chunks().0.as_chunks().0
}

/// The blocks of data, to write.
#[inline]
pub(super) fn blocks_mut(data: &mut [u8]) -> &mut [Block] {
    data.as_chunks_mut().0.as_chunks_mut().0
}

/// The first word of each block, of events from a number on that have so many blocks.
#[inline(always)]
fn firsts(event: u64, of_event: usize) -> impl Iterator<Item = u64> {
    let mut number = event.wrapping_mul((of_event * WORDS) as u64);
    let (mut event, mut left) = (event, of_event);
    std::iter::repeat_with(move || {
        let first = word(0, event, number);
        number = number.wrapping_add(WORDS as u64);
        left -= 1;
        if left == 0 {
            left = of_event;
            event = event.wrapping_add(1);
        }
        first
    })
}

/// Writes events from a number on, of so many blocks each.
#[inline]
pub(super) fn fill(event: u64, of_event: usize, into: &mut [Block]) {
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the feature.
        unsafe { fill_512(event, of_event, into) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        unsafe { fill_256(event, of_event, into) }
    } else {
        fill_any(event, of_event, into);
    }
}

/// Whether data are those of events from a number on, of so many blocks each. There is no early end:
/// most data are right.
#[inline]
pub(super) fn are_right(event: u64, of_event: usize, data: &[Block]) -> bool {
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the feature.
        unsafe { are_right_512(event, of_event, data) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        unsafe { are_right_256(event, of_event, data) }
    } else {
        are_right_any(event, of_event, data)
    }
}

#[target_feature(enable = "avx512f")]
fn fill_512(event: u64, of_event: usize, into: &mut [Block]) {
    let places = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    for (block, first) in into.iter_mut().zip(firsts(event, of_event)) {
        let words = _mm512_add_epi64(_mm512_set1_epi64(first.cast_signed()), places);
        // SAFETY: a block has as many bytes as the vector.
        unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), words) };
    }
}

#[target_feature(enable = "avx2")]
fn fill_256(event: u64, of_event: usize, into: &mut [Block]) {
    let places = [_mm256_set_epi64x(3, 2, 1, 0), _mm256_set_epi64x(7, 6, 5, 4)];
    for (block, first) in into.iter_mut().zip(firsts(event, of_event)) {
        let first = _mm256_set1_epi64x(first.cast_signed());
        let (halves, _) = block.as_chunks_mut::<{ WORDS / 2 }>();
        for (half, places) in halves.iter_mut().zip(places) {
            let words = _mm256_add_epi64(first, places);
            // SAFETY: half a block has as many bytes as the vector.
            unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), words) };
        }
    }
}

fn fill_any(event: u64, of_event: usize, into: &mut [Block]) {
    for (block, first) in into.iter_mut().zip(firsts(event, of_event)) {
        for (word, n) in block.iter_mut().zip(first..) {
            *word = n.to_le_bytes();
        }
    }
}

#[target_feature(enable = "avx512f")]
fn are_right_512(event: u64, of_event: usize, data: &[Block]) -> bool {
    let places = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    let mut differences = _mm512_setzero_si512();
    for (block, first) in data.iter().zip(firsts(event, of_event)) {
        let [a, b, c, d, e, f, g, h] = block.map(i64::from_le_bytes);
        let found = _mm512_set_epi64(h, g, f, e, d, c, b, a);
        let words = _mm512_add_epi64(_mm512_set1_epi64(first.cast_signed()), places);
        differences = _mm512_or_si512(differences, _mm512_xor_si512(found, words));
    }
    _mm512_test_epi64_mask(differences, differences) == 0
}

#[target_feature(enable = "avx2")]
fn are_right_256(event: u64, of_event: usize, data: &[Block]) -> bool {
    let places = [_mm256_set_epi64x(3, 2, 1, 0), _mm256_set_epi64x(7, 6, 5, 4)];
    let mut differences = _mm256_setzero_si256();
    for (block, first) in data.iter().zip(firsts(event, of_event)) {
        let first = _mm256_set1_epi64x(first.cast_signed());
        let [a, b, c, d, e, f, g, h] = block.map(i64::from_le_bytes);
        let halves = [_mm256_set_epi64x(d, c, b, a), _mm256_set_epi64x(h, g, f, e)];
        for (found, places) in halves.into_iter().zip(places) {
            let words = _mm256_add_epi64(first, places);
            differences = _mm256_or_si256(differences, _mm256_xor_si256(found, words));
        }
    }
    _mm256_testz_si256(differences, differences) == 1
}

fn are_right_any(event: u64, of_event: usize, data: &[Block]) -> bool {
    let mut differences = 0;
    for (block, first) in data.iter().zip(firsts(event, of_event)) {
        for (word, n) in block.iter().zip(first..) {
            differences |= u64::from_le_bytes(*word) ^ n;
        }
    }
    differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Fill = fn(u64, usize, &mut [Block]);
    type Check = fn(u64, usize, &[Block]) -> bool;

    /// The code for each processor, as far as this one runs it.
    fn variants() -> Vec<(Fill, Check)> {
        let mut all: Vec<(Fill, Check)> = vec![(fill, are_right), (fill_any, are_right_any)];
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature.
            let fill: Fill = |event, of_event, into| unsafe { fill_256(event, of_event, into) };
            // SAFETY: the processor has the feature.
            all.push((fill, |event, of_event, data| unsafe {
                are_right_256(event, of_event, data)
            }));
        }
        all
    }

    proptest! {
        #[test]
        fn all_processors_make_and_compare_the_same_words(
            event in any::<u64>(),
            of_event in 1_usize..6,
            events in 0_usize..9,
            bit in any::<prop::sample::Index>(),
        ) {
            let mut expected = vec![[[0; WORD]; WORDS]; of_event * events];
            for (n, word) in expected.as_flattened_mut().iter_mut().enumerate() {
                let of_event = (of_event * WORDS) as u64;
                let event = event.wrapping_add(n as u64 / of_event);
                let number = event.wrapping_mul(of_event).wrapping_add(n as u64 % of_event);
                *word = ((event & 0xFFFF) << 16 | number & 0xFFFF).to_le_bytes();
            }
            for (fill, are_right) in variants() {
                let mut data = vec![[[0xAA; WORD]; WORDS]; of_event * events];
                fill(event, of_event, &mut data);
                prop_assert_eq!(&data, &expected);
                prop_assert!(are_right(event, of_event, &data));
                if events > 0 {
                    let bytes = data.as_flattened_mut().as_flattened_mut();
                    let bit = bit.index(bytes.len() * 8);
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    prop_assert!(!are_right(event, of_event, &data));
                }
            }
        }
    }
}
