//! The state of the run as a message a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pollux_na62::l0::EventView;
use pollux_na62::rich::geometry::PMS;
use pollux_output::RunMonitor;

use crate::broker::Place;
use crate::da00::{Values, Variable, da00};

const INTERVAL: Duration = Duration::from_secs(1);

/// Percentages of the values of [`Percentiles`](pollux_pmd::Percentiles), in the order of its fields.
const PERCENTILES: [f64; 5] = [50.0, 99.0, 99.9, 99.99, 100.0];

/// Hits of the accepted events so far, and the run's counters.
pub(crate) struct Monitor {
    pub(crate) place: Place,
    source: String,
    run: Arc<dyn RunMonitor>,
    hitmap: Vec<u64>,
    due: Instant,
}

impl Monitor {
    pub(crate) fn new(place: Place, source: &str, run: Arc<dyn RunMonitor>) -> Self {
        Self {
            place,
            source: source.into(),
            run,
            hitmap: vec![0; PMS],
            due: Instant::now() + INTERVAL,
        }
    }

    /// Counts the hits of an event.
    pub(crate) fn count(&mut self, event: EventView<'_>) {
        for hit in event.hits() {
            if let Some(count) = self.hitmap.get_mut(usize::from(hit.pm)) {
                *count += 1;
            }
        }
    }

    /// Whether a message is due; the next one is due a second later.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.due;
        if due {
            // A second from now, if this one was late by more.
            self.due += INTERVAL;
            if self.due <= now {
                self.due = now + INTERVAL;
            }
        }
        due
    }

    pub(crate) fn message(&self, time_ns: i64) -> Vec<u8> {
        let variable = |name, unit, label, values| Variable {
            name,
            unit,
            label,
            values,
        };
        let hitmap = Values::Counts("pixel_id", &self.hitmap);
        let mut variables = vec![
            variable(
                "hitmap",
                "counts",
                "hits of accepted events, by photomultiplier",
                hitmap,
            ),
            variable(
                "events",
                "counts",
                "events that were built",
                Values::Count(self.run.events()),
            ),
            variable(
                "accepted",
                "counts",
                "events that were accepted",
                Values::Count(self.run.accepted()),
            ),
            variable(
                "percentile",
                "%",
                "percentage of values up to a latency",
                Values::Numbers("percentile", &PERCENTILES),
            ),
        ];
        let stages = self.run.stages().into_iter().map(|(stage, of)| {
            (
                format!("latency_{stage}"),
                [of.p50, of.p99, of.p999, of.p9999, of.max],
            )
        });
        let stages: Vec<_> = stages.collect();
        variables.extend(stages.iter().map(|(name, latencies)| {
            variable(
                name,
                "ns",
                "time of a batch in the stage",
                Values::Counts("percentile", latencies),
            )
        }));
        da00(&self.source, time_ns, &variables)
    }
}
