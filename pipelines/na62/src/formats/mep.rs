//! NA62 multi-event packets, from the readout boards to the farm (docs/formats/mep.md).
//!
//! Layout after the farm's own receiver (NA62/na62-farm-lib, `l0/MEP.h`, `l0/MEPFragment.h`, which
//! cite table 2 of the note NA62-11-02). One packet is one UDP payload, little-endian: a header,
//! then the fragments of consecutive events. The contents of a fragment depend on the detector;
//! [`tel62`](super::tel62) reads those of the boards with TDCs.

use zerocopy::byteorder::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FormatError, WriteError, exact_length};

/// UDP port of the farm for the detectors read out at L0.
pub const UDP_PORT_L0: u16 = 58_913;
/// UDP port of the farm for the calorimeter readout (CREAM).
pub const UDP_PORT_CREAM: u16 = 58_915;
/// Length of the packet header in bytes.
pub const HEADER_LEN: usize = size_of::<PacketHeader>();
/// Length of a fragment header in bytes.
pub const FRAGMENT_HEADER_LEN: usize = size_of::<FragmentHeader>();
/// Event numbers have 24 bits.
const EVENT_MASK: u32 = 0x00FF_FFFF;
/// Flag of a fragment: last event of the burst.
const LAST_OF_BURST: u8 = 0x80;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct PacketHeader {
    first_event: [u8; 3],
    source_id: u8,
    length: U16,
    event_count: u8,
    sub_id: u8,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FragmentHeader {
    /// Length of the fragment, including this header.
    length: U16,
    event_number_low: u8,
    flags: u8,
    timestamp: U32,
}

const _: () = assert!(HEADER_LEN == 8 && FRAGMENT_HEADER_LEN == 8);

/// A packet whose lengths and event numbers were checked.
#[derive(Clone, Copy, Debug)]
pub struct MepPacket<'a> {
    source_id: u8,
    sub_id: u8,
    event_count: u8,
    first_event: u32,
    body: &'a [u8],
}

impl<'a> MepPacket<'a> {
    /// Checks the packet in `bytes`, a whole UDP payload, including the lengths and event numbers
    /// of its fragments, but not their payloads.
    ///
    /// # Errors
    /// A length other than announced, fragments that do not fill the packet exactly, or an event
    /// number out of sequence: a malformed packet, of which nothing can be read.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (header, body) =
            PacketHeader::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
                need: HEADER_LEN,
                have: bytes.len(),
            })?;
        exact_length(usize::from(header.length.get()), bytes.len())?;
        let [low, middle, high] = header.first_event;
        let packet = Self {
            source_id: header.source_id,
            sub_id: header.sub_id,
            event_count: header.event_count,
            first_event: u32::from_le_bytes([low, middle, high, 0]),
            body,
        };
        let mut fragments = packet.fragments();
        for _ in 0..packet.event_count {
            fragments.read()?;
        }
        exact_length(0, fragments.rest.len())?;
        Ok(packet)
    }

    /// Detector that sent the packet.
    #[must_use]
    pub fn source_id(&self) -> u8 {
        self.source_id
    }

    /// Readout board of that detector.
    #[must_use]
    pub fn sub_id(&self) -> u8 {
        self.sub_id
    }

    /// Number of the first event in the burst, 24 bits.
    #[must_use]
    pub fn first_event(&self) -> u32 {
        self.first_event
    }

    /// Number of events, one fragment each.
    #[must_use]
    pub fn event_count(&self) -> u8 {
        self.event_count
    }

    /// The fragments, in the order of their event numbers.
    #[must_use]
    pub fn fragments(&self) -> Fragments<'a> {
        Fragments {
            rest: self.body,
            left: self.event_count,
            event: self.first_event,
        }
    }
}

/// Data of one board for one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Number of the event in the burst, 24 bits.
    pub event: u32,
    /// Slot of 25 ns since the start of the burst.
    pub timestamp: u32,
    /// Whether this is the burst's last event.
    pub last_of_burst: bool,
    /// The detector's data.
    pub payload: &'a [u8],
}

/// Reader of the fragments of a checked packet.
#[derive(Clone, Debug)]
pub struct Fragments<'a> {
    rest: &'a [u8],
    left: u8,
    event: u32,
}

