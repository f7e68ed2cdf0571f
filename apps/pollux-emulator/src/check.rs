//! Holds the decisions that come back against the truth.

use pollux_pipelines::formats::FormatError;
use pollux_pipelines::formats::mtp::{MtpPacket, Primitive};
use pollux_pipelines::l0::PrimitiveId;
use serde::Serialize;

use crate::truth::Timeline;

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
    timeline: Timeline,
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
            timeline,
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
        let event = self
            .event_number(primitive.timestamp)
            .filter(|&n| n < self.next);
        let (Some(meaning), Some(n)) = (meaning, event) else {
            self.counts.unknown += 1;
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

    /// A packet has the low 32 bits of the time (docs/formats/mtp.md). Of the times that these may
    /// mean, it is the nearest to the last event that is expected: within 2^31 slots, 53 s.
    fn event_number(&self, low: u32) -> Option<u64> {
        let last = self.timeline.timestamp(self.next.checked_sub(1)?);
        let offset = low.wrapping_sub(last as u32) as i32;
        self.timeline
            .event_number(last.checked_add_signed(offset.into())?)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_pipelines::formats::mtp::{MAX_PACKET, MtpWriter, SOURCE_RICH};

    use super::*;
    use crate::config::EmulatorConfig;

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

    /// Decisions come long behind their events, and in any order, on both sides of the edge.
    #[test]
    fn decisions_on_both_sides_of_the_edge_find_their_events() {
        const EVENTS: u64 = 20_000;
        let line = timeline((3 << 32) - 400 * EVENTS / 2);
        let (edge, mut check) = (3 << 32, DecisionCheck::new(line));
        (0..EVENTS).for_each(|_| check.expect(true));
        assert!(line.timestamp(0) < edge && line.timestamp(EVENTS - 1) > edge);
        for n in (0..EVENTS / 2).flat_map(|n| [EVENTS - 1 - n, n]) {
            let decision = packet(&[(ACCEPT, line.timestamp(n))]);
            check.packet(&decision).unwrap();
            check.packet(&decision).unwrap();
        }
        // A slot without an event is none, whatever its upper bits might be.
        check.packet(&packet(&[(ACCEPT, edge + 1)])).unwrap();
        let counts = check.finish(EVENTS);
        assert_eq!((counts.decided, counts.repeated), (EVENTS, EVENTS));
        assert_eq!((counts.unknown, counts.missing), (1, 0));
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
