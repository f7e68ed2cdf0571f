//! The event record: 64 bytes, one cache line, one bus write (`docs/formats/event-record.md`).

use core::mem::{offset_of, size_of};

use pollux_mempool::time::WireTime;

use super::layouts;

/// 64-bit words in a record.
pub(super) const WORDS: usize = 8;

/// The phase bit: the top bit of the last word.
pub(super) const PHASE: u64 = 1 << 63;

/// Kind of an event. A number and not an enum, because a device may write any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct EventKind(pub u8);

impl EventKind {
    /// Announces a buffer of a [`Clop`](super::Clop); see [`ClopEvent`](super::ClopEvent).
    pub const CLOP_BUFFER: Self = Self(1);
    /// The first of the application-defined kinds, up to 255.
    pub const APPLICATION: Self = Self(0x80);
}

/// Properties of an event, in bits 0 to 6; bit 7 is the queue's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct EventFlags(pub u8);

impl EventFlags {
    /// [`EventRecord::wire`] is valid.
    pub const WIRE_TIME: Self = Self(1);

    /// Whether all bits of `other` are set.
    #[must_use]
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One event. The fields are in the order of the bytes; the kind defines their further meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct EventRecord {
    /// Wire time of the event's cause, if the flags mark it as valid.
    pub wire: WireTime,
    /// Number of the buffer that the event refers to.
    pub index: u32,
    /// Valid bytes in that buffer.
    pub length: u32,
    /// Defined by the kind: data of a software event, or hardware's time stamps.
    pub payload: [u8; EventRecord::PAYLOAD],
    /// Number of the event among those of its kind and stream, wrapping.
    pub sequence: u32,
    /// Stream or other source of the event.
    pub stream: u16,
    /// Kind of the event.
    pub kind: EventKind,
    /// Its properties. The queue ignores bit 7 in a pushed record and clears it in a polled one.
    pub flags: EventFlags,
}

const _: () = {
    assert!(
        cfg!(target_endian = "little"),
        "the record is little-endian, and so must the CPU be"
    );
    // The layout table of the card's gateware is the same.
    assert!(size_of::<EventRecord>() == layouts::EVENT_RECORD_SIZE);
    assert!(
        size_of::<EventRecord>() == WORDS * size_of::<u64>() && align_of::<EventRecord>() == 64
    );
    assert!(offset_of!(EventRecord, wire) == layouts::EVENT_RECORD_WIRE);
    assert!(offset_of!(EventRecord, index) == layouts::EVENT_RECORD_INDEX);
    assert!(offset_of!(EventRecord, length) == layouts::EVENT_RECORD_LENGTH);
    assert!(offset_of!(EventRecord, payload) == layouts::EVENT_RECORD_PAYLOAD);
    assert!(offset_of!(EventRecord, sequence) == layouts::EVENT_RECORD_SEQUENCE);
    assert!(offset_of!(EventRecord, stream) == layouts::EVENT_RECORD_STREAM);
    assert!(offset_of!(EventRecord, kind) == layouts::EVENT_RECORD_KIND);
    assert!(offset_of!(EventRecord, flags) == layouts::EVENT_RECORD_FLAGS);
    assert!(EventKind::CLOP_BUFFER.0 == layouts::CLOP_BUFFER_KIND);
};

impl EventRecord {
    /// Bytes of [`payload`](Self::payload).
    pub const PAYLOAD: usize = 40;

    /// The record in its memory layout, little-endian, for files; its phase bit is as in `flags`.
    #[must_use]
    pub fn to_bytes(self) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        for (chunk, word) in bytes
            .chunks_exact_mut(size_of::<u64>())
            .zip(self.to_words())
        {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The record from the bytes of a file; its phase bit is 0.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; size_of::<Self>()]) -> Self {
        let (chunks, _) = bytes.as_chunks();
        let mut words = [0; WORDS];
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        Self::from_words(words)
    }

    #[inline]
    pub(super) fn to_words(self) -> [u64; WORDS] {
        // SAFETY: equal size, no padding (the offsets above leave no gap), and any bits are a u64.
        unsafe { core::mem::transmute(self) }
    }

    /// A record from arbitrary words of a producer.
    #[inline]
    pub(super) fn from_words(mut words: [u64; WORDS]) -> Self {
        words[WORDS - 1] &= !PHASE;
        // SAFETY: equal size, and all fields are integers, for which any bits are valid.
        unsafe { core::mem::transmute(words) }
    }
}

impl Default for EventRecord {
    /// All zero: not a kind of event.
    fn default() -> Self {
        Self::from_words([0; WORDS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_as_documented() {
        let record = EventRecord {
            wire: WireTime(0x0706_0504_0302_0100),
            index: 0x0b0a_0908,
            length: 0x0f0e_0d0c,
            payload: core::array::from_fn(|i| 16 + i as u8),
            sequence: 0x3b3a_3938,
            stream: 0x3d3c,
            kind: EventKind(0x3e),
            flags: EventFlags(0x3f),
        };
        let words = record.to_words();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(bytes, (0..64).collect::<Vec<u8>>());
        assert_eq!(EventRecord::from_words(words), record);
    }

    #[test]
    fn the_phase_bit_is_not_the_readers() {
        let record = EventRecord::from_words([u64::MAX; WORDS]);
        assert_eq!(record.flags, EventFlags(0x7f));
        assert_eq!(record.kind, EventKind(0xff));
    }
}
