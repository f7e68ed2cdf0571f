//! Layout of an announcement and of a buffer (`docs/formats/clop.md`).

use core::mem::offset_of;

use pollux_mempool::time::{Tsc, WireTime};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use crate::event::layouts;
use crate::event::record::{EventFlags, EventKind, EventRecord};

/// Layout of payloads in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each payload follows a record of 16 bytes, which starts at a multiple of 16 bytes.
    Records,
    /// Each payload starts at a multiple of `stride` bytes, and is padded with zeros to the next:
    /// for payloads of one size, without metadata.
    Bare {
        /// Bytes from one payload to the next; the longest payload.
        stride: usize,
    },
}

/// Size of the record in front of a payload, and the alignment of records.
pub(super) const RECORD: usize = size_of::<Record>();

impl Framing {
    /// Bytes that a payload of `len` bytes takes in a buffer; `None` if the length is invalid.
    #[inline]
    pub(super) fn space(self, len: usize) -> Option<usize> {
        match self {
            Self::Records => len.checked_add(RECORD)?.checked_next_multiple_of(RECORD),
            Self::Bare { stride } => (len <= stride).then_some(stride),
        }
    }

    /// Bytes that the shortest payload takes.
    #[inline]
    pub(super) fn least(self) -> usize {
        match self {
            Self::Records => RECORD,
            Self::Bare { stride } => stride,
        }
    }

    /// Bytes of the longest payload in a buffer of `size` bytes.
    pub(super) fn longest(self, size: usize) -> usize {
        match self {
            Self::Records => size - RECORD,
            Self::Bare { stride } => stride,
        }
    }
}

/// The record in front of a payload.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Record {
    length: U32,
    source_port: U16,
    flags: U16,
    sequence: U32,
    stamp: U32,
}

// As in the layout table of the card's gateware.
const _: () = {
    assert!(size_of::<Record>() == layouts::CLOP_RECORD_SIZE);
    assert!(offset_of!(Record, length) == layouts::CLOP_RECORD_LENGTH);
    assert!(offset_of!(Record, source_port) == layouts::CLOP_RECORD_SOURCE_PORT);
    assert!(offset_of!(Record, flags) == layouts::CLOP_RECORD_FLAGS);
    assert!(offset_of!(Record, sequence) == layouts::CLOP_RECORD_SEQUENCE);
    assert!(offset_of!(Record, stamp) == layouts::CLOP_RECORD_STAMP);
};

/// Record flag: the stamp is valid.
const STAMPED: u16 = 1;

impl Record {
    #[inline]
    pub(super) fn new(
        length: usize,
        source_port: u16,
        sequence: u32,
        wire: Option<WireTime>,
    ) -> Self {
        Self {
            length: (length as u32).into(),
            source_port: source_port.into(),
            flags: if wire.is_some() { STAMPED } else { 0 }.into(),
            sequence: sequence.into(),
            stamp: (wire.unwrap_or_default().0 as u32).into(),
        }
    }

    /// The full time stamp, of which the record has the lower half: the one nearest to `base`.
    fn wire(&self, base: Option<WireTime>) -> Option<WireTime> {
        let base = base.filter(|_| self.flags.get() & STAMPED != 0)?.0;
        let ahead = self.stamp.get().wrapping_sub(base as u32) as i32;
        Some(WireTime(base.wrapping_add_signed(ahead.into())))
    }
}

/// Whether a record can represent `wire` in a buffer whose time stamps are relative to `base`.
#[inline]
pub(super) fn within_reach(wire: WireTime, base: WireTime) -> bool {
    i32::try_from(wire.0.wrapping_sub(base.0) as i64).is_ok()
}

/// Why a buffer was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClopReason {
    /// The next payload did not fit, or no payload would.
    Full,
    /// Its oldest payload reached the time-out.
    Timeout,
    /// The writer was flushed.
    Flush,
}

/// The announcement of a buffer, as encoded in an [`EventRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClopEvent {
    /// The stream.
    pub stream: u16,
    /// Number of the buffer in its list.
    pub buffer: u32,
    /// Number of the announcement in its stream, wrapping.
    pub serial: u32,
    /// Bytes that are filled.
    pub bytes: u32,
    /// Payloads in them.
    pub payloads: u32,
    /// Sequence number of the first payload.
    pub first: u32,
    /// Sequence number of the last payload. Where `last - first + 1` (wrapping) is more than
    /// `payloads`, the others were refused.
    pub last: u32,
    /// Why the buffer was announced.
    pub reason: ClopReason,
    /// Wire time of the first payload that has one.
    pub wire: Option<WireTime>,
    /// When the first payload arrived, on the writer's clock.
    pub oldest: Tsc,
}

/// The payload of the event.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Body {
    payloads: U32,
    first: U32,
    last: U32,
    reason: U32,
    oldest: U64,
    /// For the stage time stamps of hardware; zero from software.
    stages: [U32; 4],
}

