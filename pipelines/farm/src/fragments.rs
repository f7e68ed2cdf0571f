//! The data of a feeder, and the frames that carry them.

use crate::message::{Flow, Fragment};
use crate::wire;
use crate::wire::payload::{ABSENT, OVERSIZE, Writer, padded, table_len};
use crate::wire::series::Series;

/// The data of a feeder by event.
pub trait Fragments {
    /// Bytes of a part of an event's data; none where the feeder does not have it.
    fn length(&self, event: u64, part: u8) -> Option<u32>;

    /// Writes that many bytes. The buffer is as long as [`Self::length`] says.
    fn write(&self, event: u64, part: u8, into: &mut [u8]);

    /// Bytes of a part of each event, where all events have as many: more than 0, and a multiple of 8.
    fn equal_length(&self, _part: u8) -> Option<u32> {
        None
    }

    /// Writes the data of events from a number on, which have [`Self::equal_length`] bytes each.
    fn write_equal(&self, event: u64, part: u8, bytes: usize, into: &mut [u8]) {
        for (event, data) in (event..).zip(into.chunks_exact_mut(bytes)) {
            self.write(event, part, data);
        }
    }

    /// All events before this one are decided: their data are not needed any more.
    fn release(&mut self, before: u64);
}

/// A frame that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The buffer ends before the frame does.
    #[error(
        "a fragment of {needed} bytes does not fit a buffer of {room}: set a smaller slot, or a larger data room"
    )]
    Room {
        /// Bytes of the frame.
        needed: u64,
        /// Bytes of the buffer.
        room: usize,
    },
    /// The store gives another length than before.
    #[error(
        "the data of event {event} changed while they were sent: a store keeps an event until it is decided"
    )]
    Changed {
        /// The event.
        event: u64,
    },
}

/// A fragment that a feeder transfers: its header, and the store that has its data.
#[derive(Debug)]
pub struct Outgoing<'a, S> {
    feeder: u8,
    flow: &'a Flow,
    bytes: u32,
    absent: u16,
    store: &'a S,
    slot: u32,
    oversize: u16,
    /// Bytes of each event, if they are equal and all fit.
    equal: Option<u32>,
}

impl<'a, S: Fragments> Outgoing<'a, S> {
    /// The fragment of a feeder that a message asks for. A payload has at most `slot` bytes: data
    /// larger than what is left of it are left out.
    #[must_use]
    #[inline]
    pub fn new(feeder: u8, flow: &'a Flow, store: &'a S, slot: u32) -> Self {
        let mut bytes = table_len(flow.count);
        let (mut absent, mut oversize) = (0, 0);
        let equal = equal_length(store, flow, slot);
        if let Some(length) = equal {
            bytes += u32::from(flow.count) * length;
        } else {
            for event in flow.event..flow.event.saturating_add(flow.count.into()) {
                match length(store, event, flow.part, bytes, slot) {
                    ABSENT => absent += 1,
                    OVERSIZE => oversize += 1,
                    length => bytes += padded(length).unwrap_or(0),
                }
            }
        }
        Self {
            feeder,
            flow,
            bytes,
            absent: absent + oversize,
            store,
            slot,
            oversize,
            equal,
        }
    }

    /// The header.
    #[must_use]
    #[inline(always)]
    pub fn fragment(&self) -> Fragment {
        let flow = self.flow;
        Fragment {
            run: flow.run,
            feeder: self.feeder,
            mep: flow.mep,
            event: flow.event,
            count: flow.count,
            descriptor: flow.descriptor,
            generation: flow.generation,
            attempt: flow.attempt,
            part: flow.part,
            members: flow.members,
            absent: self.absent,
            bytes: self.bytes,
            payload_crc: None,
        }
    }

    /// The feeder.
    #[must_use]
    #[inline]
    pub fn feeder(&self) -> u8 {
        self.feeder
    }

    /// Events without data, because the feeder has none or they are larger than the slot.
    #[must_use]
    #[inline]
    pub fn absent(&self) -> u16 {
        self.absent
    }

