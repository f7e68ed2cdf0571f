//! Writer of a CLOP: fills the buffers, in the role of a NIC.

use std::fmt;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use pollux_mempool::Mbuf;
use pollux_mempool::time::{Tsc, WireTime};
use zerocopy::IntoBytes;

use super::format::{ClopEvent, ClopReason, Framing, RECORD, Record, within_reach};
use super::shared::{Place, Shared};
use crate::event::queue::EventProducer;
use crate::event::record::EventRecord;
use crate::ledger::Cause;

/// Why a payload was refused. The caller counts it, under [`cause`](Self::cause).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The reader holds all buffers.
    #[error("no free buffer: the reader is too slow, or there are too few buffers")]
    ClopFull,
    /// The buffer is full but cannot be announced.
    #[error("the event queue is full: its consumer is too slow, or it has too few records")]
    EventsFull,
    /// No buffer can hold the payload.
    #[error("a payload of {length} B: a buffer holds at most {limit} B of one")]
    Oversize {
        /// Bytes of the payload.
        length: usize,
        /// Bytes of the longest payload that fits.
        limit: usize,
    },
    /// The range is not inside the frame.
    #[error("bytes {start} to {end} of a frame of {length} B")]
    OutOfFrame {
        /// First byte of the range.
        start: usize,
        /// Byte behind the last one of the range.
        end: usize,
        /// Bytes of the frame.
        length: usize,
    },
}

impl Refused {
    /// The cause in the loss ledger.
    #[must_use]
    pub fn cause(self) -> Cause {
        match self {
            Self::ClopFull | Self::EventsFull => Cause::RingFull,
            Self::Oversize { .. } => Cause::Oversize,
            Self::OutOfFrame { .. } => Cause::Malformed,
        }
    }
}

/// Metadata of a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadInfo {
    /// Arrival time, on the clock of the time-out.
    pub arrival: Tsc,
    /// UDP port that it was sent from.
    pub source_port: u16,
    /// External time stamp, if it has one.
    pub wire: Option<WireTime>,
}

/// Fills the buffers of one stream, in one poll loop. Each call gets the event queue for the
/// announcements; all calls for one list must pass the same queue.
///
/// Payloads that are not announced when the writer is dropped are lost: [`flush`](Self::flush)
/// first.
pub struct ClopWriter {
    shared: Arc<Shared>,
    /// In cycles.
    timeout: u64,
    /// The current buffer.
    place: Place,
    /// Its content; `None` if it is empty, and then the reader may still own it.
    open: Option<Open>,
    /// Number of the next payload.
    sequence: u32,
}

/// The content of the current buffer: at least one payload.
#[derive(Clone, Copy, Debug)]
struct Open {
    used: usize,
    payloads: u32,
    first: u32,
    last: u32,
    wire: Option<WireTime>,
    oldest: Tsc,
}

impl Open {
    /// Whether a payload that takes `space` bytes fits.
    #[inline]
    fn takes(&self, space: usize, size: usize, wire: Option<WireTime>) -> bool {
        let in_reach = match (wire, self.wire) {
            (Some(wire), Some(base)) => within_reach(wire, base),
            _ => true,
        };
        in_reach && space <= size - self.used
    }
}

impl ClopWriter {
    pub(super) fn new(shared: Arc<Shared>, timeout: u64) -> Self {
        Self {
            shared,
            timeout,
            place: Place::default(),
            open: None,
            sequence: 0,
        }
    }

    /// Appends a payload, which may be empty. A refused payload consumes its sequence number, so
    /// that the reader sees the gap.
    ///
    /// # Errors
    /// [`Refused`]; the caller counts the payload.
    #[inline]
    pub fn append(
        &mut self,
        events: &mut EventProducer,
        info: &PayloadInfo,
        payload: &[u8],
    ) -> Result<(), Refused> {
        self.put(events, info, payload.len(), [payload])
    }

    /// Appends the bytes `payload` of a frame, across its segments, with the frame's own times.
    ///
    /// # Errors
    /// [`Refused`]; the caller counts the payload.
    #[inline]
    pub fn append_frame(
        &mut self,
        events: &mut EventProducer,
        source_port: u16,
        frame: &Mbuf,
        payload: Range<usize>,
    ) -> Result<(), Refused> {
        let Range { start, end } = payload;
        if start > end || end > frame.total_len() {
            self.sequence = self.sequence.wrapping_add(1);
            return Err(Refused::OutOfFrame {
                start,
                end,
                length: frame.total_len(),
            });
        }
        let info = PayloadInfo {
            arrival: frame.arrival(),
            source_port,
            wire: frame.wire_time(),
        };
        let mut at = 0;
        let pieces = frame.segments().map(|segment| {
            let inside = |byte: usize| byte.saturating_sub(at).min(segment.len());
            let piece = &segment[inside(start)..inside(end)];
            at += segment.len();
            piece
        });
        self.put(events, &info, end - start, pieces)
    }

