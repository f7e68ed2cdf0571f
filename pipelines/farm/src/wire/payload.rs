//! Payload of a fragment: the data of one feeder of the events of a MEP.
//!
//! First the length of each event's data, a `u32` each, then the data; the lengths together, and
//! the data of each event, are padded to 8 bytes.

use crate::message::{Fragment, MAX_PACK};

use super::WireError;

/// Length of an event of which the feeder has no data.
pub const ABSENT: u32 = u32::MAX;

/// Length of an event whose data are larger than a slot of the receive buffer holds.
pub const OVERSIZE: u32 = u32::MAX - 1;

/// Bytes that an event's data of a length take, or none where they do not fit a `u32`.
#[must_use]
#[inline]
pub fn padded(length: u32) -> Option<u32> {
    match length {
        ABSENT | OVERSIZE => Some(0),
        length => length.checked_next_multiple_of(8),
    }
}

/// Bytes of the table of lengths of so many events.
#[must_use]
#[inline]
pub fn table_len(count: u16) -> u32 {
    (u32::from(count) * 4).next_multiple_of(8)
}

/// Checks the payload of a fragment: its length, its CRC where it has one, and that its events fill it.
///
/// # Errors
/// A payload that differs from its header, or lengths that differ from the payload.
#[inline]
pub fn check(fragment: &Fragment, payload: &[u8]) -> Result<(), WireError> {
    if payload.len() as u64 != u64::from(fragment.bytes) {
        return Err(WireError::Payload {
            found: payload.len(),
            said: fragment.bytes,
        });
    }
    if fragment
        .payload_crc
        .is_some_and(|crc| crc != crc32fast::hash(payload))
    {
        return Err(WireError::PayloadCrc);
    }
    if let Some(length) = only_length(fragment.count, payload)
        && length < OVERSIZE
        && fragment.absent == 0
        && u64::from(length).next_multiple_of(8) + 8 == payload.len() as u64
    {
        return Ok(());
    }
    check_events(fragment, payload)
}

/// The length of an event that has a payload to itself, as most have.
#[inline]
fn only_length(count: u16, payload: &[u8]) -> Option<u32> {
    let length = payload.first_chunk().filter(|_| count == 1);
    length.map(|length| u32::from_le_bytes(*length))
}

/// Checks that the events of a payload fill it.
fn check_events(fragment: &Fragment, payload: &[u8]) -> Result<(), WireError> {
    let lengths = lengths(fragment.count, payload).ok_or(WireError::Field("lengths"))?;
    // Lengths that do not fit a `u32` with their padding are more than any payload has.
    let (mut absent, mut sum) = (0, u64::from(table_len(fragment.count)));
    for length in lengths {
        let length = u32::from_le_bytes(*length);
        let has_data = length < OVERSIZE;
        absent += u16::from(!has_data);
        let padded = u64::from(length).next_multiple_of(8);
        sum += if has_data { padded } else { 0 };
    }
    if sum != payload.len() as u64 {
        return Err(WireError::Field("lengths"));
    }
    if absent != fragment.absent {
        return Err(WireError::Field("absent"));
    }
    Ok(())
}

/// The lengths of so many events, if the payload has them.
#[inline]
fn lengths(count: u16, payload: &[u8]) -> Option<&[[u8; 4]]> {
    payload.as_chunks().0.get(..count.into())
}

/// The data of all events of a payload, one behind the other, if there are some and each has this
/// length, a multiple of 8.
#[must_use]
#[inline]
pub fn equal_events(count: u16, length: u32, payload: &[u8]) -> Option<&[u8]> {
    let (table, data) = payload.split_at_checked(table_len(count) as usize)?;
    let fits = data.len() as u64 == u64::from(count) * u64::from(length);
    if let Ok(table) = table.try_into() {
        let is_equal = u64::from_le_bytes(table) == last_pair(count, length);
        return (fits && is_equal).then_some(data);
    }
    let (pairs, _) = table.as_chunks();
    let both = pair(length, length);
    let (last, whole) = pairs.split_last()?;
    let mut differences = u64::from_le_bytes(*last) ^ last_pair(count, length);
    for pair in whole {
        differences |= u64::from_le_bytes(*pair) ^ both;
    }
    (fits && differences == 0).then_some(data)
}

