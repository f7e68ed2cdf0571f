//! Holds the decisions that come back against the truth.

use pollux_na62::formats::FormatError;
use pollux_na62::formats::mtp::{MtpPacket, Primitive};
use pollux_na62::l0::PrimitiveId;
use serde::Serialize;

use crate::truth::{Cursor, Moment, Timeline};
use pollux_na62::physics::model::SlotEdges;

/// Events that are remembered: a decision may come that many events after its own, 10 s at
/// 100 kHz.
const WINDOW: usize = 1 << 20;

/// The event has a ring that a finder is asked to find.
const RING: u8 = 1;
/// The event has been decided.
const DECIDED: u8 = 1 << 1;

/// What came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisionCounts {
    /// Packets with decisions.
    pub packets: u64,
    /// Events that were decided.
    pub decided: u64,
    /// Events that were accepted.
    pub accepted: u64,
    /// Accepted events that have a true ring to be found.
    pub accepted_with_ring: u64,
    /// Decided events for which the trigger had the data of every board.
    pub complete: u64,
    /// Decisions that say of themselves that they come after their budget.
    pub late: u64,
    /// Decisions about events that had been decided.
    pub repeated: u64,
    /// Decisions about times at which nothing was sent, or with an identifier that is none.
    pub unknown: u64,
    /// Decisions about the slot beside that of an event, which has hits of it where they are
    /// carried over an edge.
    pub beside: u64,
    /// Decisions so late that their events are forgotten: those count as missing.
    pub forgotten: u64,
    /// Events with a true ring to be found, among those sent.
    pub with_ring: u64,
    /// Events sent that were never decided.
    pub missing: u64,
}

impl DecisionCounts {
    /// Accepted events among those with a true ring; `None` where there was none.
    #[must_use]
    pub fn trigger_efficiency(&self) -> Option<f64> {
        (self.with_ring > 0).then(|| self.accepted_with_ring as f64 / self.with_ring as f64)
    }

    /// Events without a true ring among those accepted; `None` where none was accepted.
    #[must_use]
    pub fn fake_accept_rate(&self) -> Option<f64> {
        let fake = self.accepted - self.accepted_with_ring;
        (self.accepted > 0).then(|| fake as f64 / self.accepted as f64)
    }
}

/// Remembers which events were sent, and checks that each is decided once.
#[derive(Debug)]
pub struct DecisionCheck {
    times: Cursor,
    /// When the last event expected happens, once it was asked for.
    last: Option<Moment>,
    /// The spill of the last decision.
    spill: u64,
    /// Flags of event n at n modulo [`WINDOW`].
    window: Box<[u8]>,
    /// Number behind that of the last event expected.
    next: u64,
    counts: DecisionCounts,
}

impl DecisionCheck {
    /// A check that expects nothing yet.
    #[must_use]
    pub fn new(timeline: Timeline) -> Self {
        Self {
            times: timeline.cursor(),
            last: None,
            spill: 0,
            window: vec![0; WINDOW].into_boxed_slice(),
            next: 0,
            counts: DecisionCounts::default(),
        }
    }

    /// Expects a decision about the next event. `has_ring`: it has a ring to be found.
    pub fn expect(&mut self, has_ring: bool) {
        if self.next >= WINDOW as u64 {
            self.settle(self.next - WINDOW as u64);
        }
        self.window[self.next as usize % WINDOW] = u8::from(has_ring) * RING;
        self.next += 1;
        self.last = None;
    }

    /// Takes a packet of decisions, a whole UDP payload.
    ///
    /// # Errors
    /// A packet that cannot be read; it changes nothing.
    pub fn packet(&mut self, payload: &[u8]) -> Result<(), FormatError> {
        let packet = MtpPacket::parse(payload)?;
        self.counts.packets += 1;
        packet
            .primitives()
            .for_each(|primitive| self.decision(primitive));
        Ok(())
    }

    fn decision(&mut self, primitive: Primitive) {
        let meaning = PrimitiveId::from_bits(primitive.id);
        let event = self.event_number(primitive.timestamp);
        let (Some(meaning), Some(n)) = (meaning, event) else {
            if meaning.is_some() && self.is_beside(primitive.timestamp) {
                self.counts.beside += 1;
            } else {
                self.counts.unknown += 1;
            }
            return;
        };
        if self.next - n > WINDOW as u64 {
            self.counts.forgotten += 1;
            return;
        }
        let flags = &mut self.window[n as usize % WINDOW];
        if *flags & DECIDED != 0 {
            self.counts.repeated += 1;
            return;
        }
        *flags |= DECIDED;
        let with_ring = meaning.accepted && *flags & RING != 0;
        self.counts.decided += 1;
        self.counts.accepted += u64::from(meaning.accepted);
        self.counts.accepted_with_ring += u64::from(with_ring);
        self.counts.complete += u64::from(meaning.complete);
        self.counts.late += u64::from(meaning.late);
    }

