//! The L0 event as a 64-byte record, and as a primitive (docs/formats/event-record.md).

use pollux_pmd::event::{EventKind, EventRecord};

use super::Decision;
use crate::rich::find::Ring;

/// Kind of an L0 event in an event queue or an event file.
pub const L0_EVENT: EventKind = EventKind(EventKind::APPLICATION.0);

/// Rings that a record has room for. An event with more has [`L0Record::more_rings`] set.
pub const MAX_RECORD_RINGS: usize = 4;

/// Unit of lengths in a record, in mm.
const LENGTH_MM: f32 = 0.25;

const ACCEPTED: u8 = 1;
const COMPLETE: u8 = 1 << 1;
const MORE_RINGS: u8 = 1 << 2;

/// An L0 event as it is recorded. Holds nothing that differs between two runs over one recording.
///
/// Payload, little-endian: u64 timestamp (25 ns), u16 hits, u16 sources, u8 rings, u8 flags
/// (bit 0 accepted, 1 complete, 2 more rings than are recorded), u16 zero, then four rings of 6
/// bytes: a 48-bit number of x (12 bits, signed), y (12 bits, signed), radius (11 bits), disk
/// (1 bit) and hits (8 bits, 255 for more), lowest bits first, lengths in units of 0.25 mm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct L0Record {
    /// Time of the event, in slots of 25 ns.
    pub timestamp: u64,
    /// Number of hits.
    pub hits: u16,
    /// Bit s: source s contributed.
    pub sources: u16,
    /// Number of rings that were found.
    pub ring_count: u8,
    /// The trigger's word.
    pub accepted: bool,
    /// All sources contributed.
    pub complete: bool,
    /// The first rings, rounded to 0.25 mm; chi2 and time are not recorded.
    pub rings: [Ring; MAX_RECORD_RINGS],
}

fn signed12(mm: f32) -> u64 {
    (((mm / LENGTH_MM).round() as i64).clamp(-2048, 2047) & 0xfff) as u64
}

fn from_signed12(bits: u64) -> f32 {
    (((bits as i64) << 52) >> 52) as f32 * LENGTH_MM
}

fn pack(ring: &Ring) -> u64 {
    signed12(ring.x)
        | signed12(ring.y) << 12
        | ((ring.r / LENGTH_MM).round() as u64).min(0x7ff) << 24
        | u64::from(ring.disk & 1) << 35
        | u64::from(ring.hits.min(255)) << 36
}

fn unpack(bits: u64) -> Ring {
    Ring {
        disk: (bits >> 35 & 1) as u8,
        x: from_signed12(bits),
        y: from_signed12(bits >> 12),
        r: (bits >> 24 & 0x7ff) as f32 * LENGTH_MM,
        hits: (bits >> 36 & 0xff) as u16,
        chi2: 0.0,
        time: 0.0,
    }
}

impl L0Record {
    /// The record of a decision.
    #[must_use]
    pub fn of(decision: &Decision) -> Self {
        let mut rings = [Ring::default(); MAX_RECORD_RINGS];
        for (slot, ring) in rings.iter_mut().zip(decision.rings.iter()) {
            *slot = unpack(pack(ring));
        }
        Self {
            timestamp: decision.head.timestamp,
            hits: decision.head.hits,
            sources: decision.head.sources,
            ring_count: decision.rings.len() as u8,
            accepted: decision.accepted,
            complete: decision.head.complete,
            rings,
        }
    }

    /// Whether rings were found that the record has no room for.
    #[must_use]
    pub fn more_rings(&self) -> bool {
        usize::from(self.ring_count) > MAX_RECORD_RINGS
    }

    /// The recorded rings.
    #[must_use]
    pub fn rings(&self) -> &[Ring] {
        &self.rings[..usize::from(self.ring_count).min(MAX_RECORD_RINGS)]
    }

    /// The bytes of the record; `sequence` numbers the events of a run.
    #[must_use]
    pub fn to_event(&self, sequence: u32) -> EventRecord {
        let mut payload = [0; EventRecord::PAYLOAD];
        payload[..8].copy_from_slice(&self.timestamp.to_le_bytes());
        payload[8..10].copy_from_slice(&self.hits.to_le_bytes());
        payload[10..12].copy_from_slice(&self.sources.to_le_bytes());
        payload[12] = self.ring_count;
        for (bit, holds) in [
            (ACCEPTED, self.accepted),
            (COMPLETE, self.complete),
            (MORE_RINGS, self.more_rings()),
        ] {
            payload[13] |= if holds { bit } else { 0 };
        }
        for (bytes, ring) in payload[16..].chunks_exact_mut(6).zip(self.rings()) {
            bytes.copy_from_slice(&pack(ring).to_le_bytes()[..6]);
        }
        EventRecord {
            kind: L0_EVENT,
            sequence,
            payload,
            ..EventRecord::default()
        }
    }

