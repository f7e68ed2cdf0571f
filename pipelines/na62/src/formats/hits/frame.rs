//! Parser of a frame of hits: a checked frame, read event by event.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::formats::{FormatError, exact_length};
use crate::rich::Hit;
use crate::rich::geometry::PMS;

/// First four bytes of a frame.
pub const MAGIC: [u8; 4] = *b"PXRH";
/// The version that this module reads and writes.
pub const VERSION: u8 = 1;
/// Length of the frame header in bytes.
pub const HEADER_LEN: usize = size_of::<Header>();
/// Maximum length of a frame in bytes: the UDP payload of an Ethernet frame of 1500 bytes over
/// IPv4.
pub const MAX_FRAME: usize = 1472;
/// Maximum number of hits of one event in one frame (the count is one byte).
pub const MAX_HITS: usize = 255;
/// Largest gap: two bytes of seven bits each.
pub const MAX_GAP: u16 = 0x3FFF;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: [u8; 4],
    pub(super) version: u8,
    pub(super) source_id: u8,
    pub(super) sub_id: u8,
    pub(super) reserved: u8,
    pub(super) sequence: U32,
    pub(super) event_count: U16,
    pub(super) payload_len: U16,
    pub(super) first_timestamp: U64,
}

const _: () = assert!(HEADER_LEN == 24);

/// A frame that was checked completely.
#[derive(Clone, Copy, Debug)]
pub struct HitsFrame<'a> {
    source_id: u8,
    sub_id: u8,
    sequence: u32,
    pub(super) event_count: u16,
    pub(super) first_timestamp: u64,
    pub(super) payload: &'a [u8],
}

impl<'a> HitsFrame<'a> {
    /// Checks the frame in `bytes`, a whole UDP payload: the header and every event.
    ///
    /// # Errors
    /// [`FormatError::BadVersion`] for another version; any other error is a malformed frame. No
    /// event of a refused frame can be read.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        HitsHeader::parse(bytes)?.check()
    }

    pub(super) fn check_events(&self) -> Result<(), FormatError> {
        let mut rest = self.payload;
        let mut slots = 0u64;
        for n in 0..self.event_count {
            let (gap, event) = read_event(rest, |_, _| ())?;
            if n == 0 && gap != 0 {
                return Err(FormatError::Malformed(
                    "the first event is not at the first timestamp",
                ));
            }
            slots += u64::from(n != 0) + u64::from(gap);
            rest = &rest[event..];
        }
        if self.first_timestamp.checked_add(slots).is_none() {
            return Err(FormatError::Malformed("the timestamps pass 2^64"));
        }
        exact_length(0, rest.len())
    }

    /// Detector that sent the frame; the RICH is 0x1C.
    #[must_use]
    pub fn source_id(&self) -> u8 {
        self.source_id
    }

    /// Readout board of that detector.
    #[must_use]
    pub fn sub_id(&self) -> u8 {
        self.sub_id
    }

    /// Sequence number of this frame among all frames of its board, from 0, wrapping after 2^32 -
    /// 1.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Timestamp of the first event, in slots of 25 ns; meaningless in a frame without events.
    #[must_use]
    pub fn first_timestamp(&self) -> u64 {
        self.first_timestamp
    }

    /// Number of events.
    #[must_use]
    pub fn event_count(&self) -> u16 {
        self.event_count
    }

    /// Reads the events in order, which is the order of their timestamps.
    #[must_use]
    pub fn events(&self) -> Events<'a> {
        Events {
            rest: self.payload,
            left: self.event_count,
            next_timestamp: self.first_timestamp,
        }
    }
}

/// A frame whose header and length were checked, but not its events.
#[derive(Clone, Copy, Debug)]
pub struct HitsHeader<'a>(pub(super) HitsFrame<'a>);

impl<'a> HitsHeader<'a> {
    /// Checks the header of the frame in `bytes`, a whole UDP payload.
    ///
    /// # Errors
    /// As of [`HitsFrame::parse`], for errors of the header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (header, payload) =
            Header::ref_from_prefix(bytes).map_err(|_| FormatError::Truncated {
                need: HEADER_LEN,
                have: bytes.len(),
            })?;
        if header.magic != MAGIC {
            return Err(FormatError::Malformed("the magic is not PXRH"));
        }
        if header.version != VERSION {
            return Err(FormatError::BadVersion {
                found: header.version,
                expected: VERSION,
            });
        }
        if header.reserved != 0 {
            return Err(FormatError::Malformed("the reserved byte is not zero"));
        }
        exact_length(
            HEADER_LEN + usize::from(header.payload_len.get()),
            bytes.len(),
        )?;

