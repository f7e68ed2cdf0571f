//! Vectorized decoder of the primitives of a packet, sixteen words at a time.
//!
//! The high part of a primitive's timestamp is in the last timestamp word before it. In each lane
//! it is taken from the last preceding lane that holds such a word. Then the lanes with primitives
//! are compacted. No branch depends on the kind of a word.

use pollux_pipelines::simd::{Decoder, LANES, Simd, Words};

use super::packet::{MAX_PRIMITIVES, MtpPacket, Primitive};
use crate::formats::FormatError;

/// Capacity of a column: vectors are stored whole, from any place on.
const PLACES: usize = MAX_PRIMITIVES + LANES;

/// The primitives of a packet, in columns.
#[derive(Clone, Debug)]
pub struct Decoded {
    simd: Simd,
    len: usize,
    timestamps: [u32; PLACES],
    /// As in the packet.
    words: [u32; PLACES],
}

impl Decoded {
    /// A buffer for the primitives of any packet, decoded by the instruction set of `simd`.
    #[must_use]
    pub fn new(simd: Simd) -> Self {
        Self {
            simd,
            len: 0,
            timestamps: [0; PLACES],
            words: [0; PLACES],
        }
    }

    /// Slots of 25 ns since the start of the burst, one for each primitive.
    #[must_use]
    pub fn timestamps(&self) -> &[u32] {
        &self.timestamps[..self.len]
    }

    /// The primitive words, one for each primitive ([format](super)).
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words[..self.len]
    }

    /// The primitives, in the order of the packet.
    #[must_use]
    pub fn primitives(&self) -> impl ExactSizeIterator<Item = Primitive> + '_ {
        let columns = self.timestamps().iter().zip(self.words());
        columns.map(|(&timestamp, &word)| Primitive {
            id: (word >> 16) as u16,
            timestamp,
            fine: word as u8,
        })
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    /// Decodes the primitives of a packet and returns their number. Stops when the buffer is full,
    /// since a packet may have more than it announces.
    #[inline]
    fn fill(&mut self, packet: &MtpPacket) -> usize {
        let to = &mut *self;
        to.simd.decode(Fill { packet, to });
        self.len
    }
}

impl<'a> MtpPacket<'a> {
    /// Checks the packet in `bytes`, and decodes all its primitives into `decoded`, in one pass.
    ///
    /// # Errors
    /// As of [`MtpPacket::parse`]; `decoded` is then empty.
    #[inline]
    pub fn decode(bytes: &'a [u8], decoded: &mut Decoded) -> Result<Self, FormatError> {
        decoded.clear();
        let packet = Self::header(bytes)?;
        let checked = packet.has(decoded.fill(&packet));
        checked.inspect_err(|_| decoded.clear())
    }
}

struct Fill<'a> {
    packet: &'a MtpPacket<'a>,
    to: &'a mut Decoded,
}

impl Decoder for Fill<'_> {
    type Out = ();

    #[inline(always)]
    fn scalar(self) {
        let Decoded {
            len,
            timestamps,
            words,
            ..
        } = self.to;
        let columns = timestamps.iter_mut().zip(words);
        for ((timestamp, word), primitive) in columns.zip(self.packet.primitives()) {
            *timestamp = primitive.timestamp;
            *word = primitive.word();
            *len += 1;
        }
    }

    #[inline(always)]
    fn vector<W: Words>(self, isa: W::Isa) {
        let Decoded {
            len,
            timestamps,
            words,
            ..
        } = self.to;
        let mut high = W::splat(isa, self.packet.timestamp_high);
        let low_byte = W::splat(isa, 0xFF);
        for chunk in self.packet.words.chunks(LANES) {
            let word = W::load(isa, chunk);
            let stamps = word.shr(24).eq(W::splat(isa, 0));
            let last = word.last_of(stamps, high);
            let timestamp = last.shl(8) | (word.shr(8) & low_byte);
            // No place if there are already too many.
            let (Some(timestamps), Some(words)) = (
                timestamps[*len..].first_chunk_mut(),
                words[*len..].first_chunk_mut(),
            ) else {
                return;
            };
            timestamp.compress(!stamps, timestamps);
            word.compress(!stamps, words);
            // Lanes after the packet's end are zero, as in timestamp words.
            *len += stamps.count_zeros() as usize;
            high = last.last();
        }
    }
}
