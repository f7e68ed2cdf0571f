//! The L0 event as a 64-byte record, and as a primitive (docs/formats/event-record.md).

use pollux_pmd::event::{EventFlags, EventKind, EventRecord};

use pollux_mempool::time::WireTime;

use super::event::{Decision, EventView};
use crate::rich::find::{MAX_RINGS, Ring};

/// Kind of an L0 event in an event queue or an event file.
pub const L0_EVENT: EventKind = EventKind(EventKind::APPLICATION.0);

/// Unit of lengths in a record, in mm.
const LENGTH_MM: f32 = 0.25;

/// Length of a ring in bytes.
const RING: usize = 5;

const ACCEPTED: u8 = 1;
const COMPLETE: u8 = 1 << 1;
const LATE: u8 = 1 << 2;
const MONITORED: u8 = 1 << 3;
const TRUNCATED: u8 = 1 << 4;
const DISPUTED: u8 = 1 << 5;

/// A recorded L0 event. Contains nothing that differs between two runs over one recording.
///
/// In the fields of the event record: the time stamp is in index (low) and length (high), the
/// sources are in stream. The place of the wire time of other kinds holds: u16 hits, u8 rings, u8
/// flags (bit 0 accepted, 1 complete, 2 late, 3 kept for monitoring, 4 truncated, 5 disputed), u8
/// rules, the low 8 bits of the burst, u16 rule set. The high 6 bits of the burst are the record's
/// flags 6 to 1. The payload is eight rings of five bytes: a 40-bit number of x (11 bits, signed),
/// y (11 bits, signed), radius (10 bits), disk (1 bit) and hits (7 bits, 127 for more), lowest bits
/// first, lengths in units of 0.25 mm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the record")]
pub struct L0Record {
    /// Time of the event, in slots of 25 ns.
    pub timestamp: u64,
    /// Number of its burst, 1 to [`LAST_BURST`](Self::LAST_BURST); 0 if it is unknown, in runs
    /// without burst numbers.
    pub burst: u16,
    /// Number of hits.
    pub hits: u16,
    /// Bit s: source s contributed.
    pub sources: u16,
    /// Number of rings.
    pub ring_count: u8,
    /// The trigger decision.
    pub accepted: bool,
    /// All sources contributed, with all of their hits.
    pub complete: bool,
    /// Hits were left out, since the event buffer was full.
    pub truncated: bool,
    /// Sources disagreed on the time, without a majority: this is the event of some of them.
    pub disputed: bool,
    /// The budget had passed when the decision was sent. Never set on a recording.
    pub late: bool,
    /// The event was rejected, and is kept for monitoring.
    pub monitored: bool,
    /// Bit r: rule r of the set accepted it.
    pub rules: u8,
    /// Number of the rule set that decided.
    pub rule_set: u16,
    /// The rings, rounded to 0.25 mm; chi2 and time are not recorded.
    pub rings: [Ring; MAX_RINGS],
}

const _: () = assert!(MAX_RINGS * RING == EventRecord::PAYLOAD);

/// A length as a signed number of `BITS` bits; saturates.
fn signed<const BITS: u32>(mm: f32) -> u64 {
    let limit = 1_i64 << (BITS - 1);
    let units = ((mm / LENGTH_MM).round() as i64).clamp(-limit, limit - 1);
    units as u64 & ((1 << BITS) - 1)
}

fn from_signed<const BITS: u32>(bits: u64) -> f32 {
    (((bits << (64 - BITS)) as i64) >> (64 - BITS)) as f32 * LENGTH_MM
}

fn pack(ring: &Ring) -> u64 {
    signed::<11>(ring.x)
        | signed::<11>(ring.y) << 11
        | ((ring.r / LENGTH_MM).round() as u64).min(0x3ff) << 22
        | u64::from(ring.disk & 1) << 32
        | u64::from(ring.hits.min(127)) << 33
}

fn unpack(bits: u64) -> Ring {
    Ring {
        disk: (bits >> 32 & 1) as u8,
        x: from_signed::<11>(bits),
        y: from_signed::<11>(bits >> 11),
        r: (bits >> 22 & 0x3ff) as f32 * LENGTH_MM,
        hits: (bits >> 33 & 0x7f) as u16,
        ..Ring::default()
    }
}

impl L0Record {
    /// The highest burst number: 14 bits.
    pub const LAST_BURST: u16 = (1 << 14) - 1;

    /// The record of a decision, without its burst.
    #[must_use]
    pub fn of(decision: &Decision) -> Self {
        Self::of_view(decision.view())
    }

