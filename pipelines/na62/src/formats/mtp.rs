//! NA62 L0 primitives: the Multi-Trigger Packet (docs/formats/mtp.md).
//!
//! Layout after the receive state machine of the L0 trigger processor's firmware
//! (dariosol/na62l0tpfw, `ethlink.vhd`). One packet is one UDP payload of 32-bit
//! little-endian words: two of header, then timestamp words and primitive words mixed.

use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use super::{FormatError, WriteError, exact_length};

mod decode;

pub use decode::Decoded;

/// Bytes of the header: two words.
pub const HEADER_LEN: usize = 8;
/// Largest packet in bytes: the UDP payload of an Ethernet frame of 1500 bytes over IPv4.
pub const MAX_PACKET: usize = 1472;
/// Most primitives of one packet (the count is one byte).
pub const MAX_PRIMITIVES: usize = 255;
/// Source id of the RICH.
pub const SOURCE_RICH: u8 = 0x1C;
/// Source id of the L0 trigger processor.
pub const SOURCE_L0TP: u8 = 0x40;
/// Length of a timestamp slot, in ns.
pub const SLOT_NS: f64 = 25.0;
/// Nominal unit of the fine time, in ns: a 256th of a slot.
pub const FINE_NS: f64 = SLOT_NS / 256.0;
/// The unit of the fine time that the L0 firmware itself computes with, in ns (24.951 / 256:
/// the period of the accelerator's clock).
pub const FINE_FIRMWARE_NS: f64 = 0.097_464_7;

/// One trigger primitive: what a detector saw, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Primitive {
    /// What was seen. Its high byte is not 0: such a word would be a timestamp word.
    pub id: u16,
    /// Slot of 25 ns since the start of the burst.
    pub timestamp: u32,
    /// Time within the slot.
    pub fine: u8,
}

impl Primitive {
    /// Time since the start of the burst in ns, where one unit of the fine time is `fine_ns`
    /// long: [`FINE_NS`] or [`FINE_FIRMWARE_NS`].
    #[must_use]
    pub fn time_ns(&self, fine_ns: f64) -> f64 {
        f64::from(self.timestamp) * SLOT_NS + f64::from(self.fine) * fine_ns
    }

    /// Its word in a packet.
    fn word(self) -> u32 {
        u32::from(self.id) << 16 | (self.timestamp & 0xFF) << 8 | u32::from(self.fine)
    }
}

/// A packet whose lengths and counts were checked.
#[derive(Clone, Copy, Debug)]
pub struct MtpPacket<'a> {
    source_id: u8,
    sub_id: u8,
    count: u8,
    timestamp_high: u32,
    words: &'a [U32],
}

