//! Holds the rings that the trigger found against the true ones.

use pollux_pipelines::l0::L0Record;
use pollux_pmd::event::EventConsumer;
use serde::Serialize;

use crate::frames::roomy_event;
use crate::physics::TruthEvent;
use crate::score::TruthScore;
use crate::truth::Truth;

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
    /// Records that belong to no event of the run.
    pub unknown: u64,
}

/// Takes the trigger's event records from a queue, and makes the truth about each again.
pub struct RingCheck {
    records: EventConsumer,
    truth: Truth,
    event: TruthEvent,
    taken: u64,
    all: TruthScore,
    single: TruthScore,
    unknown: u64,
}

impl RingCheck {
    /// A check of the records that come out of a queue.
    #[must_use]
    pub fn new(records: EventConsumer, truth: Truth) -> Self {
        Self {
            records,
            truth,
            event: roomy_event(),
            taken: 0,
            all: TruthScore::default(),
            single: TruthScore::default(),
            unknown: 0,
        }
    }

    /// Judges up to `limit` events; returns how many records there were.
    pub fn poll(&mut self, limit: usize) -> usize {
        for n in 0..limit {
            let Some(event) = self.records.poll() else {
                return n;
            };
            self.taken += 1;
            self.judge(L0Record::from_event(&event));
        }
        limit
    }

    fn judge(&mut self, record: Option<L0Record>) {
        let timeline = self.truth.timeline();
        let number = |record: &L0Record| timeline.event_number(record.timestamp);
        let Some((record, n)) = record.and_then(|record| Some((record, number(&record)?))) else {
            self.unknown += 1;
            return;
        };
        self.truth.event(n, &mut self.event);
        self.all.add(&self.event.rings, record.rings());
        if self.event.rings.len() == 1 {
            self.single.add(&self.event.rings, record.rings());
        }
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
            unknown: self.unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_pipelines::rich::find::Ring;
    use pollux_pmd::event::{EventQueue, EventRecord, RegionOptions};

    use super::*;
    use crate::config::EmulatorConfig;

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
                    disk: ring.disk.into(),
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
}