    /// Reads a record; `None` if it is of another kind.
    #[must_use]
    pub fn from_event(event: &EventRecord) -> Option<Self> {
        if event.kind != L0_EVENT {
            return None;
        }
        let p = &event.payload;
        let mut rings = [Ring::default(); MAX_RECORD_RINGS];
        let ring_count = p[12];
        for (bytes, ring) in p[16..]
            .chunks_exact(6)
            .zip(&mut rings)
            .take(usize::from(ring_count))
        {
            let mut word = [0; 8];
            word[..6].copy_from_slice(bytes);
            *ring = unpack(u64::from_le_bytes(word));
        }
        Some(Self {
            timestamp: u64::from_le_bytes([p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]]),
            hits: u16::from_le_bytes([p[8], p[9]]),
            sources: u16::from_le_bytes([p[10], p[11]]),
            ring_count,
            accepted: p[13] & ACCEPTED != 0,
            complete: p[13] & COMPLETE != 0,
            rings,
        })
    }
}

/// Identifiers of L0 primitives: bit 15 set (an identifier whose high byte is zero cannot be
/// sent), bit 14 accepted, bit 13 complete, bits 3 to 0 the number of rings.
pub mod primitive_id {
    /// The identifier of a decision.
    #[must_use]
    pub fn encode(accepted: bool, complete: bool, rings: usize) -> u16 {
        1 << 15 | u16::from(accepted) << 14 | u16::from(complete) << 13 | rings.min(15) as u16
    }

    /// Accepted, complete, and the number of rings; `None` if this is no identifier of ours.
    #[must_use]
    pub fn decode(id: u16) -> Option<(bool, bool, u8)> {
        (id >> 15 == 1 && id & 0x1ff0 == 0).then_some((
            id >> 14 & 1 == 1,
            id >> 13 & 1 == 1,
            (id & 15) as u8,
        ))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::l0::{EventHead, List};
    use pollux_mempool::time::Tsc;

    #[test]
    fn records_come_back_to_a_quarter_of_a_millimetre() {
        let ring = |i: u16| Ring {
            disk: (i % 2) as u8,
            x: -90.3 + f32::from(i),
            y: 55.55,
            r: 180.6,
            hits: 14 + i,
            chi2: 20.0,
            time: 3.0,
        };
        for n in 0..=6u16 {
            let mut rings = List::default();
            assert!(rings.extend(&(0..n).map(ring).collect::<Vec<_>>()));
            let head = EventHead {
                timestamp: 0x0102_0304_0506_0708,
                sources: 0b1011,
                complete: false,
                hits: 77,
                arrival: Tsc(5),
            };
            let record = L0Record::of(&Decision {
                head,
                rings: rings.clone(),
                accepted: n > 2,
            });
            let event = record.to_event(9);
            assert_eq!(event.kind.0, 0x80);
            let back = L0Record::from_event(&event).unwrap();
            assert_eq!(back, record);
            assert_eq!((back.ring_count, back.more_rings()), (n as u8, n > 4));
            for (ours, theirs) in back.rings().iter().zip(rings.iter()) {
                assert!((ours.x - theirs.x).abs() <= 0.125 && (ours.r - theirs.r).abs() <= 0.125);
                assert_eq!((ours.hits, ours.disk), (theirs.hits, theirs.disk));
            }
        }
        assert_eq!(L0Record::from_event(&EventRecord::default()), None);
    }

    #[test]
    fn rings_far_outside_saturate() {
        let ring = Ring {
            x: 1e9,
            y: -1e9,
            r: f32::NAN,
            hits: 900,
            ..Ring::default()
        };
        let back = unpack(pack(&ring));
        assert_eq!(
            (back.x, back.y, back.r, back.hits),
            (511.75, -512.0, 0.0, 255)
        );
    }

    #[test]
    fn identifiers_can_be_sent_and_read() {
        for (accepted, complete, rings) in [(true, false, 0), (false, true, 3), (true, true, 99)] {
            let id = primitive_id::encode(accepted, complete, rings);
            assert!(id >> 8 != 0);
            let expected = (accepted, complete, rings.min(15) as u8);
            assert_eq!(primitive_id::decode(id), Some(expected));
        }
        assert_eq!(primitive_id::decode(0x0003), None);
        assert_eq!(primitive_id::decode(0x8010), None);
    }
}