// As in the layout table of the card's gateware.
const _: () = {
    assert!(size_of::<Body>() == layouts::CLOP_BUFFER_SIZE);
    assert!(offset_of!(Body, payloads) == layouts::CLOP_BUFFER_PAYLOADS);
    assert!(offset_of!(Body, first) == layouts::CLOP_BUFFER_FIRST);
    assert!(offset_of!(Body, last) == layouts::CLOP_BUFFER_LAST);
    assert!(offset_of!(Body, reason) == layouts::CLOP_BUFFER_REASON);
    assert!(offset_of!(Body, oldest) == layouts::CLOP_BUFFER_OLDEST);
    assert!(offset_of!(Body, stages) == layouts::CLOP_BUFFER_STAGES);
};

impl From<&ClopEvent> for EventRecord {
    #[inline]
    fn from(event: &ClopEvent) -> Self {
        let body = Body {
            payloads: event.payloads.into(),
            first: event.first.into(),
            last: event.last.into(),
            reason: (event.reason as u32).into(),
            oldest: event.oldest.0.into(),
            stages: [U32::ZERO; 4],
        };
        Self {
            wire: event.wire.unwrap_or_default(),
            index: event.buffer,
            length: event.bytes,
            payload: transmute!(body),
            sequence: event.serial,
            stream: event.stream,
            kind: EventKind::CLOP_BUFFER,
            flags: if event.wire.is_some() {
                EventFlags::WIRE_TIME
            } else {
                EventFlags::default()
            },
        }
    }
}

impl ClopEvent {
    /// Decodes an event; `None` if it is of another kind or its reason is unknown. Nothing else is
    /// validated: [`ClopReader::accept`](super::ClopReader::accept) does that.
    #[must_use]
    #[inline]
    pub fn from_record(record: &EventRecord) -> Option<Self> {
        if record.kind != EventKind::CLOP_BUFFER {
            return None;
        }
        let body: Body = transmute!(record.payload);
        Some(Self {
            stream: record.stream,
            buffer: record.index,
            serial: record.sequence,
            bytes: record.length,
            payloads: body.payloads.get(),
            first: body.first.get(),
            last: body.last.get(),
            reason: match body.reason.get() {
                0 => ClopReason::Full,
                1 => ClopReason::Timeout,
                2 => ClopReason::Flush,
                _ => return None,
            },
            wire: record
                .flags
                .contains(EventFlags::WIRE_TIME)
                .then_some(record.wire),
            oldest: Tsc(body.oldest.get()),
        })
    }
}

/// Content of the record in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClopRecord {
    /// UDP port that the payload was sent from.
    pub source_port: u16,
    /// Number of the payload among those offered to the list, wrapping; a gap is payloads that
    /// were refused.
    pub sequence: u32,
    /// External time stamp, if it has one.
    pub wire: Option<WireTime>,
}

/// A payload in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClopPayload<'a> {
    /// Its bytes; with bare framing those of a whole stride.
    pub data: &'a [u8],
    /// Its record; `None` with bare framing.
    pub record: Option<ClopRecord>,
}

/// Error: a record or a bare payload extends beyond the end of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the payload at byte {offset} of a buffer goes on behind its {length} bytes: a fault of the writer or device"
)]
pub struct MalformedRecord {
    /// Start of the record or payload.
    pub offset: usize,
    /// Filled bytes of the buffer.
    pub length: usize,
}

/// The payloads of a buffer, in order. After an error there are no more.
#[derive(Clone, Debug)]
pub struct Payloads<'a> {
    bytes: &'a [u8],
    offset: usize,
    framing: Framing,
    base: Option<WireTime>,
}

impl<'a> Payloads<'a> {
    /// Parses the filled bytes of a buffer, whose content is not trusted. `base` is the wire time
    /// of the announcement.
    #[must_use]
    pub fn new(bytes: &'a [u8], framing: Framing, base: Option<WireTime>) -> Self {
        Self {
            bytes,
            offset: 0,
            framing,
            base,
        }
    }

