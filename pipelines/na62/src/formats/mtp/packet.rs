//! Parser of a packet: a checked packet, read primitive by primitive.

use zerocopy::FromBytes;
use zerocopy::byteorder::little_endian::U32;

use crate::formats::{FormatError, exact_length};

/// Length of the header in bytes: two words.
pub const HEADER_LEN: usize = 8;
/// Maximum length of a packet in bytes: the UDP payload of an Ethernet frame of 1500 bytes over
/// IPv4.
pub const MAX_PACKET: usize = 1472;
/// Maximum number of primitives of one packet (the count is one byte).
pub const MAX_PRIMITIVES: usize = 255;
/// Source id of the RICH.
pub const SOURCE_RICH: u8 = 0x1C;
/// Source id of the L0 trigger processor.
pub const SOURCE_L0TP: u8 = 0x40;
/// Length of a timestamp slot, in ns.
pub const SLOT_NS: f64 = 25.0;
/// Nominal unit of the fine time, in ns: a 256th of a slot.
pub const FINE_NS: f64 = SLOT_NS / 256.0;
/// The unit of the fine time that the L0 firmware itself uses, in ns (24.951 / 256: the period of
/// the accelerator's clock).
pub const FINE_FIRMWARE_NS: f64 = 0.097_464_7;

/// One trigger primitive: what a detector has seen, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Primitive {
    /// Primitive id. Its high byte is not 0: such a word would be a timestamp word.
    pub id: u16,
    /// Slot of 25 ns since the start of the burst.
    pub timestamp: u32,
    /// Time within the slot.
    pub fine: u8,
}

impl Primitive {
    /// Time since the start of the burst in ns, for a unit of the fine time of `fine_ns`:
    /// [`FINE_NS`] or [`FINE_FIRMWARE_NS`].
    #[must_use]
    pub fn time_ns(&self, fine_ns: f64) -> f64 {
        f64::from(self.timestamp) * SLOT_NS + f64::from(self.fine) * fine_ns
    }

    /// The primitive word in a packet.
    pub(super) fn word(self) -> u32 {
        u32::from(self.id) << 16 | (self.timestamp & 0xFF) << 8 | u32::from(self.fine)
    }
}

/// A packet whose lengths and counts were checked.
#[derive(Clone, Copy, Debug)]
pub struct MtpPacket<'a> {
    source_id: u8,
    sub_id: u8,
    count: u8,
    pub(super) timestamp_high: u32,
    pub(super) words: &'a [U32],
}

impl<'a> MtpPacket<'a> {
    /// Checks the packet in `bytes`, a whole UDP payload.
    ///
    /// # Errors
    /// A length other than the one in the header or not a multiple of four, or a number of
    /// primitive words other than announced: a malformed packet, of which nothing can be read.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let packet = Self::header(bytes)?;
        let is_primitive = |word: &&U32| !is_timestamp(word.get());
        packet.has(packet.words.iter().filter(is_primitive).count())
    }

    /// Checks the header and the length.
    #[inline]
    pub(super) fn header(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (header, body) =
            <[U32; 2]>::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
                need: HEADER_LEN,
                have: bytes.len(),
            })?;
        let [first, second] = [header[0].get(), header[1].get()];
        // The field counts the whole packet, including its header.
        exact_length(second as usize & 0xFFFF, bytes.len())?;
        let words = <[U32]>::ref_from_bytes(body)
            .map_err(|_| FormatError::Malformed("the length is not a multiple of four"))?;
        Ok(Self {
            source_id: (first >> 24) as u8,
            sub_id: (second >> 24) as u8,
            count: (second >> 16) as u8,
            timestamp_high: first & 0x00FF_FFFF,
            words,
        })
    }

    /// Returns the packet if it has as many primitives as it announces.
    #[inline]
    pub(super) fn has(self, primitives: usize) -> Result<Self, FormatError> {
        if primitives != usize::from(self.count) {
            return Err(FormatError::Malformed(
                "another number of primitives than announced",
            ));
        }
        Ok(self)
    }

    /// Detector that sent the packet.
    #[must_use]
    pub fn source_id(&self) -> u8 {
        self.source_id
    }

    /// Board of that detector.
    #[must_use]
    pub fn sub_id(&self) -> u8 {
        self.sub_id
    }

    /// Number of primitives.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.count
    }

    /// The primitives, in the order of the packet.
    #[must_use]
    pub fn primitives(&self) -> Primitives<'a> {
        Primitives {
            words: self.words.iter(),
            high: self.timestamp_high,
        }
    }
}

/// A word whose top byte is 0 replaces the timestamp's high part.
pub(super) fn is_timestamp(word: u32) -> bool {
    word >> 24 == 0
}

/// Reader of the primitives of a checked packet.
#[derive(Clone, Debug)]
pub struct Primitives<'a> {
    words: std::slice::Iter<'a, U32>,
    /// High 24 bits of the timestamp, seeded by the header.
    high: u32,
}

impl Iterator for Primitives<'_> {
    type Item = Primitive;

    #[inline]
    fn next(&mut self) -> Option<Primitive> {
        loop {
            let word = self.words.next()?.get();
            if is_timestamp(word) {
                self.high = word;
                continue;
            }
            return Some(Primitive {
                id: (word >> 16) as u16,
                timestamp: (self.high << 8) | ((word >> 8) & 0xFF),
                fine: word as u8,
            });
        }
    }
}
