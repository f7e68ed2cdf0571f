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

    /// A word of an event of so many words.
    fn word(&self, event: u64, words: u64, n: u64) -> u64 {
        let delay = self.suspend.map_or(0, |suspend| suspend(event));
        let index = event.wrapping_mul(words).wrapping_add(n);
        u64::from(delay) << 32 | (event & 0xFFFF) << 16 | index & 0xFFFF
    }

    fn words(bytes: usize) -> u64 {
        bytes.div_ceil(WORD) as u64
    }

    /// Whether data are those of the event.
    #[must_use]
    pub fn check(&self, event: u64, data: &[u8]) -> bool {
        let words = Self::words(data.len());
        let mut chunks = data.chunks(WORD).zip(0..);
        chunks.all(|(chunk, n)| {
            let word = self.word(event, words, n).to_le_bytes();
            *chunk == word[..chunk.len()]
        })
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
        let words = Self::words(into.len());
        for (chunk, n) in into.chunks_mut(WORD).zip(0..) {
            let word = self.word(event, words, n).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    fn release(&mut self, _before: u64) {}
}