        Ok(Self(HitsFrame {
            source_id: header.source_id,
            sub_id: header.sub_id,
            sequence: header.sequence.get(),
            event_count: header.event_count.get(),
            first_timestamp: header.first_timestamp.get(),
            payload,
        }))
    }

    /// Checks every event.
    ///
    /// # Errors
    /// As of [`HitsFrame::parse`].
    #[inline]
    pub fn check(self) -> Result<HitsFrame<'a>, FormatError> {
        self.0.check_events()?;
        Ok(self.0)
    }

    /// Readout board that sent the frame.
    #[must_use]
    pub fn sub_id(&self) -> u8 {
        self.0.sub_id
    }

    /// Number of events, and the maximum number of hits in all of them.
    #[must_use]
    pub fn bounds(&self) -> (usize, usize) {
        let events = usize::from(self.0.event_count);
        // An event takes at least two bytes, and so does a hit.
        (events, (self.0.payload.len() / 2).saturating_sub(events))
    }
}

/// Reader of the events of a checked frame.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    pub(super) rest: &'a [u8],
    pub(super) left: u16,
    /// Lowest timestamp that the next event may have.
    pub(super) next_timestamp: u64,
}

impl Events<'_> {
    /// Expands the next event into `hits`; returns its timestamp (slots of 25 ns, strictly
    /// ascending) and its hits (photomultiplier indices strictly ascending, possibly none).
    #[inline]
    pub fn next_into<'h>(&mut self, hits: &'h mut [Hit; MAX_HITS]) -> Option<(u64, &'h [Hit])> {
        self.left = self.left.checked_sub(1)?;
        // `parse` accepted these bytes, so `read_event` cannot fail here.
        let (gap, used) = read_event(self.rest, |i, pm| hits[i].pm = pm).ok()?;
        let (event, rest) = self.rest.split_at(used);
        self.rest = rest;
        let count = usize::from(event[1 + usize::from(event[0] >> 7)]);
        let hits = &mut hits[..count];
        for (hit, &fine) in hits.iter_mut().zip(&event[used - count..]) {
            hit.fine = u16::from(fine);
        }
        let timestamp = self.next_timestamp.wrapping_add(u64::from(gap));
        self.next_timestamp = timestamp.wrapping_add(1);
        Some((timestamp, hits))
    }

    /// Number of events not yet read.
    #[must_use]
    pub fn remaining(&self) -> u16 {
        self.left
    }
}

/// Reads one gap code from the first bytes of a pair: the gap and the code's length.
///
/// Bit 7 of the first byte means that the second, whose own bit 7 must be clear, belongs to the
/// code. `ext` keeps that bit so that the caller can check all second bytes of an event at once.
#[inline(always)]
pub(super) fn gap_code(pair: [u8; 2]) -> (u16, usize, u8) {
    let long = pair[0] >> 7;
    let ext = pair[1] & 0u8.wrapping_sub(long);
    (
        u16::from(pair[0] & 0x7F) | (u16::from(ext) << 7),
        1 + usize::from(long),
        ext,
    )
}

/// Parses one event at the start of `bytes` and calls `put(i, pm)` for each index; returns its
/// timestamp gap and its length in bytes.
///
/// The fine times after the indices ensure that every index is at least two bytes before the
/// event's end, so a pair can be loaded for each without knowing the length of its code.
#[inline(always)]
fn read_event(bytes: &[u8], mut put: impl FnMut(usize, u16)) -> Result<(u16, usize), FormatError> {
    let truncated = |need| FormatError::Truncated {
        need,
        have: bytes.len(),
    };
    let Some(&pair) = bytes.first_chunk::<2>() else {
        return Err(truncated(2));
    };
    let (timestamp_gap, mut at, mut seen) = gap_code(pair);
    let Some(&count) = bytes.get(at) else {
        return Err(truncated(at + 1));
    };
    at += 1;
    // 0..=MAX_HITS; u32 holds the largest sum of gaps, 255 * 2^15.
    let mut next = 0u32;
    for i in 0..usize::from(count) {
        let Some(&pair) = bytes.get(at..).and_then(<[u8]>::first_chunk::<2>) else {
            return Err(truncated(at + 2));
        };
        let (gap, len, ext) = gap_code(pair);
        seen |= ext;
        next += u32::from(gap);
        put(i, next as u16);
        next += 1;
        at += len;
    }
    at += usize::from(count);
    if at > bytes.len() {
        return Err(truncated(at));
    }
    if seen & 0x80 != 0 {
        return Err(FormatError::Malformed("a gap code of more than two bytes"));
    }
    if next > PMS as u32 {
        return Err(FormatError::Malformed(
            "a photomultiplier index above the last",
        ));
    }
    Ok((timestamp_gap, at))
}