    /// Start of the next payload, in bytes from the start of the buffer.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The same payloads, from `offset` on.
    #[inline]
    pub(super) fn from(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    #[inline]
    fn parse(&self) -> Option<(ClopPayload<'a>, usize)> {
        let rest = self.bytes.get(self.offset..)?;
        match self.framing {
            Framing::Bare { stride } => Some((
                ClopPayload {
                    data: rest.get(..stride)?,
                    record: None,
                },
                stride,
            )),
            Framing::Records => {
                let (record, rest) = Record::ref_from_prefix(rest).ok()?;
                let data = rest.get(..record.length.get() as usize)?;
                let content = ClopRecord {
                    source_port: record.source_port.get(),
                    sequence: record.sequence.get(),
                    wire: record.wire(self.base),
                };
                Some((
                    ClopPayload {
                        data,
                        record: Some(content),
                    },
                    self.framing.space(data.len())?,
                ))
            }
        }
    }
}

impl<'a> Iterator for Payloads<'a> {
    type Item = Result<ClopPayload<'a>, MalformedRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (offset, length) = (self.offset, self.bytes.len());
        if offset >= length {
            return None;
        }
        let parsed = self.parse();
        // A stride of zero would never end; only a caller of `new` can pass one.
        let step = parsed.map_or(length, |(_, space)| space.max(1));
        self.offset = offset.saturating_add(step);
        Some(
            parsed
                .map(|(payload, _)| payload)
                .ok_or(MalformedRecord { offset, length }),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_is_as_documented() {
        let record = Record::new(
            0x0102_0304,
            0x0506,
            0x0708_090a,
            Some(WireTime(0xffff_0b0c_0d0e)),
        );
        let expected = [
            4, 3, 2, 1, 6, 5, 1, 0, 0x0a, 9, 8, 7, 0x0e, 0x0d, 0x0c, 0x0b,
        ];
        assert_eq!(record.as_bytes(), expected);
    }

    #[test]
    fn an_announcement_is_as_documented() {
        let event = ClopEvent {
            stream: 7,
            buffer: 3,
            serial: 19,
            bytes: 4096,
            payloads: 0x11,
            first: 0x22,
            last: 0x33,
            reason: ClopReason::Timeout,
            wire: Some(WireTime(5)),
            oldest: Tsc(0x44),
        };
        let record = EventRecord::from(&event);
        assert_eq!(
            (record.kind, record.stream, record.sequence),
            (EventKind(1), 7, 19)
        );
        assert_eq!(
            (record.index, record.length, record.wire),
            (3, 4096, WireTime(5))
        );
        assert_eq!(record.flags, EventFlags(1));
        let filled: Vec<_> = record
            .payload
            .iter()
            .enumerate()
            .filter(|(_, b)| **b != 0)
            .collect();
        assert_eq!(
            filled,
            [(0, &0x11), (4, &0x22), (8, &0x33), (12, &1), (16, &0x44)]
        );
        assert_eq!(ClopEvent::from_record(&record), Some(event));
        assert_eq!(
            ClopEvent::from_record(&EventRecord {
                kind: EventKind(2),
                ..record
            }),
            None
        );
        let mut odd = record;
        odd.payload[12] = 3;
        assert_eq!(ClopEvent::from_record(&odd), None);
    }

    #[test]
    fn a_stamp_is_extended_to_the_nearest_time() {
        let base = WireTime(0x7_0000_0010);
        for wire in [
            base.0,
            base.0 - 0x20,
            base.0 + 0x7fff_ffff,
            base.0 - 0x8000_0000,
        ] {
            let wire = WireTime(wire);
            assert!(within_reach(wire, base));
            assert_eq!(
                Record::new(0, 0, 0, Some(wire)).wire(Some(base)),
                Some(wire)
            );
        }
        assert!(!within_reach(WireTime(base.0 + 0x8000_0000), base));
        assert!(!within_reach(WireTime(base.0 - 0x8000_0001), base));
        assert_eq!(Record::new(0, 0, 0, None).wire(Some(base)), None);
        assert_eq!(Record::new(0, 0, 0, Some(base)).wire(None), None);
    }

    proptest! {
        /// With arbitrary bytes of a device, every payload lies in the buffer, behind the one
        /// before, and the iteration ends.
        #[test]
        fn any_bytes_are_read_to_their_end(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
            lengths in proptest::collection::vec(0_u8..40, 0..20),
            stride in prop_oneof![Just(None), (0_usize..200).prop_map(Some)],
        ) {
            // Short lengths at the positions of records, so that some bytes are well-formed.
            let mut at = 0;
            for length in lengths {
                if let Some(field) = bytes.get_mut(at..at + 4) {
                    field.copy_from_slice(&u32::from(length).to_le_bytes());
                }
                at += Framing::Records.space(length.into()).unwrap();
            }
            let framing = stride.map_or(Framing::Records, |stride| Framing::Bare { stride });
            let mut payloads = Payloads::new(&bytes, framing, Some(WireTime(0)));
            let mut end = bytes.as_ptr().addr();
            let limit = end + bytes.len();
            let mut rounds = 0;
            while let Some(payload) = payloads.next() {
                rounds += 1;
                prop_assert!(rounds <= bytes.len());
                match payload {
                    Ok(payload) => {
                        prop_assert!(payload.data.as_ptr().addr() >= end);
                        end = payload.data.as_ptr().addr() + payload.data.len();
                        prop_assert!(end <= limit);
                    }
                    Err(malformed) => {
                        prop_assert_eq!(malformed.length, bytes.len());
                        prop_assert!(payloads.next().is_none());
                    }
                }
            }
        }
    }
}