    /// A packet has the low 32 bits of the time; of the times that these may mean, it is the
    /// nearest to the last event (within 53 s). Where time stamps begin again in each spill, it is
    /// that of the spill of the last decision, or of one near it: the first one that has an event
    /// there which was sent and is not decided, else the first one that has an event.
    fn event_number(&mut self, low: u32) -> Option<u64> {
        let last = self.last()?;
        let Some(length) = self.times.line().spill_slots() else {
            let timestamp = nearest(low, last.timestamp)?;
            return self.sent_in(0, timestamp);
        };
        let first = self.times.line().first_timestamp();
        let timestamp = first + u64::from(low.wrapping_sub(first as u32));
        if timestamp >= first + length {
            return None;
        }
        let mut decided = None;
        for spill in [
            Some(self.spill),
            self.spill.checked_add(1),
            self.spill.checked_sub(1),
            Some(last.spill),
        ] {
            let Some(n) = spill.and_then(|spill| self.sent_in(spill, timestamp)) else {
                continue;
            };
            if self.window[n as usize % WINDOW] & DECIDED == 0 {
                self.spill = spill.unwrap_or(self.spill);
                return Some(n);
            }
            decided = decided.or(Some(n));
        }
        decided
    }

    /// The event of a time, if it has been sent.
    fn sent_in(&mut self, spill: u64, timestamp: u64) -> Option<u64> {
        let n = self.times.event_in_spill(spill, timestamp)?;
        (n < self.next).then_some(n)
    }

    /// Whether the slot before or behind has an event.
    fn is_beside(&mut self, low: u32) -> bool {
        self.times.line().edges() == SlotEdges::Carry
            && [low.wrapping_add(1), low.wrapping_sub(1)]
                .iter()
                .any(|&low| self.event_number(low).is_some())
    }

    /// When the last event expected happens.
    fn last(&mut self) -> Option<Moment> {
        let last = self.next.checked_sub(1)?;
        let at = self.last.unwrap_or_else(|| self.times.moment(last));
        self.last = Some(at);
        Some(at)
    }

    /// Counts what is final about an event that was sent.
    fn settle(&mut self, n: u64) {
        let flags = self.window[n as usize % WINDOW];
        self.counts.with_ring += u64::from(flags & RING != 0);
        self.counts.missing += u64::from(flags & DECIDED == 0);
    }

    /// The counts so far; `missing` and `with_ring` hold forgotten events only.
    #[must_use]
    pub fn counts(&self) -> &DecisionCounts {
        &self.counts
    }

    /// Ends the check, where the first `sent` events were really sent.
    #[must_use]
    pub fn finish(mut self, sent: u64) -> DecisionCounts {
        for n in self.next.saturating_sub(WINDOW as u64)..sent.min(self.next) {
            self.settle(n);
        }
        self.counts
    }
}

