//! The compressed RICH hit container, version 1 (docs/formats/rich-hits.md).
//!
//! One frame is one UDP payload: a header of 24 bytes, then `event_count` events. Within an
//! event every variable-length number comes before the fixed-length fine times, each number
//! takes one or two bytes, and *gaps* rather than differences are stored: index i is
//! index i-1 plus one plus gap i. So the indices of any gaps ascend strictly, and a decoder has
//! one range check an event instead of one a hit, and no data-dependent branch but the loop.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FormatError, WriteError, exact_length};
use crate::rich::Hit;
use crate::rich::geometry::PMS;

mod decode;

use decode::Fill;
pub use decode::{Decoded, EventSink};
use pollux_pipelines::simd::Simd;

/// First four bytes of a frame.
pub const MAGIC: [u8; 4] = *b"PXRH";
/// The version that this module reads and writes.
pub const VERSION: u8 = 1;
/// Bytes of the frame header.
pub const HEADER_LEN: usize = size_of::<Header>();
/// Largest frame in bytes: the UDP payload of an Ethernet frame of 1500 bytes over IPv4.
pub const MAX_FRAME: usize = 1472;
/// Most hits of one event in one frame (the count is one byte).
pub const MAX_HITS: usize = 255;
/// Largest gap: two bytes of seven bits each.
pub const MAX_GAP: u16 = 0x3FFF;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    magic: [u8; 4],
    version: u8,
    source_id: u8,
    sub_id: u8,
    reserved: u8,
    sequence: U32,
    event_count: U16,
    payload_len: U16,
    first_timestamp: U64,
}

const _: () = assert!(HEADER_LEN == 24);

/// A frame that was checked to its last byte.
#[derive(Clone, Copy, Debug)]
pub struct HitsFrame<'a> {
    source_id: u8,
    sub_id: u8,
    sequence: u32,
    event_count: u16,
    first_timestamp: u64,
    payload: &'a [u8],
}

impl<'a> HitsFrame<'a> {
    /// Checks the frame in `bytes`, a whole UDP payload, header and every event.
    ///
    /// # Errors
    /// [`FormatError::BadVersion`] for another version; any other error is a malformed frame.
    /// No event of a refused frame can be read.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        HitsHeader::parse(bytes)?.check()
    }

    /// Checks the frame in `bytes`, a whole UDP payload, and shows all its events to `sink`, in one
    /// pass by `simd`.
    ///
    /// # Errors
    /// As of [`HitsFrame::parse`]; `sink` was told to refuse what it was shown then.
    #[inline]
    pub fn decode(
        bytes: &'a [u8],
        simd: Simd,
        sink: &mut impl EventSink,
    ) -> Result<Self, FormatError> {
        HitsHeader::parse(bytes)?.decode(simd, sink)
    }

    fn check_events(&self) -> Result<(), FormatError> {
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

    /// Number of this frame among all frames of its board, from 0, wrapping after 2^32 - 1.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Timestamp of the first event, in slots of 25 ns; without meaning where there is none.
    #[must_use]
    pub fn first_timestamp(&self) -> u64 {
        self.first_timestamp
    }

    /// Number of events.
    #[must_use]
    pub fn event_count(&self) -> u16 {
        self.event_count
    }

    /// Reads the events in their order, which is that of their timestamps.
    #[must_use]
    pub fn events(&self) -> Events<'a> {
        Events {
            rest: self.payload,
            left: self.event_count,
            next_timestamp: self.first_timestamp,
        }
    }
}

/// A frame of which the header was checked, and that its length is the frame's; not yet its events.
#[derive(Clone, Copy, Debug)]
pub struct HitsHeader<'a>(HitsFrame<'a>);

impl<'a> HitsHeader<'a> {
    /// Checks the header of the frame in `bytes`, a whole UDP payload.
    ///
    /// # Errors
    /// As of [`HitsFrame::parse`], if it is the header that is wrong.
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

    /// As [`HitsFrame::decode`].
    ///
    /// # Errors
    /// As of [`HitsFrame::parse`].
    #[inline]
    pub fn decode(
        self,
        simd: Simd,
        sink: &mut impl EventSink,
    ) -> Result<HitsFrame<'a>, FormatError> {
        let frame = &self.0;
        simd.decode(Fill { frame, to: sink })?;
        Ok(self.0)
    }

    /// Readout board that sent the frame.
    #[must_use]
    pub fn sub_id(&self) -> u8 {
        self.0.sub_id
    }

    /// Number of events, and how many hits there are at most in all of them.
    #[must_use]
    pub fn bounds(&self) -> (usize, usize) {
        let events = usize::from(self.0.event_count);
        // An event takes two bytes at least, and so does a hit.
        (events, (self.0.payload.len() / 2).saturating_sub(events))
    }
}

/// Reader of the events of a checked frame.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    rest: &'a [u8],
    left: u16,
    /// Lowest timestamp that the next event may have.
    next_timestamp: u64,
}

impl Events<'_> {
    /// Expands the next event into `hits`; returns its timestamp (slots of 25 ns, ascending
    /// strictly) and its hits (photomultiplier indices ascending strictly, possibly none).
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

    /// Events not yet read.
    #[must_use]
    pub fn remaining(&self) -> u16 {
        self.left
    }
}

/// Reads one gap code from the first bytes of a pair: the gap and the code's length.
///
/// Bit 7 of the first byte says that the second, whose own bit 7 must be clear, belongs to it.
/// `ext` keeps that bit so that the caller can look at all second bytes of an event at once.
#[inline(always)]
fn gap_code(pair: [u8; 2]) -> (u16, usize, u8) {
    let long = pair[0] >> 7;
    let ext = pair[1] & 0u8.wrapping_sub(long);
    (
        u16::from(pair[0] & 0x7F) | (u16::from(ext) << 7),
        1 + usize::from(long),
        ext,
    )
}

