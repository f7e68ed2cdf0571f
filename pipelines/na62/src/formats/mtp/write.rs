//! Writer of a packet.

use zerocopy::IntoBytes;
use zerocopy::byteorder::little_endian::U32;

use super::packet::{HEADER_LEN, MAX_PACKET, MAX_PRIMITIVES, Primitive, is_timestamp};
use crate::formats::WriteError;

/// Writes one packet into a buffer of the caller: `&mut [u8]`, an array, a packet.
#[derive(Debug)]
pub struct MtpWriter<B> {
    buf: B,
    /// Bytes written, including the header.
    len: usize,
    /// Limit on the bytes.
    limit: usize,
    source_id: u8,
    sub_id: u8,
    count: u8,
    /// High part of the timestamp in the header: that of the first primitive.
    first_high: u32,
    /// High part of the timestamp that applies to the next primitive word.
    high: u32,
}

impl<B: AsMut<[u8]>> MtpWriter<B> {
    /// Begins a packet of board `sub_id` of detector `source_id` in `buf`. The packet grows up to
    /// the buffer's length or [`MAX_PACKET`], whichever is less.
    ///
    /// # Errors
    /// [`WriteError::Buffer`] if the buffer cannot hold the header.
    pub fn new(mut buf: B, source_id: u8, sub_id: u8) -> Result<Self, WriteError> {
        let limit = buf.as_mut().len().min(MAX_PACKET);
        if limit < HEADER_LEN {
            return Err(WriteError::Buffer {
                need: HEADER_LEN,
                have: limit,
            });
        }
        Ok(Self {
            buf,
            len: HEADER_LEN,
            limit,
            source_id,
            sub_id,
            count: 0,
            first_high: 0,
            high: 0,
        })
    }

    /// Appends one primitive, preceded by a timestamp word if the high part of the timestamp has
    /// changed.
    ///
    /// # Errors
    /// [`WriteError::Full`] if the primitive needs the next packet; [`WriteError::Invalid`] if the
    /// high byte of its id is 0. The packet is unchanged.
    pub fn push(&mut self, primitive: Primitive) -> Result<(), WriteError> {
        let word = primitive.word();
        if is_timestamp(word) {
            return Err(WriteError::Invalid("a primitive id whose high byte is 0"));
        }
        let high = primitive.timestamp >> 8;
        let new_high = self.count > 0 && high != self.high;
        let need = if new_high { 8 } else { 4 };
        if self.limit - self.len < need || usize::from(self.count) == MAX_PRIMITIVES {
            return Err(WriteError::Full);
        }
        if new_high {
            self.put(high);
        } else if self.count == 0 {
            self.first_high = high;
        }
        self.high = high;
        self.put(word);
        self.count += 1;
        Ok(())
    }

    /// Appends a word; the caller has checked that it fits.
    fn put(&mut self, word: u32) {
        self.buf.as_mut()[self.len..self.len + 4].copy_from_slice(&word.to_le_bytes());
        self.len += 4;
    }

    /// Sets additional bits in the ids: `bits(n)` in that of primitive `n`, from 0. Ids stay valid.
    pub fn set_bits(&mut self, mut bits: impl FnMut(usize) -> u16) {
        let (words, _) = self.buf.as_mut()[HEADER_LEN..self.len].as_chunks_mut::<4>();
        let primitives = words
            .iter_mut()
            .filter(|word| !is_timestamp(u32::from_le_bytes(**word)));
        for (n, word) in primitives.enumerate() {
            let more = u32::from(bits(n)) << 16;
            *word = (u32::from_le_bytes(*word) | more).to_le_bytes();
        }
    }

    /// Number of primitives written so far.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Whether the packet has no primitive yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Writes the header; returns the buffer and the length of the packet in it.
    pub fn finish(mut self) -> (B, usize) {
        let header = [
            U32::new((u32::from(self.source_id) << 24) | self.first_high),
            // `limit` <= MAX_PACKET, so the length fits 16 bits.
            U32::new(
                (u32::from(self.sub_id) << 24) | (u32::from(self.count) << 16) | self.len as u32,
            ),
        ];
        self.buf.as_mut()[..HEADER_LEN].copy_from_slice(header.as_bytes());
        (self.buf, self.len)
    }
}