    /// As [`of`](Self::of), from a shared event that is decided.
    #[must_use]
    pub fn of_view(event: EventView<'_>) -> Self {
        let (head, found) = (event.head(), event.rings());
        let verdict = event.verdict();
        let mut rings = [Ring::default(); MAX_RINGS];
        for (slot, ring) in rings.iter_mut().zip(found) {
            *slot = unpack(pack(ring));
        }
        Self {
            timestamp: head.timestamp,
            burst: 0,
            hits: head.hits,
            sources: head.sources,
            ring_count: found.len() as u8,
            accepted: verdict.accepted(),
            complete: head.complete,
            truncated: head.truncated,
            disputed: head.disputed,
            late: event.is_late(),
            monitored: verdict.monitored,
            rules: verdict.rules,
            rule_set: verdict.rule_set,
            rings,
        }
    }

    /// The recorded rings.
    #[must_use]
    pub fn rings(&self) -> &[Ring] {
        &self.rings[..usize::from(self.ring_count).min(MAX_RINGS)]
    }

    /// The bytes of the record; `sequence` numbers the events of a run.
    #[must_use]
    pub fn to_event(&self, sequence: u32) -> EventRecord {
        let mut payload = [0; EventRecord::PAYLOAD];
        for (bytes, ring) in payload.chunks_exact_mut(RING).zip(self.rings()) {
            bytes.copy_from_slice(&pack(ring).to_le_bytes()[..RING]);
        }
        let mut flags = 0;
        for (bit, holds) in [
            (ACCEPTED, self.accepted),
            (COMPLETE, self.complete),
            (LATE, self.late),
            (MONITORED, self.monitored),
            (TRUNCATED, self.truncated),
            (DISPUTED, self.disputed),
        ] {
            flags |= if holds { bit } else { 0 };
        }
        let [hits, more_hits] = self.hits.to_le_bytes();
        let [set, more_set] = self.rule_set.to_le_bytes();
        let [burst, more_burst] = (self.burst & Self::LAST_BURST).to_le_bytes();
        EventRecord {
            wire: WireTime(u64::from_le_bytes([
                hits,
                more_hits,
                self.ring_count,
                flags,
                self.rules,
                burst,
                set,
                more_set,
            ])),
            index: self.timestamp as u32,
            length: (self.timestamp >> 32) as u32,
            payload,
            sequence,
            stream: self.sources,
            kind: L0_EVENT,
            flags: EventFlags(more_burst << 1),
        }
    }

    /// The burst number in the record of an event; 0 if it has none.
    #[must_use]
    pub fn burst_of(event: &EventRecord) -> u16 {
        let [.., burst, _, _] = event.wire.0.to_le_bytes();
        u16::from_le_bytes([burst, event.flags.0 >> 1 & 0x3f])
    }

    /// Whether burst number `burst` is later than `than`; numbers restart after the highest.
    #[must_use]
    pub fn is_later_burst(burst: u16, than: u16) -> bool {
        let behind = |n: u16| (n + Self::LAST_BURST - 1) % Self::LAST_BURST;
        let ahead = (behind(burst) + Self::LAST_BURST - behind(than)) % Self::LAST_BURST;
        (1..=Self::LAST_BURST / 2).contains(&ahead)
    }

    /// Parses a record; `None` for a record of another kind.
    #[must_use]
    pub fn from_event(event: &EventRecord) -> Option<Self> {
        if event.kind != L0_EVENT {
            return None;
        }
        let [hits, more_hits, ring_count, flags, rules, _, set, more_set] =
            event.wire.0.to_le_bytes();
        let mut rings = [Ring::default(); MAX_RINGS];
        let stored = event
            .payload
            .chunks_exact(RING)
            .take(usize::from(ring_count));
        for (slot, bytes) in rings.iter_mut().zip(stored) {
            let mut word = [0; 8];
            word[..RING].copy_from_slice(bytes);
            *slot = unpack(u64::from_le_bytes(word));
        }
        Some(Self {
            timestamp: u64::from(event.length) << 32 | u64::from(event.index),
            burst: Self::burst_of(event),
            hits: u16::from_le_bytes([hits, more_hits]),
            sources: event.stream,
            ring_count,
            accepted: flags & ACCEPTED != 0,
            complete: flags & COMPLETE != 0,
            truncated: flags & TRUNCATED != 0,
            disputed: flags & DISPUTED != 0,
            late: flags & LATE != 0,
            monitored: flags & MONITORED != 0,
            rules,
            rule_set: u16::from_le_bytes([set, more_set]),
            rings,
        })
    }
}

/// Identifier of an L0 primitive, 16 bits: bit 15 is set (an identifier whose high byte is zero
/// cannot be sent), bit 14 accepted, bit 13 complete, bit 12 late, bits 11 to 4 the rules that
/// accepted, bits 3 to 0 the number of rings (docs/formats/mtp.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrimitiveId {
    /// The trigger decision.
    pub accepted: bool,
    /// All sources contributed.
    pub complete: bool,
    /// The budget had passed when it was sent.
    pub late: bool,
    /// Bit r: rule r of the set accepted it.
    pub rules: u8,
    /// Number of rings; 15 for more.
    pub rings: u8,
}

impl PrimitiveId {
    /// The bit of an identifier that marks it as late.
    pub const LATE: u16 = 1 << 12;