/// Of the times with these low 32 bits, the one nearest to another time.
fn nearest(low: u32, to: u64) -> Option<u64> {
    let offset = low.wrapping_sub(to as u32) as i32;
    to.checked_add_signed(offset.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_na62::formats::mtp::{MAX_PACKET, MtpWriter, SOURCE_RICH};

    use super::*;
    use crate::config::{EmulatorConfig, Spill};
    use pollux_na62::physics::model::ModelConfig;

    fn timeline(first_timestamp: u64) -> Timeline {
        Timeline::of(&EmulatorConfig {
            first_timestamp,
            events: 0,
            ..EmulatorConfig::default()
        })
    }

    fn packet(decisions: &[(u16, u64)]) -> Vec<u8> {
        let mut writer = MtpWriter::new(vec![0; MAX_PACKET], SOURCE_RICH, 0).unwrap();
        for &(id, timestamp) in decisions {
            writer
                .push(Primitive {
                    id,
                    timestamp: timestamp as u32,
                    fine: 0,
                })
                .unwrap();
        }
        let (mut bytes, len) = writer.finish();
        bytes.truncate(len);
        bytes
    }

    const ACCEPT: u16 = 0xE001;
    /// It also says that it is late.
    const REJECT: u16 = 0xB000;

    #[test]
    fn each_event_is_decided_once() {
        let line = timeline(1000);
        let mut check = DecisionCheck::new(line);
        assert_eq!(check.packet(&packet(&[(ACCEPT, 1000)])), Ok(()));
        (0..6).for_each(|n| check.expect(n < 4));
        let t = |n| line.timestamp(n);
        let decisions = packet(&[
            (ACCEPT, t(0)),
            (REJECT, t(1)),
            (ACCEPT, t(4)),
            (ACCEPT, t(0)),
            (REJECT, t(0)),
            (ACCEPT, t(1) + 1),
            (ACCEPT, t(6)),
            (0x0100, t(2)),
        ]);
        assert_eq!(check.packet(&decisions), Ok(()));
        assert!(check.packet(&decisions[1..]).is_err());
        assert_eq!(check.counts().missing, 0);
        let counts = check.finish(5);
        assert_eq!(
            counts,
            DecisionCounts {
                packets: 2,
                decided: 3,
                accepted: 2,
                accepted_with_ring: 1,
                complete: 3,
                late: 1,
                repeated: 2,
                unknown: 4,
                beside: 0,
                forgotten: 0,
                with_ring: 4,
                missing: 2,
            }
        );
        assert_eq!(counts.trigger_efficiency(), Some(0.25));
        assert_eq!(counts.fake_accept_rate(), Some(0.5));
    }

    #[test]
    fn nothing_has_no_rates() {
        let counts = DecisionCheck::new(timeline(0)).finish(0);
        assert_eq!(
            (counts.trigger_efficiency(), counts.fake_accept_rate()),
            (None, None)
        );
        assert_eq!(counts, DecisionCounts::default());
    }

    #[test]
    fn time_stamps_wrap_at_32_bits() {
        for first in [
            0,
            (1 << 32) - 2000,
            (5 << 32) - 400,
            u64::from(u32::MAX) << 8,
        ] {
            let line = timeline(first);
            let mut check = DecisionCheck::new(line);
            for n in 0..10 {
                check.expect(true);
                check
                    .packet(&packet(&[(ACCEPT, line.timestamp(n))]))
                    .unwrap();
            }
            let counts = check.finish(10);
            assert_eq!(
                (counts.decided, counts.unknown, counts.missing),
                (10, 0, 0),
                "{first}"
            );
        }
    }

    #[test]
    fn each_event_of_each_spill_is_decided_once() {
        for first_timestamp in [0, (1 << 32) - 90_000] {
            let line = Timeline::of(&EmulatorConfig {
                first_timestamp,
                events: 0,
                spill: Spill {
                    length_ms: 5,
                    gap_ms: 1,
                    ..Spill::default()
                },
                ..EmulatorConfig::default()
            });
            let mut check = DecisionCheck::new(line);
            // Decisions are three hundred events behind.
            for n in 0..4300 {
                if n < 4000 {
                    check.expect(true);
                }
                if n >= 300 {
                    let decision = packet(&[(ACCEPT, line.timestamp(n - 300))]);
                    check.packet(&decision).unwrap();
                }
            }
            let counts = check.finish(4000);
            assert_eq!((counts.decided, counts.unknown), (4000, 0));
            assert_eq!((counts.repeated, counts.missing), (0, 0));
        }
    }

    #[test]
    fn slots_beside_an_event_are_no_events() {
        let config = EmulatorConfig {
            physics: ModelConfig {
                slot_edges: SlotEdges::Carry,
                ..ModelConfig::default()
            },
            ..EmulatorConfig::default()
        };
        let line = Timeline::of(&config);
        let mut check = DecisionCheck::new(line);
        check.expect(true);
        let at = line.timestamp(0);
        let decisions = [
            (ACCEPT, at - 1),
            (ACCEPT, at),
            (ACCEPT, at + 1),
            (ACCEPT, at + 2),
        ];
        check.packet(&packet(&decisions)).unwrap();
        let counts = check.finish(1);
        assert_eq!((counts.decided, counts.beside, counts.unknown), (1, 2, 1));
    }

    #[test]
    fn what_is_longer_ago_than_the_window_is_missing() {
        let line = timeline(0);
        let mut check = DecisionCheck::new(line);
        (0..WINDOW + 2).for_each(|_| check.expect(true));
        let first = packet(&[(ACCEPT, line.timestamp(1)), (ACCEPT, line.timestamp(2))]);
        check.packet(&first).unwrap();
        let counts = check.finish(WINDOW as u64 + 2);
        assert_eq!((counts.forgotten, counts.decided), (1, 1));
        assert_eq!(counts.missing, WINDOW as u64 + 1);
        assert_eq!(counts.with_ring, WINDOW as u64 + 2);
    }
}
