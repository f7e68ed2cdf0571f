//! Holds the rings that the trigger found against the true ones.

use std::sync::Arc;

use pollux_na62::l0::L0Record;
use pollux_pmd::event::EventConsumer;
use serde::Serialize;

use crate::foreign::ForeignTruth;
use crate::truth::{Cursor, Truth};
use pollux_na62::physics::model::{SlotEdges, TrueRing, TruthEvent};
use pollux_na62::physics::score::TruthScore;

/// Slots by which a record may be out of order: 10 ms.
const DISORDER: u64 = 400_000;

/// How well rings are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RingReport {
    /// True rings found, per true ring to be found; none where there was none.
    pub efficiency: Option<f64>,
    /// Fitted rings that belong to no true ring, per fitted ring; none where none was fitted.
    pub fake_rate: Option<f64>,
    /// The efficiency in events with one true ring.
    pub single_ring_efficiency: Option<f64>,
    /// The fake rate in events with one true ring.
    pub single_ring_fake_rate: Option<f64>,
    /// Events judged.
    pub events: u64,
    /// True rings to be found.
    pub findable: u64,
    /// Those found.
    pub found: u64,
    /// Fitted rings.
    pub fitted: u64,
    /// Those that belong to no true ring.
    pub unmatched: u64,
    /// Second fits of a true ring that is found already; they are no fakes.
    pub clones: u64,
    /// Records that belong to no event of the run.
    pub unknown: u64,
    /// Records of the slot beside that of an event, which has hits of it where they are carried
    /// over an edge: they are not judged.
    pub beside: u64,
}

/// Takes the trigger's event records from a queue, and makes the truth about each again.
pub struct RingCheck {
    records: EventConsumer,
    truth: Source,
    /// The spill and the time stamp of the last record that was judged.
    last: (u64, u64),
    taken: u64,
    all: TruthScore,
    single: TruthScore,
    unknown: u64,
    beside: u64,
}

/// Where the truth comes from.
enum Source {
    /// Made again from the seed.
    Emulated(Box<Emulated>),
    /// Read from a file.
    Foreign(Arc<ForeignTruth>),
}

/// The truth of the emulator, and what it is made in.
struct Emulated {
    truth: Truth,
    times: Cursor,
    event: TruthEvent,
}

impl Source {
    /// The rings of the event of a time stamp in a spill.
    fn rings(&mut self, spill: u64, timestamp: u64) -> Option<&[TrueRing]> {
        match self {
            Self::Emulated(emulated) => {
                let n = emulated.times.event_in_spill(spill, timestamp)?;
                emulated.truth.event(n, &mut emulated.event);
                Some(&emulated.event.rings)
            }
            Self::Foreign(truth) => truth.rings(spill, timestamp),
        }
    }

    /// Whether there is an event of a time stamp in a spill.
    fn has(&mut self, spill: u64, timestamp: u64) -> bool {
        match self {
            Self::Emulated(emulated) => emulated.times.event_in_spill(spill, timestamp).is_some(),
            Self::Foreign(truth) => truth.rings(spill, timestamp).is_some(),
        }
    }

    /// Whether hits may be in the slots beside that of their event.
    fn has_edges(&self) -> bool {
        match self {
            Self::Emulated(emulated) => emulated.times.line().edges() == SlotEdges::Carry,
            Self::Foreign(_) => true,
        }
    }
}

impl RingCheck {
    /// A check of the records that come out of a queue against the emulator's truth.
    #[must_use]
    pub fn new(records: EventConsumer, truth: Truth) -> Self {
        let emulated = Emulated {
            times: truth.timeline().cursor(),
            truth,
            event: TruthEvent::roomy(),
        };
        Self::of(records, Source::Emulated(Box::new(emulated)))
    }

    /// A check of the records that come out of a queue against a truth that was read from a file.
    #[must_use]
    pub fn foreign(records: EventConsumer, truth: Arc<ForeignTruth>) -> Self {
        Self::of(records, Source::Foreign(truth))
    }

    fn of(records: EventConsumer, truth: Source) -> Self {
        Self {
            records,
            truth,
            last: (0, 0),
            taken: 0,
            all: TruthScore::default(),
            single: TruthScore::default(),
            unknown: 0,
            beside: 0,
        }
    }

    /// Judges up to `limit` events; returns how many records there were.
    pub fn poll(&mut self, limit: usize) -> usize {
        for n in 0..limit {
            let Some(event) = self.records.poll() else {
                return n;
            };
            self.taken += 1;
            match L0Record::from_event(&event) {
                Some(record) => self.judge(&record),
                None => self.unknown += 1,
            }
        }
        limit
    }

    fn judge(&mut self, record: &L0Record) {
        let timestamp = record.timestamp;
        let Some(spill) = self.spill_of(timestamp) else {
            let beside = [timestamp.checked_sub(1), timestamp.checked_add(1)];
            let is_beside = self.truth.has_edges()
                && beside
                    .into_iter()
                    .flatten()
                    .any(|t| self.spill_of(t).is_some());
            self.beside += u64::from(is_beside);
            self.unknown += u64::from(!is_beside);
            return;
        };
        self.last = (spill, timestamp);
        let Some(rings) = self.truth.rings(spill, timestamp) else {
            return;
        };
        self.all.add(rings, record.rings());
        if is_single(rings) {
            self.single.add(rings, record.rings());
        }
    }

    /// The spill in which a time stamp is that of an event: records come in the order of time, so
    /// it is the spill of the last one, or a later one where the time stamp is lower.
    fn spill_of(&mut self, timestamp: u64) -> Option<u64> {
        let (spill, last) = self.last;
        let before = spill.saturating_sub(1);
        let near = if timestamp.saturating_add(DISORDER) >= last {
            [spill, spill + 1, before]
        } else {
            [spill + 1, spill, before]
        };
        near.into_iter()
            .find(|&spill| self.truth.has(spill, timestamp))
    }

