//! Mock-up data, made as they are transferred (thesis, III.E.2, figures III-32 and IV-10).
//!
//! A word of 64 bits, little-endian in memory: bits 63 to 32 suspend a node, bits 31 to 16 are the
//! number of the event, bits 15 to 0 that of the word, which goes on from event to event.

use crate::fragments::Fragments;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

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
    fn pattern(&self, event: u64, bytes: usize) -> (u64, u64) {
        let delay = self.suspend.map_or(0, |suspend| suspend(event));
        let first = event.wrapping_mul(bytes.div_ceil(WORD) as u64) & 0xFFFF;
        (u64::from(delay) << 32 | (event & 0xFFFF) << 16, first)
    }

    /// Whether data are those of the event.
    #[must_use]
    pub fn check(&self, event: u64, data: &[u8]) -> bool {
        let (common, first) = self.pattern(event, data.len());
        let (words, rest) = data.as_chunks::<WORD>();
        // No early end: most data are right, and the loop is one of vectors.
        let mut difference = 0;
        for (word, n) in words.iter().zip(first..) {
            difference |= u64::from_le_bytes(*word) ^ (common | n & 0xFFFF);
        }
        let last = first + words.len() as u64;
        let last = (common | last & 0xFFFF).to_le_bytes();
        difference == 0 && (rest.is_empty() || *rest == last[..rest.len()])
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
    fn length(&self, _event: u64, part: u8) -> Option<u32> {
        Some(if part == 0 { self.bytes } else { self.second })
    }

    fn write(&self, event: u64, _part: u8, into: &mut [u8]) {
        let (common, first) = self.pattern(event, into.len());
        let (words, rest) = into.as_chunks_mut::<WORD>();
        let last = first + words.len() as u64;
        for (word, n) in words.iter_mut().zip(first..) {
            *word = (common | n & 0xFFFF).to_le_bytes();
        }
        if !rest.is_empty() {
            let last = (common | last & 0xFFFF).to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }

    fn release(&mut self, _before: u64) {}
}
