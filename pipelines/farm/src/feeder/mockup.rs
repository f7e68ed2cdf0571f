//! Mock-up data, made as they are transferred (thesis, III.E.2, figures III-32 and IV-10).
//!
//! A word of 64 bits, little-endian in memory: bits 63 to 32 suspend a node, bits 31 to 16 are the
//! number of the event, bits 15 to 0 that of the word, which goes on from event to event.

mod words;

use crate::fragments::Fragments;
use crate::wire::payload;
use words::{WORD, blocks, blocks_mut, blocks_of, word};

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

    /// The words of an event of so many bytes.
    #[inline]
    fn words(&self, event: u64, bytes: usize) -> impl Iterator<Item = [u8; WORD]> {
        let suspended = self.suspend.map_or(0, |suspend| suspend(event));
        let first = event.wrapping_mul(bytes.div_ceil(WORD) as u64);
        (0..).map(move |n| word(suspended, event, first.wrapping_add(n)).to_le_bytes())
    }

    /// Whether data are those of the event.
    #[must_use]
    #[inline]
    pub fn check(&self, event: u64, data: &[u8]) -> bool {
        if let Some(of_event) = blocks_of(data.len())
            && self.suspend.is_none()
        {
            return words::are_right(event, of_event, blocks(data));
        }
        let mut words = self.words(event, data.len());
        let pieces = data.chunks(WORD);
        pieces
            .zip(&mut words)
            .all(|(piece, word)| *piece == word[..piece.len()])
    }

    /// Compares the first parts of the events of a payload, which [`payload::check`] accepts.
    #[must_use]
    #[inline]
    pub fn compare(&self, event: u64, count: u16, payload: &[u8]) -> Compared {
        if let Some(of_event) = blocks_of(self.bytes as usize)
            && self.suspend.is_none()
            && let Some(data) = payload::equal_events(count, self.bytes, payload)
            && words::are_right(event, of_event, blocks(data))
        {
            let checked = count.into();
            return Compared { checked, wrong: 0 };
        }
        self.compare_each(event, count, payload)
    }

    fn compare_each(&self, event: u64, count: u16, payload: &[u8]) -> Compared {
        let mut compared = Compared::default();
        for (event, data) in (event..).zip(payload::events(count, payload)) {
            let Some(data) = data else { continue };
            let is_right = data.len() == self.bytes as usize && self.check(event, data);
            compared.checked += 1;
            compared.wrong += u64::from(!is_right);
        }
        compared
    }
}

/// Events of a payload that were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Those that have data.
    pub checked: u64,
    /// Those with other data than the feeder makes, or of another length.
    pub wrong: u64,
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
    fn equal_length(&self, part: u8) -> Option<u32> {
        let length = if part == 0 { self.bytes } else { self.second };
        let is_whole = length > 0 && (length as usize).is_multiple_of(WORD);
        is_whole.then_some(length)
    }

    #[inline]
    fn write(&self, event: u64, _part: u8, into: &mut [u8]) {
        if let Some(of_event) = blocks_of(into.len())
            && self.suspend.is_none()
        {
            return words::fill(event, of_event, blocks_mut(into));
        }
        let words = self.words(event, into.len());
        for (piece, word) in into.chunks_mut(WORD).zip(words) {
            piece.copy_from_slice(&word[..piece.len()]);
        }
    }

    #[inline]
    fn write_equal(&self, event: u64, part: u8, bytes: usize, into: &mut [u8]) {
        match blocks_of(bytes) {
            Some(of_event) if self.suspend.is_none() => {
                words::fill(event, of_event, blocks_mut(into));
            }
            _ => {
                for (event, data) in (event..).zip(into.chunks_exact_mut(bytes)) {
                    self.write(event, part, data);
                }
            }
        }
    }

    fn release(&mut self, _before: u64) {}
}