    /// Records taken so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The result so far.
    #[must_use]
    pub fn report(&self) -> RingReport {
        RingReport {
            efficiency: self.all.efficiency(),
            fake_rate: self.all.fake_rate(),
            single_ring_efficiency: self.single.efficiency(),
            single_ring_fake_rate: self.single.fake_rate(),
            events: self.all.events,
            findable: self.all.findable,
            found: self.all.found,
            fitted: self.all.fitted,
            unmatched: self.all.unmatched,
            clones: self.all.clones,
            unknown: self.unknown,
            beside: self.beside,
        }
    }
}

/// Whether all rings are of one particle.
fn is_single(rings: &[TrueRing]) -> bool {
    rings.first().is_some_and(|first| {
        let mut others = rings.iter();
        others.all(|ring| ring.particle == first.particle)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_na62::rich::find::Ring;
    use pollux_pmd::event::{EventQueue, EventRecord, RegionOptions};

    use super::*;
    use crate::config::{EmulatorConfig, Spill};
    use crate::foreign;

    #[test]
    fn records_are_held_against_the_events_of_their_time() {
        let truth = Truth::of(&EmulatorConfig {
            events: 200,
            ..EmulatorConfig::default()
        })
        .unwrap();
        let (mut producer, consumer) = EventQueue::new(256, &RegionOptions::default())
            .unwrap()
            .split();
        let mut check = RingCheck::new(consumer, truth.clone());
        let mut event = TruthEvent::default();
        let mut single = 0;
        for n in 0..200 {
            truth.event(n, &mut event);
            let mut record = L0Record {
                timestamp: truth.timeline().timestamp(n),
                ring_count: event.rings.len() as u8,
                ..L0Record::default()
            };
            for (slot, ring) in record.rings.iter_mut().zip(&event.rings) {
                let (x, y, r) = (ring.x, ring.y, ring.r);
                *slot = Ring {
                    disk: ring.disk,
                    x,
                    y,
                    r,
                    hits: ring.hits,
                    ..Ring::default()
                };
            }
            single += u64::from(event.rings.len() == 1);
            producer.push(&record.to_event(n as u32)).unwrap();
        }
        let stray = L0Record {
            timestamp: 3,
            ..L0Record::default()
        };
        producer.push(&stray.to_event(200)).unwrap();
        producer.push(&EventRecord::default()).unwrap();

        assert_eq!((check.poll(150), check.poll(150)), (150, 52));
        let report = check.report();
        assert!(single > 20 && report.findable > 100);
        assert_eq!(
            (report.efficiency, report.fake_rate),
            (Some(1.0), Some(0.0))
        );
        assert_eq!(report.single_ring_efficiency, Some(1.0));
        assert_eq!((report.unknown, report.events), (2, 200));
        assert_eq!(check.taken(), 202);
    }

    /// A record of an event, with no rings.
    fn record(timestamp: u64) -> EventRecord {
        L0Record {
            timestamp,
            ..L0Record::default()
        }
        .to_event(0)
    }

    #[test]
    fn records_are_held_against_a_file() {
        let event = |spill: u64, timestamp: u64| {
            format!(
                "{{\"spill\":{spill},\"timestamp\":{timestamp},\"rings\":[{{\"disk\":0,\"x_mm\":0,\
                 \"y_mm\":0,\"r_mm\":150,\"hits\":9,\"time_ns\":1}}]}}\n"
            )
        };
        let far = 10_000_000;
        let text = foreign::header() + &event(1, 5) + &event(1, far) + &event(2, 5) + &event(2, 9);
        let truth = ForeignTruth::parse(&text).unwrap();
        let queue = EventQueue::new(256, &RegionOptions::default()).unwrap();
        let (mut producer, consumer) = queue.split();
        let mut check = RingCheck::foreign(consumer, Arc::new(truth));
        let mut found = L0Record {
            timestamp: 5,
            ring_count: 1,
            ..L0Record::default()
        };
        found.rings[0] = Ring {
            r: 151.0,
            hits: 9,
            ..Ring::default()
        };
        producer.push(&found.to_event(0)).unwrap();
        // Beside an event, and far from any; the last ones are of the second spill.
        for timestamp in [4, 700, far, 5, 9] {
            producer.push(&record(timestamp)).unwrap();
        }
        assert_eq!(check.poll(10), 6);
        let report = check.report();
        assert_eq!((report.events, report.findable, report.found), (4, 4, 1));
        assert_eq!((report.beside, report.unknown), (1, 1));
    }

    #[test]
    fn records_of_each_spill_are_held_against_its_events() {
        let config = EmulatorConfig {
            events: 2000,
            first_timestamp: 0,
            spill: Spill {
                length_ms: 5,
                gap_ms: 1,
                ..Spill::default()
            },
            ..EmulatorConfig::default()
        };
        let truth = Truth::of(&config).unwrap();
        let queue = EventQueue::new(4096, &RegionOptions::default()).unwrap();
        let (mut producer, consumer) = queue.split();
        let mut check = RingCheck::new(consumer, truth.clone());
        let (mut findable, mut event) = (0, TruthEvent::default());
        for n in 0..2000 {
            let timestamp = truth.timeline().timestamp(n);
            producer.push(&record(timestamp)).unwrap();
            truth.event(n, &mut event);
            let asked = |&i: &usize| pollux_na62::physics::score::is_asked_for(&event.rings, i);
            findable += (0..event.rings.len()).filter(asked).count() as u64;
        }
        check.poll(4096);
        let report = check.report();
        assert_eq!((report.events, report.unknown), (2000, 0));
        assert_eq!(report.findable, findable);
    }
}
