//! Reader of a CLOP: receives the announced buffers.

use std::fmt;
use std::sync::Arc;

use super::format::{ClopEvent, Payloads};
use super::shared::{Place, Shared};
use crate::event::record::EventRecord;

/// Error: an event is not the next announcement of this list. It is of another list, repeated, out
/// of sequence, or forged by a faulty device. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadEvent {
    /// An event of another kind or stream.
    #[error("an event of kind {kind} and stream {stream} is no announcement in stream {expected}")]
    NotMine {
        /// Kind of the event.
        kind: u8,
        /// Stream of the event.
        stream: u16,
        /// Stream of the list.
        expected: u16,
    },
    /// Not the next buffer, or one that was not given to the reader.
    #[error(
        "announcement {serial} of buffer {buffer}, but the next to come is announcement \
         {expected_serial} of buffer {expected_buffer}"
    )]
    OutOfTurn {
        /// Number of the announcement.
        serial: u32,
        /// Number of the buffer.
        buffer: u32,
        /// Number of the next announcement.
        expected_serial: u32,
        /// Number of the next buffer.
        expected_buffer: usize,
    },
    /// More bytes than the size of a buffer.
    #[error("{bytes} B announced in a buffer of {size} B")]
    TooLong {
        /// Bytes announced.
        bytes: u32,
        /// Bytes in a buffer.
        size: usize,
    },
}

/// Receives the announced buffers of one stream, in one poll loop.
pub struct ClopReader {
    pub(super) shared: Arc<Shared>,
    /// The next buffer to be announced.
    pub(super) place: Place,
}

impl ClopReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            place: Place::default(),
        }
    }

    /// The stream whose announcements this reader accepts.
    #[must_use]
    pub fn stream(&self) -> u16 {
        self.shared.stream
    }

    /// Takes the buffer that an event announces. Every announcement of the stream must be passed
    /// here, in order: buffers are announced and refilled in turn.
    ///
    /// # Errors
    /// [`BadEvent`], whatever the record contains, unless it is the next announcement.
    #[inline]
    pub fn accept(&mut self, record: &EventRecord) -> Result<ClopBuffer, BadEvent> {
        let is_ours = self.shared.is_readers(self.place);
        self.take(record, is_ours)
    }

    /// Takes the next buffer, if the event announces it and it is available.
    #[inline]
    pub(super) fn take(
        &mut self,
        record: &EventRecord,
        can_be_had: bool,
    ) -> Result<ClopBuffer, BadEvent> {
        let (place, size, expected) = (self.place, self.shared.size, self.shared.stream);
        let Some(event) = ClopEvent::from_record(record).filter(|event| event.stream == expected)
        else {
            return Err(BadEvent::NotMine {
                kind: record.kind.0,
                stream: record.stream,
                expected,
            });
        };
        let in_turn = event.serial == place.serial && event.buffer as usize == place.index;
        if !in_turn || !can_be_had {
            return Err(BadEvent::OutOfTurn {
                serial: event.serial,
                buffer: event.buffer,
                expected_serial: place.serial,
                expected_buffer: place.index,
            });
        }
        if event.bytes as usize > size {
            return Err(BadEvent::TooLong {
                bytes: event.bytes,
                size,
            });
        }
        self.place = place.next(self.shared.turns.len());
        Ok(ClopBuffer {
            shared: Arc::clone(&self.shared),
            place,
            event,
        })
    }
}

impl fmt::Debug for ClopReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClopReader")
            .field("stream", &self.shared.stream)
            .field("next", &self.place)
            .finish_non_exhaustive()
    }
}

/// An announced buffer. The reader owns it, on any thread, until it is dropped; the drop returns it
/// to the writer. Buffers may be dropped in any order; the writer reuses them in turn.
pub struct ClopBuffer {
    shared: Arc<Shared>,
    pub(super) place: Place,
    event: ClopEvent,
}

impl ClopBuffer {
    /// The announcement.
    #[must_use]
    pub fn event(&self) -> &ClopEvent {
        &self.event
    }

    /// The filled bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer was given to the reader in this lap, `accept` took it only once, and
        // only `drop` gives it back, so no other access writes to it; the announced bytes do not
        // exceed its size (checked in `accept`); all memory of a region is initialised.
        unsafe {
            std::slice::from_raw_parts(
                self.shared.buffer(self.place.index),
                self.event.bytes as usize,
            )
        }
    }

    /// The payloads, in order.
    #[must_use]
    #[inline]
    pub fn payloads(&self) -> Payloads<'_> {
        Payloads::new(self.bytes(), self.shared.framing, self.event.wire)
    }

    /// The payloads from `offset` on, which an iterator over them has [returned](Payloads::offset).
    #[must_use]
    #[inline]
    pub fn payloads_from(&self, offset: usize) -> Payloads<'_> {
        self.payloads().from(offset)
    }
}

impl AsRef<[u8]> for ClopBuffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for ClopBuffer {
    #[inline]
    fn drop(&mut self) {
        self.shared.to_writer(self.place);
    }
}

impl fmt::Debug for ClopBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClopBuffer")
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}