/// Walks one event at the start of `bytes`, calling `put(i, pm)` for each index; returns its
/// timestamp gap and its length in bytes.
///
/// The fine times behind the indices make every index at least two bytes from the event's
/// end, so a pair can be loaded for each without asking first how long its code is.
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

/// Writes one frame into a buffer of the caller's: `&mut [u8]`, an array, a packet.
#[derive(Debug)]
pub struct HitsWriter<B> {
    buf: B,
    /// Bytes written, header included.
    len: usize,
    /// Bytes that may be written.
    limit: usize,
    source_id: u8,
    sub_id: u8,
    sequence: u32,
    event_count: u16,
    first_timestamp: u64,
    /// Lowest timestamp that the next event may have.
    next_timestamp: u64,
}

impl<B: AsMut<[u8]>> HitsWriter<B> {
    /// Begins frame number `sequence` of board `sub_id` of detector `source_id` in `buf`; the
    /// frame grows to the buffer's length or to [`MAX_FRAME`], whichever is less.
    ///
    /// # Errors
    /// [`WriteError::Buffer`] when the buffer cannot hold the header.
    pub fn new(mut buf: B, source_id: u8, sub_id: u8, sequence: u32) -> Result<Self, WriteError> {
        let limit = buf.as_mut().len().min(MAX_FRAME);
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
            sequence,
            event_count: 0,
            first_timestamp: 0,
            next_timestamp: 0,
        })
    }

    /// Appends one event: `timestamp` in slots of 25 ns, above that of the event before;
    /// `hits` sorted by photomultiplier, each once.
    ///
    /// # Errors
    /// [`WriteError::Full`] when the event needs the next frame: no room, or further than
    /// [`MAX_GAP`] slots (0.41 ms) from the event before, which no trigger should wait for.
    /// [`WriteError::Invalid`] when the event breaks a rule above. The frame is unchanged.
    pub fn push(&mut self, timestamp: u64, hits: &[Hit]) -> Result<(), WriteError> {
        let timestamp_gap = if self.event_count == 0 {
            0
        } else {
            timestamp
                .checked_sub(self.next_timestamp)
                .ok_or(WriteError::Invalid("timestamps must ascend strictly"))?
        };
        if timestamp == u64::MAX {
            return Err(WriteError::Invalid(
                "the timestamp leaves no room for another",
            ));
        }
        let count = u8::try_from(hits.len())
            .map_err(|_| WriteError::Invalid("more than 255 hits in an event"))?;
        let timestamp_gap = u16::try_from(timestamp_gap)
            .ok()
            .filter(|&gap| gap <= MAX_GAP && self.event_count < u16::MAX)
            .ok_or(WriteError::Full)?;

        let start = self.len;
        let result = self.write_event(timestamp_gap, count, hits);
        if result.is_err() {
            self.len = start;
            return result;
        }
        if self.event_count == 0 {
            self.first_timestamp = timestamp;
        }
        self.next_timestamp = timestamp + 1;
        self.event_count += 1;
        Ok(())
    }

    fn write_event(&mut self, gap: u16, count: u8, hits: &[Hit]) -> Result<(), WriteError> {
        self.put_gap(gap)?;
        self.put(count)?;
        let mut next = 0u16;
        for hit in hits {
            if usize::from(hit.pm) >= PMS {
                return Err(WriteError::Invalid(
                    "a photomultiplier index above the last",
                ));
            }
            let gap = hit.pm.checked_sub(next).ok_or(WriteError::Invalid(
                "hits must be sorted, each photomultiplier once",
            ))?;
            self.put_gap(gap)?;
            next = hit.pm + 1;
        }
        hits.iter().try_for_each(|hit| {
            let outside = |_| WriteError::Invalid("a time outside the event's slot");
            self.put(u8::try_from(hit.fine).map_err(outside)?)
        })
    }

    fn put_gap(&mut self, gap: u16) -> Result<(), WriteError> {
        if gap < 0x80 {
            return self.put(gap as u8);
        }
        self.put(0x80 | (gap & 0x7F) as u8)?;
        self.put((gap >> 7) as u8)
    }

    fn put(&mut self, byte: u8) -> Result<(), WriteError> {
        if self.len == self.limit {
            return Err(WriteError::Full);
        }
        self.buf.as_mut()[self.len] = byte;
        self.len += 1;
        Ok(())
    }

    /// Events written so far.
    #[must_use]
    pub fn event_count(&self) -> u16 {
        self.event_count
    }

    /// Timestamp of the first event; `None` while the frame is empty.
    #[must_use]
    pub fn first_timestamp(&self) -> Option<u64> {
        (self.event_count > 0).then_some(self.first_timestamp)
    }

    /// Bytes written so far, header included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the frame has no event yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.event_count == 0
    }

    /// Writes the header and returns the buffer with the length of the frame in it.
    pub fn finish(mut self) -> (B, usize) {
        let header = Header {
            magic: MAGIC,
            version: VERSION,
            source_id: self.source_id,
            sub_id: self.sub_id,
            reserved: 0,
            sequence: self.sequence.into(),
            event_count: self.event_count.into(),
            // `limit` <= MAX_FRAME, so the payload length fits 16 bits.
            payload_len: ((self.len - HEADER_LEN) as u16).into(),
            first_timestamp: self.first_timestamp.into(),
        };
        self.buf.as_mut()[..HEADER_LEN].copy_from_slice(header.as_bytes());
        (self.buf, self.len)
    }
}

#[cfg(test)]
mod tests;