/// The lengths of two events, as they are in memory.
#[inline]
fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

/// The end of a table of equal lengths: of the last two events, or of the last one and padding.
#[inline]
fn last_pair(count: u16, length: u32) -> u64 {
    pair(length, if count.is_multiple_of(2) { length } else { 0 })
}

/// The data of each event of a payload that [`check`] accepts: none of an event that is absent.
pub fn events(count: u16, payload: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let table = payload.split_at_checked(table_len(count) as usize);
    let (table, mut rest) = table.unwrap_or_default();
    let (lengths, _) = table.as_chunks();
    lengths.iter().take(count.into()).map(move |length| {
        let length = u32::from_le_bytes(*length);
        let (room, behind) = rest.split_at_checked(padded(length)? as usize)?;
        rest = behind;
        // The room of an event that is absent is empty, and its length is not.
        room.get(..length as usize)
    })
}

/// Writes a payload.
pub struct Writer<'a> {
    /// Where the lengths of the events go that are not written yet.
    lengths: std::slice::IterMut<'a, [u8; 4]>,
    /// Where their data go.
    rest: &'a mut [u8],
    /// Bytes of the payload if it ended with the buffer.
    total: usize,
    is_empty: bool,
}

impl<'a> Writer<'a> {
    /// A payload of so many events in a buffer; none where the buffer or the MEP cannot hold them.
    #[must_use]
    pub fn new(payload: &'a mut [u8], count: u16) -> Option<Self> {
        let total = payload.len();
        let fits = usize::from(count) <= MAX_PACK;
        let table = payload.split_at_mut_checked(table_len(count) as usize);
        let (table, rest) = table.filter(|_| fits)?;
        let (entries, _) = table.as_chunks_mut();
        let (lengths, padding) = entries.split_at_mut_checked(count.into())?;
        for entry in padding {
            *entry = [0; 4];
        }
        Some(Self {
            lengths: lengths.iter_mut(),
            rest,
            total,
            is_empty: true,
        })
    }

    /// The room for the data of all events of a payload, if there are some, each has this length, a
    /// multiple of 8, and they fill the buffer.
    #[inline]
    #[must_use]
    pub fn equal(payload: &'a mut [u8], count: u16, length: u32) -> Option<&'a mut [u8]> {
        let (table, data) = payload.split_at_mut_checked(table_len(count) as usize)?;
        let fits = data.len() as u64 == u64::from(count) * u64::from(length);
        if let Some(table) = table.first_chunk_mut().filter(|_| count <= 2) {
            *table = last_pair(count, length).to_le_bytes();
            return fits.then_some(data);
        }
        let (pairs, _) = table.as_chunks_mut();
        let (last, whole) = pairs.split_last_mut()?;
        for both in whole {
            *both = pair(length, length).to_le_bytes();
        }
        *last = last_pair(count, length).to_le_bytes();
        fits.then_some(data)
    }

    /// The room for the next event's data of a length, which the caller fills: empty for
    /// [`ABSENT`] and [`OVERSIZE`], none where the buffer ends before or all events are written.
    #[inline]
    pub fn event(&mut self, length: u32) -> Option<&mut [u8]> {
        let bytes = padded(length)? as usize;
        if bytes > self.rest.len() {
            return None;
        }
        *self.lengths.next()? = length.to_le_bytes();
        self.is_empty = false;
        let (room, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(bytes)?;
        self.rest = rest;
        let data = if length >= OVERSIZE {
            0
        } else {
            length as usize
        };
        let (data, padding) = room.split_at_mut_checked(data)?;
        for byte in padding {
            *byte = 0;
        }
        Some(data)
    }

    /// Bytes of the payload so far.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Whether no event is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }
}