impl<'a> Fragments<'a> {
    /// Reads and checks the next fragment.
    fn read(&mut self) -> Result<Fragment<'a>, FormatError> {
        let have = self.rest.len();
        let truncated = |need| FormatError::Truncated { need, have };
        let (header, _) = FragmentHeader::ref_from_prefix(self.rest)
            .map_err(|_| truncated(FRAGMENT_HEADER_LEN))?;
        let length = usize::from(header.length.get());
        let (fragment, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| truncated(length))?;
        let payload = fragment
            .get(FRAGMENT_HEADER_LEN..)
            .ok_or(FormatError::Malformed("a fragment shorter than its header"))?;
        let event = self.event;
        if header.event_number_low != event as u8 {
            return Err(FormatError::Malformed("an event number out of sequence"));
        }
        self.rest = rest;
        self.event = (event + 1) & EVENT_MASK;
        Ok(Fragment {
            event,
            timestamp: header.timestamp.get(),
            last_of_burst: header.flags & LAST_OF_BURST != 0,
            payload,
        })
    }
}

impl<'a> Iterator for Fragments<'a> {
    type Item = Fragment<'a>;

    fn next(&mut self) -> Option<Fragment<'a>> {
        self.left = self.left.checked_sub(1)?;
        // `MepPacket::parse` accepted these bytes, so this cannot fail.
        self.read().ok()
    }
}

/// Writes one packet into a buffer of the caller: `&mut [u8]`, an array, a packet.
#[derive(Debug)]
pub struct MepWriter<B> {
    buf: B,
    /// Bytes written, including the header.
    len: usize,
    /// Limit on the bytes.
    limit: usize,
    source_id: u8,
    sub_id: u8,
    first_event: u32,
    event_count: u8,
}

impl<B: AsMut<[u8]>> MepWriter<B> {
    /// Begins a packet of board `sub_id` of detector `source_id` in `buf`; its events are numbered
    /// from `first_event` on.
    ///
    /// # Errors
    /// [`WriteError::Buffer`] if the buffer cannot hold the header; [`WriteError::Invalid`] for an
    /// event number of more than 24 bits.
    pub fn new(
        mut buf: B,
        source_id: u8,
        sub_id: u8,
        first_event: u32,
    ) -> Result<Self, WriteError> {
        let limit = buf.as_mut().len().min(usize::from(u16::MAX));
        if limit < HEADER_LEN {
            return Err(WriteError::Buffer {
                need: HEADER_LEN,
                have: limit,
            });
        }
        if first_event > EVENT_MASK {
            return Err(WriteError::Invalid("an event number of more than 24 bits"));
        }
        Ok(Self {
            buf,
            len: HEADER_LEN,
            limit,
            source_id,
            sub_id,
            first_event,
            event_count: 0,
        })
    }

    /// Appends the next event: `timestamp` in slots of 25 ns, and the detector's data.
    ///
    /// # Errors
    /// [`WriteError::Full`] if the event needs the next packet; this one is unchanged.
    pub fn push(
        &mut self,
        timestamp: u32,
        last_of_burst: bool,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        let length = FRAGMENT_HEADER_LEN + payload.len();
        if length > self.limit - self.len || self.event_count == u8::MAX {
            return Err(WriteError::Full);
        }
        let header = FragmentHeader {
            // `limit` fits 16 bits.
            length: (length as u16).into(),
            event_number_low: (self.first_event as u8).wrapping_add(self.event_count),
            flags: if last_of_burst { LAST_OF_BURST } else { 0 },
            timestamp: timestamp.into(),
        };
        let fragment = &mut self.buf.as_mut()[self.len..self.len + length];
        fragment[..FRAGMENT_HEADER_LEN].copy_from_slice(header.as_bytes());
        fragment[FRAGMENT_HEADER_LEN..].copy_from_slice(payload);
        self.len += length;
        self.event_count += 1;
        Ok(())
    }