    /// Events whose data are left out, because they are larger than the slot.
    #[must_use]
    pub fn oversize(&self) -> u16 {
        self.oversize
    }

    /// Whether the store has the data of all events.
    #[must_use]
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.absent == self.oversize
    }

    /// Bytes of the payload.
    #[must_use]
    #[inline]
    pub fn payload_len(&self) -> usize {
        self.bytes as usize
    }

    /// Bytes of the message: the header and the payload.
    #[must_use]
    pub fn frame_len(&self) -> usize {
        wire::HEADER + self.payload_len()
    }

    /// Writes the message: the header, and the data straight from the store. With `crc`, the payload
    /// gets one. Returns the length.
    ///
    /// # Errors
    /// A buffer that is too short, or a store that has changed.
    pub fn write(&self, crc: bool, frame: &mut [u8]) -> Result<usize, FrameError> {
        self.write_in(&mut Series::default(), crc, frame)
    }

    /// As [`Self::write`], for a fragment that is written behind others.
    #[inline]
    pub(crate) fn write_in(
        &self,
        series: &mut Series,
        crc: bool,
        frame: &mut [u8],
    ) -> Result<usize, FrameError> {
        let length = self.frame_len();
        let room = frame.len();
        let parts = frame
            .get_mut(..length)
            .and_then(<[u8]>::split_first_chunk_mut);
        let (header, payload) = parts.ok_or(FrameError::Room {
            needed: length as u64,
            room,
        })?;
        self.write_payload(payload)?;
        let payload_crc = crc.then(|| crc32fast::hash(payload));
        *header = series.encode(&Fragment {
            payload_crc,
            ..self.fragment()
        });
        Ok(length)
    }

    /// Writes the payload alone, into a buffer of its length.
    ///
    /// # Errors
    /// A buffer of another length, or a store that has changed.
    #[inline]
    pub fn write_payload(&self, payload: &mut [u8]) -> Result<(), FrameError> {
        let flow = self.flow;
        let (needed, room) = (u64::from(self.bytes), payload.len());
        if let Some(length) = self.equal {
            let data = Writer::equal(payload, flow.count, length)
                .ok_or(FrameError::Room { needed, room })?;
            let (event, part) = (flow.event, flow.part);
            self.store.write_equal(event, part, length as usize, data);
            return Ok(());
        }
        let writer = Writer::new(payload, flow.count);
        let mut writer = writer.ok_or(FrameError::Room { needed, room })?;
        let changed = |event| FrameError::Changed { event };
        for event in flow.event..flow.event.saturating_add(flow.count.into()) {
            let used = writer.len() as u32;
            let length = length(self.store, event, flow.part, used, self.slot);
            let data = writer.event(length).ok_or(changed(event))?;
            if !data.is_empty() {
                self.store.write(event, flow.part, data);
            }
        }
        if writer.len() != room {
            return Err(changed(flow.event));
        }
        Ok(())
    }
}

/// Length of the data of all events, if it is equal, needs no padding, and the slot holds them.
#[inline]
fn equal_length(store: &impl Fragments, flow: &Flow, slot: u32) -> Option<u32> {
    let length = store.equal_length(flow.part)?;
    let data = u32::from(flow.count).checked_mul(length)?;
    let end = data.checked_add(table_len(flow.count))?;
    let is_whole = flow.count > 0 && length > 0 && length.is_multiple_of(8);
    (is_whole && end <= slot).then_some(length)
}

/// Length of an event's data in a payload that has `used` bytes.
#[inline]
fn length(store: &impl Fragments, event: u64, part: u8, used: u32, slot: u32) -> u32 {
    let Some(length) = store.length(event, part) else {
        return ABSENT;
    };
    let end = padded(length).and_then(|bytes| used.checked_add(bytes));
    match end {
        Some(end) if length < OVERSIZE && end <= slot => length,
        _ => OVERSIZE,
    }
}