    /// Announces the current buffer if its oldest payload has reached the time-out. Also retries an
    /// announcement that a full event queue prevented.
    #[inline]
    pub fn poll(&mut self, events: &mut EventProducer, now: Tsc) {
        if let Some(open) = &self.open
            && now.since(open.oldest) >= self.timeout
        {
            self.announce(events, ClopReason::Timeout);
        }
    }

    /// Announces the current buffer if it has payloads; for the end of a run. `false` if the event
    /// queue is full: call again when its consumer has advanced.
    #[must_use = "false says that payloads are still waiting for room in the event queue"]
    pub fn flush(&mut self, events: &mut EventProducer) -> bool {
        self.announce(events, ClopReason::Flush)
    }

    /// Writes a payload of `length` bytes, the total of all `pieces`, into a buffer.
    #[inline]
    fn put<'a>(
        &mut self,
        events: &mut EventProducer,
        info: &PayloadInfo,
        length: usize,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Refused> {
        let (size, framing) = (self.shared.size, self.shared.framing);
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let Some(space) = framing.space(length).filter(|&space| space <= size) else {
            return Err(Refused::Oversize {
                length,
                limit: framing.longest(size),
            });
        };
        let crowded = |open: &Open| !open.takes(space, size, info.wire);
        if self.open.as_ref().is_some_and(crowded) && !self.announce(events, ClopReason::Full) {
            return Err(Refused::EventsFull);
        }
        let open = match &mut self.open {
            Some(open) => open,
            none if self.shared.is_writers(self.place) => none.insert(Open {
                used: 0,
                payloads: 0,
                first: sequence,
                last: sequence,
                wire: info.wire,
                oldest: info.arrival,
            }),
            _ => return Err(Refused::ClopFull),
        };
        // SAFETY: the writer owns the buffer in this lap (checked when it was opened, and only
        // `announce` ends that), and `space` bytes from `used` are inside it.
        unsafe {
            let to = self.shared.buffer(self.place.index).add(open.used);
            match framing {
                Framing::Records => {
                    let record = Record::new(length, info.source_port, sequence, info.wire);
                    ptr::copy_nonoverlapping(record.as_bytes().as_ptr(), to, RECORD);
                    gather(to.add(RECORD), length, pieces);
                }
                Framing::Bare { stride } => {
                    let end = gather(to, length, pieces);
                    end.write_bytes(0, stride - length);
                }
            }
        }
        open.used += space;
        open.payloads += 1;
        open.last = sequence;
        open.wire = open.wire.or(info.wire);
        if size - open.used < framing.least() {
            // No further payload fits. If the event queue is full, the next call retries.
            self.announce(events, ClopReason::Full);
        }
        Ok(())
    }

    /// Gives the current buffer to the reader and announces it; `true` if nothing is left to
    /// announce.
    fn announce(&mut self, events: &mut EventProducer, reason: ClopReason) -> bool {
        let Some(open) = &self.open else { return true };
        if !events.has_room() {
            return false;
        }
        let event = ClopEvent {
            stream: self.shared.stream,
            buffer: self.place.index as u32,
            serial: self.place.serial,
            bytes: open.used as u32,
            payloads: open.payloads,
            first: open.first,
            last: open.last,
            reason,
            wire: open.wire,
            oldest: open.oldest,
        };
        // First the buffer, then its announcement: the reader may access it at once.
        self.shared.to_reader(self.place);
        let pushed = events.push(&EventRecord::from(&event));
        debug_assert!(
            pushed.is_ok(),
            "there was room, and only pushing makes it less"
        );
        self.place = self.place.next(self.shared.turns.len());
        self.open = None;
        true
    }
}

/// Copies `pieces`, up to `length` bytes in total, to `to`; returns the end of the copy.
///
/// # Safety
/// The caller has exclusive access to `length` bytes from `to`.
#[inline]
unsafe fn gather<'a>(
    mut to: *mut u8,
    length: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> *mut u8 {
    let mut left = length;
    for piece in pieces {
        let n = piece.len().min(left);
        // SAFETY: `n` bytes are inside the piece and inside the caller's memory; a piece is
        // borrowed, so it does not overlap that memory.
        to = unsafe {
            ptr::copy_nonoverlapping(piece.as_ptr(), to, n);
            to.add(n)
        };
        left -= n;
    }
    debug_assert_eq!(left, 0, "the pieces are as long as announced");
    to
}

impl fmt::Debug for ClopWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClopWriter")
            .field("stream", &self.shared.stream)
            .field("place", &self.place)
            .field("open", &self.open)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
