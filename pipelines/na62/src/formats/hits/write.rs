//! Writer of a frame of hits.

use zerocopy::IntoBytes;

use super::frame::{HEADER_LEN, Header, MAGIC, MAX_FRAME, MAX_GAP, VERSION};
use crate::formats::WriteError;
use crate::rich::Hit;
use crate::rich::geometry::PMS;

/// Writes one frame into a buffer of the caller: `&mut [u8]`, an array, a packet.
#[derive(Debug)]
pub struct HitsWriter<B> {
    buf: B,
    /// Bytes written, including the header.
    len: usize,
    /// Limit on the bytes.
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
    /// Begins frame number `sequence` of board `sub_id` of detector `source_id` in `buf`. The frame
    /// grows up to the buffer's length or [`MAX_FRAME`], whichever is less.
    ///
    /// # Errors
    /// [`WriteError::Buffer`] if the buffer cannot hold the header.
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

    /// Appends one event: `timestamp` in slots of 25 ns, greater than that of the previous event;
    /// `hits` sorted by photomultiplier, each once.
    ///
    /// # Errors
    /// [`WriteError::Full`] if the event needs the next frame: it does not fit, or it is more than
    /// [`MAX_GAP`] slots (0.41 ms) after the previous event, so long that no trigger should wait
    /// for it. [`WriteError::Invalid`] if the event violates a rule above. The frame is unchanged.
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

    /// Number of events written so far.
    #[must_use]
    pub fn event_count(&self) -> u16 {
        self.event_count
    }

    /// Timestamp of the first event; `None` while the frame is empty.
    #[must_use]
    pub fn first_timestamp(&self) -> Option<u64> {
        (self.event_count > 0).then_some(self.first_timestamp)
    }

    /// Bytes written so far, including the header.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the frame has no event yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.event_count == 0
    }

    /// Writes the header; returns the buffer and the length of the frame in it.
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
