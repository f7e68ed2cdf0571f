//! Mock-up data, made as they are transferred (thesis, III.E.2, figures III-32 and IV-10).
//!
//! A word of 64 bits, little-endian in memory: bits 63 to 32 suspend a node, bits 31 to 16 are the
//! number of the event, bits 15 to 0 that of the word, which goes on from event to event.

use crate::fragments::Fragments;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Words that are made or compared at a time: loops of a known length become vectors.
const BLOCK: usize = 8;

/// Numbers of words: they have 16 bits.
const NUMBERS: u64 = 1 << 16;

/// Which nodes stand still: event to number of the node + 1; 0 is none.
pub type Suspend = fn(event: u64) -> u32;

/// A store that makes its data.
#[derive(Clone, Copy, Debug)]
pub struct Mockup {
    bytes: u32,
    second: u32,
    suspend: Option<Suspend>,
}

impl Mockup {
    /// Events of so many bytes in the first and in the second part.
    #[must_use]
    pub fn new(bytes: u32, second: u32) -> Self {
        Self {
            bytes,
            second,
            suspend: None,
        }
    }

    /// The words name nodes that stand still.
    #[must_use]
    pub fn suspending(self, suspend: Suspend) -> Self {
        let suspend = Some(suspend);
        Self { suspend, ..self }
    }

    /// What the words of an event have in common, and the number of the first one.
    #[inline]
    fn pattern(&self, event: u64, bytes: usize) -> (u64, u64) {
        let delay = self.suspend.map_or(0, |suspend| suspend(event));
        let first = event.wrapping_mul(bytes.div_ceil(WORD) as u64) & 0xFFFF;
        (u64::from(delay) << 32 | (event & 0xFFFF) << 16, first)
    }

    /// Whether data are those of the event.
    #[must_use]
    #[inline]
    pub fn check(&self, event: u64, data: &[u8]) -> bool {
        let (common, first) = self.pattern(event, data.len());
        let (words, rest) = data.as_chunks::<WORD>();
        let (before, behind) = words.split_at(before_wrap(first, words.len()));
        let mut difference = differs(before, common | first);
        for (n, word) in (first + before.len() as u64..).zip(behind) {
            difference |= u64::from_le_bytes(*word) ^ (common | (n % NUMBERS));
        }
        let last = common | ((first + words.len() as u64) % NUMBERS);
        difference == 0 && (rest.is_empty() || *rest == last.to_le_bytes()[..rest.len()])
    }
}

/// Words, of so many from a number on, in front of the one whose number is 0 again.
#[inline]
fn before_wrap(first: u64, words: usize) -> usize {
    words.min((NUMBERS - first) as usize)
}

/// The bits in which words differ from a first one and those that follow. There is no early end:
/// most data are right.
#[inline]
fn differs(words: &[[u8; WORD]], first: u64) -> u64 {
    let (mut differences, mut next) = (0, first);
    let (blocks, rest) = words.as_chunks::<BLOCK>();
    for block in blocks {
        for (word, n) in block.iter().zip(0..) {
            differences |= u64::from_le_bytes(*word) ^ next.wrapping_add(n);
        }
        next = next.wrapping_add(BLOCK as u64);
    }
    for word in rest {
        differences |= u64::from_le_bytes(*word) ^ next;
        next = next.wrapping_add(1);
    }
    differences
}

/// Writes a first word and those that follow.
#[inline]
fn fill(words: &mut [[u8; WORD]], first: u64) {
    let mut next = first;
    let (blocks, rest) = words.as_chunks_mut::<BLOCK>();
    for block in blocks {
        for (word, n) in block.iter_mut().zip(0..) {
            *word = next.wrapping_add(n).to_le_bytes();
        }
        next = next.wrapping_add(BLOCK as u64);
    }
    for word in rest {
        *word = next.to_le_bytes();
        next = next.wrapping_add(1);
    }
}

/// The node that a first word suspends.
#[must_use]
pub fn suspended(data: &[u8]) -> Option<u16> {
    let word = u64::from_le_bytes(*data.first_chunk()?);
    let node = (word >> 32).checked_sub(1)?;
    u16::try_from(node).ok()
}

impl Fragments for Mockup {
    #[inline]
    fn length(&self, _event: u64, part: u8) -> Option<u32> {
        Some(if part == 0 { self.bytes } else { self.second })
    }

    #[inline]
    fn write(&self, event: u64, _part: u8, into: &mut [u8]) {
        let (common, first) = self.pattern(event, into.len());
        let (words, rest) = into.as_chunks_mut::<WORD>();
        let count = words.len();
        let (before, behind) = words.split_at_mut(before_wrap(first, count));
        fill(before, common | first);
        for (n, word) in (first + before.len() as u64..).zip(behind) {
            *word = (common | (n % NUMBERS)).to_le_bytes();
        }
        if !rest.is_empty() {
            let last = common | ((first + count as u64) % NUMBERS);
            rest.copy_from_slice(&last.to_le_bytes()[..rest.len()]);
        }
    }

    fn release(&mut self, _before: u64) {}
}