    /// Writes the header; returns the buffer and the length of the packet in it.
    pub fn finish(mut self) -> (B, usize) {
        let [low, middle, high, _] = self.first_event.to_le_bytes();
        let header = PacketHeader {
            first_event: [low, middle, high],
            source_id: self.source_id,
            length: (self.len as u16).into(),
            event_count: self.event_count,
            sub_id: self.sub_id,
        };
        self.buf.as_mut()[..HEADER_LEN].copy_from_slice(header.as_bytes());
        (self.buf, self.len)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    fn write(first_event: u32, events: &[(u32, bool, Vec<u8>)]) -> Vec<u8> {
        let mut writer = MepWriter::new(vec![0; 9000], 0x1C, 3, first_event).unwrap();
        for (timestamp, last, payload) in events {
            writer.push(*timestamp, *last, payload).unwrap();
        }
        let (mut bytes, len) = writer.finish();
        bytes.truncate(len);
        bytes
    }

    fn example() -> Vec<u8> {
        write(
            0x0002_01FF,
            &[
                (0x1122_3344, false, vec![0xAA; 4]),
                (0x1122_3350, true, vec![]),
            ],
        )
    }

    #[test]
    fn bytes_are_those_of_the_farm() {
        #[rustfmt::skip]
        let expected = [
            0xFF, 0x01, 0x02, 0x1C, 28, 0, 2, 3,
            12, 0, 0xFF, 0x00, 0x44, 0x33, 0x22, 0x11, 0xAA, 0xAA, 0xAA, 0xAA,
            8, 0, 0x00, 0x80, 0x50, 0x33, 0x22, 0x11,
        ];
        assert_eq!(example(), expected);
        let packet = MepPacket::parse(&expected).unwrap();
        assert_eq!((packet.source_id(), packet.sub_id()), (0x1C, 3));
        assert_eq!(
            (packet.first_event(), packet.event_count()),
            (0x0002_01FF, 2)
        );
        let fragments: Vec<_> = packet.fragments().collect();
        assert_eq!(
            fragments,
            [
                Fragment {
                    event: 0x0002_01FF,
                    timestamp: 0x1122_3344,
                    last_of_burst: false,
                    payload: &[0xAA; 4]
                },
                Fragment {
                    event: 0x0002_0200,
                    timestamp: 0x1122_3350,
                    last_of_burst: true,
                    payload: &[]
                },
            ]
        );
    }

    #[test]
    fn event_numbers_wrap_at_24_bits() {
        let bytes = write(0xFF_FFFF, &[(0, false, vec![]), (1, false, vec![])]);
        let events: Vec<_> = MepPacket::parse(&bytes)
            .unwrap()
            .fragments()
            .map(|f| f.event)
            .collect();
        assert_eq!(events, [0xFF_FFFF, 0]);
    }

    #[test]
    fn each_inconsistency_is_refused() {
        let good = example();
        for len in 0..good.len() {
            assert!(matches!(
                MepPacket::parse(&good[..len]),
                Err(FormatError::Truncated { .. })
            ));
            if len >= HEADER_LEN {
                let mut cut = good[..len].to_vec();
                cut[4] = len as u8;
                assert!(MepPacket::parse(&cut).is_err(), "{len}");
            }
        }
        let refused = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            MepPacket::parse(&bytes).unwrap_err()
        };
        assert_eq!(refused(4, 27), FormatError::Trailing { excess: 1 });
        assert_eq!(refused(6, 1), FormatError::Trailing { excess: 8 });
        assert!(matches!(refused(6, 3), FormatError::Truncated { .. }));
        assert!(matches!(refused(8, 7), FormatError::Malformed(_)));
        assert!(matches!(refused(8, 0), FormatError::Malformed(_)));
        assert!(matches!(refused(9, 1), FormatError::Truncated { .. }));
        assert!(matches!(refused(22, 1), FormatError::Malformed(_)));
    }

    #[test]
    fn a_full_packet_says_so() {
        assert!(MepWriter::new([0u8; 7], 0, 0, 0).is_err());
        assert!(matches!(
            MepWriter::new([0u8; 8], 0, 0, 1 << 24),
            Err(WriteError::Invalid(_))
        ));
        let mut writer = MepWriter::new([0u8; 24], 0, 0, 0).unwrap();
        assert_eq!(writer.push(0, false, &[0; 9]), Err(WriteError::Full));
        writer.push(0, false, &[0; 8]).unwrap();
        assert_eq!(writer.push(0, false, &[]), Err(WriteError::Full));
        let (bytes, len) = writer.finish();
        assert_eq!(MepPacket::parse(&bytes[..len]).unwrap().event_count(), 1);
        let mut writer = MepWriter::new(vec![0u8; 9000], 0, 0, 0).unwrap();
        while writer.push(0, false, &[]).is_ok() {}
        let (bytes, len) = writer.finish();
        assert_eq!(MepPacket::parse(&bytes[..len]).unwrap().event_count(), 255);
    }

    proptest! {
        #[test]
        fn round_trip(
            first in 0..=EVENT_MASK,
            events in prop::collection::vec(
                (any::<u32>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..40)), 0..20),
        ) {
            let bytes = write(first, &events);
            let read: Vec<_> = MepPacket::parse(&bytes)
                .unwrap()
                .fragments()
                .map(|f| (f.timestamp, f.last_of_burst, f.payload.to_vec()))
                .collect();
            prop_assert_eq!(read, events);
        }

        #[test]
        fn any_bytes_are_safe(mut bytes in prop::collection::vec(any::<u8>(), 0..80), fix in any::<bool>()) {
            if fix && bytes.len() >= HEADER_LEN {
                let len = bytes.len() as u8;
                bytes[4..7].copy_from_slice(&[len, 0, 1 + len % 3]);
            }
            if let Ok(packet) = MepPacket::parse(&bytes) {
                prop_assert_eq!(packet.fragments().count(), usize::from(packet.event_count()));
            }
        }
    }
}