    /// The identifier of a decision that is in time.
    #[must_use]
    #[inline]
    pub fn of(decision: &Decision) -> Self {
        let verdict = decision.verdict();
        Self {
            accepted: verdict.accepted(),
            complete: decision.head().complete,
            late: false,
            rules: verdict.rules,
            rings: decision.rings().len().min(15) as u8,
        }
    }

    /// The identifier's bits.
    #[must_use]
    #[inline]
    pub fn to_bits(self) -> u16 {
        1 << 15
            | u16::from(self.accepted) << 14
            | u16::from(self.complete) << 13
            | u16::from(self.late) << 12
            | u16::from(self.rules) << 4
            | u16::from(self.rings.min(15))
    }

    /// Parses an identifier; `None` if it is not one of this trigger.
    #[must_use]
    pub fn from_bits(id: u16) -> Option<Self> {
        (id >> 15 == 1).then_some(Self {
            accepted: id >> 14 & 1 == 1,
            complete: id >> 13 & 1 == 1,
            late: id & Self::LATE != 0,
            rules: (id >> 4) as u8,
            rings: (id & 15) as u8,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::l0::{Draft, EventHead, Span, Verdict, event_pool};
    use crate::rich::Hit;
    use pollux_mempool::PoolConfig;
    use pollux_mempool::time::Tsc;

    #[test]
    fn records_come_back_to_a_quarter_of_a_millimetre() {
        let pool = event_pool(2, PoolConfig::default()).unwrap();
        let mut cache = pool.cache(2).unwrap();
        let ring = |i: u16| Ring {
            disk: (i % 2) as u8,
            significance: 0,
            x: -90.3 + f32::from(i),
            y: 55.55,
            r: 180.6,
            hits: 14 + i,
            chi2: 20.0,
            time: 3.0,
            time_spread: 2.0,
        };
        for n in 0..=8u16 {
            let rings: Vec<_> = (0..n).map(ring).collect();
            let mut draft = Draft::new(&mut cache).unwrap();
            assert!(draft.insert(0, &[Hit::default(); 77]));
            let head = EventHead {
                timestamp: 0x0102_0304_0506_0708,
                sources: 0b1011,
                complete: false,
                hits: 77,
                masked: 0,
                arrival: Tsc(5),
                truncated: n == 4,
                disputed: n == 5,
                burst: 7,
            };
            let mut event = draft
                .finish(&head, Span::default())
                .reconstructed(&rings)
                .decided(Verdict {
                    rules: if n > 2 { 0x91 } else { 0 },
                    rule_set: 0x1234,
                    monitored: n == 1,
                });
            if n == 3 {
                event.mark_late();
            }
            let mut record = L0Record::of(&event);
            assert_eq!((record.burst, event.head().burst), (0, 7));
            record.burst = [0, 1, 0xff, 0x100, L0Record::LAST_BURST][usize::from(n) % 5];
            assert_eq!((record.hits, record.accepted), (77, n > 2));
            assert_eq!(record.late, n == 3);
            assert_eq!((record.truncated, record.disputed), (n == 4, n == 5));
            let event = record.to_event(9);
            assert_eq!(event.kind.0, 0x80);
            let back = L0Record::from_event(&event).unwrap();
            assert_eq!(back, record);
            assert_eq!(back.rings().len(), usize::from(n));
            for (ours, theirs) in back.rings().iter().zip(rings.iter()) {
                assert!((ours.x - theirs.x).abs() <= 0.125 && (ours.r - theirs.r).abs() <= 0.125);
                assert_eq!((ours.hits, ours.disk), (theirs.hits, theirs.disk));
            }
        }
        assert_eq!(L0Record::from_event(&EventRecord::default()), None);
    }

    #[test]
    fn bursts_are_numbered_in_a_ring() {
        let last = L0Record::LAST_BURST;
        for (burst, than, later) in [
            (1, 1, false),
            (2, 1, true),
            (1, 2, false),
            (1, last, true),
            (last, 1, false),
            (last, last - 1, true),
            (5000, 1, true),
        ] {
            assert_eq!(
                L0Record::is_later_burst(burst, than),
                later,
                "{burst} {than}"
            );
        }
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
            (255.75, -256.0, 0.0, 127)
        );
    }

    #[test]
    fn identifiers_can_be_sent_and_read() {
        for rings in [0, 3, 99] {
            for bits in 0..8 {
                let id = PrimitiveId {
                    accepted: bits & 1 != 0,
                    complete: bits & 2 != 0,
                    late: bits & 4 != 0,
                    rules: 0x41 << (bits & 1),
                    rings,
                };
                assert!(id.to_bits() >> 8 != 0);
                assert_eq!(id.to_bits() & PrimitiveId::LATE != 0, id.late);
                let rings = rings.min(15);
                let back = PrimitiveId::from_bits(id.to_bits());
                assert_eq!(back, Some(PrimitiveId { rings, ..id }));
            }
        }
        assert_eq!(PrimitiveId::from_bits(0x7fff), None);
    }
}