impl<'a> MtpPacket<'a> {
    /// Checks the packet in `bytes`, a whole UDP payload.
    ///
    /// # Errors
    /// A length other than the one in the header, not a multiple of four, or a number of
    /// primitive words other than announced: a malformed packet, of which nothing can be read.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let packet = Self::header(bytes)?;
        let is_primitive = |word: &&U32| !is_timestamp(word.get());
        packet.has(packet.words.iter().filter(is_primitive).count())
    }

    /// Checks the header and the length.
    #[inline]
    fn header(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (header, body) =
            <[U32; 2]>::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
                need: HEADER_LEN,
                have: bytes.len(),
            })?;
        let [first, second] = [header[0].get(), header[1].get()];
        // The field counts the whole packet, its header included.
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

    /// The packet, if it has as many primitives as it announces.
    #[inline]
    fn has(self, primitives: usize) -> Result<Self, FormatError> {
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

    /// Checks the packet in `bytes`, and decodes all its primitives into `decoded`, in one pass.
    ///
    /// # Errors
    /// As of [`MtpPacket::parse`]; `decoded` is empty then.
    #[inline]
    pub fn decode(bytes: &'a [u8], decoded: &mut Decoded) -> Result<Self, FormatError> {
        decoded.clear();
        let packet = Self::header(bytes)?;
        let checked = packet.has(decoded.fill(&packet));
        checked.inspect_err(|_| decoded.clear())
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
fn is_timestamp(word: u32) -> bool {
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

/// Writes one packet into a buffer of the caller's: `&mut [u8]`, an array, a packet.
#[derive(Debug)]
pub struct MtpWriter<B> {
    buf: B,
    /// Bytes written, header included.
    len: usize,
    /// Bytes that may be written.
    limit: usize,
    source_id: u8,
    sub_id: u8,
    count: u8,
    /// The header's high part of the timestamp: that of the first primitive.
    first_high: u32,
    /// The high part that holds for the next primitive word.
    high: u32,
}

impl<B: AsMut<[u8]>> MtpWriter<B> {
    /// Begins a packet of board `sub_id` of detector `source_id` in `buf`; it grows to the
    /// buffer's length or to [`MAX_PACKET`], whichever is less.
    ///
    /// # Errors
    /// [`WriteError::Buffer`] when the buffer cannot hold the header.
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

    /// Appends one primitive, with a timestamp word before it where the high part of the
    /// timestamp changed.
    ///
    /// # Errors
    /// [`WriteError::Full`] when the primitive needs the next packet; [`WriteError::Invalid`]
    /// when the high byte of its id is 0. The packet is unchanged.
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

    /// Sets further bits in the identifiers: `bits(n)` in that of primitive `n`, from 0. What could
    /// be sent still can be.
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

    /// Primitives written so far.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Whether the packet has no primitive yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Writes the header and returns the buffer with the length of the packet in it.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;
    use pollux_pipelines::simd::Simd;

    fn write(primitives: &[Primitive]) -> Vec<u8> {
        let mut writer = MtpWriter::new(vec![0; MAX_PACKET], SOURCE_RICH, 3).unwrap();
        for &primitive in primitives {
            writer.push(primitive).unwrap();
        }
        let (mut bytes, len) = writer.finish();
        bytes.truncate(len);
        bytes
    }

    fn example() -> Vec<Primitive> {
        vec![
            Primitive {
                id: 0x4001,
                timestamp: 0x0001_02FE,
                fine: 0x10,
            },
            Primitive {
                id: 0x4002,
                timestamp: 0x0001_0301,
                fine: 0xFF,
            },
        ]
    }

    #[test]
    fn words_are_those_of_the_firmware() {
        let bytes = write(&example());
        let words: Vec<u32> = bytes
            .chunks(4)
            .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
            .collect();
        assert_eq!(
            words,
            [
                0x1C00_0102,
                0x0302_0014,
                0x4001_FE10,
                0x0000_0103,
                0x4002_01FF
            ]
        );
        let packet = MtpPacket::parse(&bytes).unwrap();
        assert_eq!(
            (packet.source_id(), packet.sub_id(), packet.count()),
            (SOURCE_RICH, 3, 2)
        );
        assert!(packet.primitives().eq(example()));
    }

    #[test]
    fn times_take_the_fine_unit_as_a_parameter() {
        let primitive = Primitive {
            id: 0x4000,
            timestamp: 4,
            fine: 128,
        };
        assert!((primitive.time_ns(FINE_NS) - 112.5).abs() < 1e-9);
        assert!((primitive.time_ns(FINE_FIRMWARE_NS) - 112.475_481_6).abs() < 1e-9);
    }

    #[test]
    fn an_id_that_reads_as_a_timestamp_is_refused() {
        let mut writer = MtpWriter::new([0u8; 64], 1, 1).unwrap();
        let refused = Primitive {
            id: 0x00FF,
            timestamp: 0,
            fine: 0,
        };
        assert!(matches!(writer.push(refused), Err(WriteError::Invalid(_))));
        writer
            .push(Primitive {
                id: 0x0100,
                ..refused
            })
            .unwrap();
        assert_eq!(writer.count(), 1);
    }

    #[test]
    fn bits_are_set_in_identifiers_alone() {
        // The high parts change, so timestamp words stand between the primitives.
        let primitives: Vec<_> = (0..9)
            .map(|n| Primitive {
                id: 0x8000,
                timestamp: (n / 2) << 8 | 0xff,
                fine: 0xff,
            })
            .collect();
        let mut writer = MtpWriter::new([0u8; 256], 1, 1).unwrap();
        for &primitive in &primitives {
            writer.push(primitive).unwrap();
        }
        writer.set_bits(|n| if n % 3 == 0 { 0x0180 } else { 0 });
        let (bytes, len) = writer.finish();
        let packet = MtpPacket::parse(&bytes[..len]).unwrap();
        for (n, (read, written)) in packet.primitives().zip(primitives).enumerate() {
            let id = if n % 3 == 0 { 0x8180 } else { 0x8000 };
            assert_eq!(read, Primitive { id, ..written });
        }
        assert_eq!(packet.count(), 9);
    }

    #[test]
    fn packets_fill_up_at_255_primitives_or_1472_bytes() {
        let fill = |step: u32| {
            let mut writer = MtpWriter::new(vec![0; 4096], 1, 1).unwrap();
            let mut n = 0;
            while writer
                .push(Primitive {
                    id: 0x8000,
                    timestamp: n * step,
                    fine: 0,
                })
                .is_ok()
            {
                n += 1;
            }
            let (bytes, len) = writer.finish();
            assert!(MtpPacket::parse(&bytes[..len]).is_ok());
            (n, len)
        };
        assert_eq!(fill(0), (255, 8 + 255 * 4));
        // A timestamp word each, but for the first: 183 primitives are 8 + 4 + 182 * 8 bytes.
        assert_eq!(fill(256), (183, 1468));
        assert!(MtpWriter::new([0u8; 7], 1, 1).is_err());
    }

    #[test]
    fn every_wrong_length_or_count_is_refused() {
        let good = write(&example());
        for len in 0..good.len() {
            assert!(matches!(
                MtpPacket::parse(&good[..len]),
                Err(FormatError::Truncated { .. })
            ));
        }
        let mut long = good.clone();
        long.push(0);
        assert_eq!(
            MtpPacket::parse(&long).unwrap_err(),
            FormatError::Trailing { excess: 1 }
        );
        long[4] += 1;
        assert!(matches!(
            MtpPacket::parse(&long),
            Err(FormatError::Malformed(_))
        ));
        for count in [0, 1, 3, 255] {
            let mut bytes = good.clone();
            bytes[6] = count;
            assert!(matches!(
                MtpPacket::parse(&bytes),
                Err(FormatError::Malformed(_))
            ));
        }
    }

    proptest! {
        #[test]
        fn round_trip(raw in prop::collection::vec((0x100..=u16::MAX, any::<u32>(), any::<u8>()), 0..180)) {
            let primitives: Vec<_> = raw
                .into_iter()
                .map(|(id, timestamp, fine)| Primitive { id, timestamp, fine })
                .collect();
            let bytes = write(&primitives);
            prop_assert!(MtpPacket::parse(&bytes).unwrap().primitives().eq(primitives));
        }

        #[test]
        fn any_bytes_are_safe(mut bytes in prop::collection::vec(any::<u8>(), 0..120), fix in any::<bool>()) {
            if fix && bytes.len() >= HEADER_LEN {
                let len = (bytes.len() as u16).to_le_bytes();
                bytes[4..6].copy_from_slice(&len);
            }
            if let Ok(packet) = MtpPacket::parse(&bytes) {
                prop_assert_eq!(packet.primitives().count(), usize::from(packet.count()));
            }
        }

        /// Any mixture of words, sound, cut or damaged: every set of instructions gives the same.
        #[test]
        fn all_ways_to_decode_agree(
            words in prop::collection::vec((any::<u32>(), 0..4u8), 0..330),
            rare in 1..4u8,
            (cut, damage) in (0..40usize, prop::option::of((any::<prop::sample::Index>(), any::<u8>()))),
        ) {
            let (header, words): (u32, Vec<u32>) = (words.len() as u32, words
                .into_iter()
                .map(|(word, kind)| if kind < rare { word & 0x00FF_FFFF } else { word })
                .collect());
            let count = words.iter().filter(|&&word| !is_timestamp(word)).count() as u32;
            let second = (count << 16) + (words.len() as u32 + 2) * 4;
            let mut bytes: Vec<u8> = [header, second].iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect();
            if let Some((at, value)) = damage {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            for bytes in [&bytes[..], &bytes[..bytes.len().saturating_sub(cut)]] {
                let expected = MtpPacket::parse(bytes).map(|packet| packet.primitives().collect::<Vec<_>>());
                prop_assert!(damage.is_some() || cut > 0 || count > 255 || expected.is_ok());
                for simd in Simd::all() {
                    let mut decoded = Decoded::new(simd);
                    let read = MtpPacket::decode(bytes, &mut decoded).map(|_| decoded.primitives().collect());
                    prop_assert_eq!(&read, &expected, "{:?}", simd);
                    prop_assert!(read.is_ok() || decoded.words().is_empty());
                }
            }
        }
    }
}
