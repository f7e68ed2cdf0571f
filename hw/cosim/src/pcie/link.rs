//! One direction of the link, and TLPs as beats of the host bus.

use std::collections::VecDeque;

use rand::Rng;

use super::header::Header;
use crate::pins::Beat;

/// Bytes of TLPs in a microsecond: Gen3 x8 is 8 GT/s x 8 lanes x 128/130, less 5 % for DLLPs.
pub const LINK_BYTES_PER_US: u64 = 7_500;
/// Bytes around a payload: framing, sequence number, header of 4 DW, LCRC (PCIe 4.0, 3.6, 4.2.2).
pub const TLP_OVERHEAD: u64 = 24;

/// Bytes in a beat.
const BEAT: usize = 32;

/// Time at which it is free, and what it has carried.
#[derive(Default)]
pub(super) struct Link {
    free_at: u64,
    bytes: u64,
}

impl Link {
    /// Sends a TLP at so many bytes in a microsecond; returns the time of its last symbol.
    pub(super) fn send(&mut self, now: u64, payload: usize, per_us: u64) -> u64 {
        let bytes = payload as u64 + TLP_OVERHEAD;
        self.free_at = self.free_at.max(now) + bytes * 1_000_000 / per_us;
        self.bytes += bytes;
        self.free_at
    }

    /// Bytes of all TLPs, with what is around them.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Remaining busy time, in picoseconds.
    pub(super) fn backlog(&self, now: u64) -> u64 {
        self.free_at.saturating_sub(now)
    }
}

/// A TLP.
#[derive(Clone, Debug)]
pub(super) struct Tlp {
    pub(super) header: Header,
    /// Whole beats, with padding after the last DW.
    pub(super) data: Vec<u8>,
}

impl Tlp {
    /// Its beats. The first one carries the header; the others keep its old value.
    pub(super) fn beats(&self, rng: &mut impl Rng) -> VecDeque<Beat> {
        let count = self.data.len().div_ceil(BEAT).max(1);
        let beat = |index| {
            let mut data = [0; 8];
            let bytes = self.data.get(index * BEAT..).unwrap_or_default();
            for (word, bytes) in data.iter_mut().zip(bytes.chunks(4)) {
                let mut whole = [0; 4];
                whole
                    .iter_mut()
                    .zip(bytes)
                    .for_each(|(to, from)| *to = *from);
                *word = u32::from_le_bytes(whole);
            }
            let header = match index {
                0 => self.header.words(),
                _ => [rng.next_u32(); 4],
            };
            Beat::new(header, data, index == 0, index + 1 == count)
        };
        (0..count).map(beat).collect()
    }
}

/// Assembles beats.
#[derive(Default)]
pub(super) struct Assembly {
    header: Header,
    data: Vec<u8>,
}

impl Assembly {
    /// The TLP, with its last beat.
    pub(super) fn take(&mut self, beat: &Beat) -> Option<Tlp> {
        if beat.sop != 0 {
            self.header = Header::from_words(beat.header);
            self.data.clear();
        }
        self.data
            .extend(beat.data.iter().flat_map(|word| word.to_le_bytes()));
        let (header, data) = (self.header, &mut self.data);
        (beat.eop != 0).then(|| Tlp {
            header,
            data: std::mem::take(data),
        })
    }
}
