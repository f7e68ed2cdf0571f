//! The study: events of many kinds, and what is found in them.

use anyhow::Context as _;
use pollux_emulator::physics::{EventModel, ModelConfig, Rings, TrueRing, TruthEvent};
use pollux_emulator::score::{TruthScore, is_asked_for, matches};
use pollux_pipelines::rich::Hit;
use pollux_pipelines::rich::find::{FinderConfig, MAX_BATCH, Method, Ring, RingFinder};
use pollux_pipelines::rich::geometry::{HIT_ERROR_MM, PITCH_MM, POSITIONS, disk_of};
use pollux_pmd::lcore::StopFlag;
use serde::Serialize;

/// Numbers of rings in an event.
pub(super) const RINGS: [u32; 4] = [1, 2, 3, 4];
/// Noise hits for each hit of a ring.
pub(super) const NOISE: [f64; 4] = [0.0, 0.1, 0.2, 0.4];
/// Other events in the slot, on average: none, 10 MHz, 40 MHz.
pub(super) const PILEUP: [f64; 3] = [0.0, 0.25, 1.0];

/// What is found in events of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    /// Rings of an event.
    pub(super) rings: u32,
    /// Noise hits for each hit of a ring.
    pub(super) noise: f64,
    /// Other events in the slot, on average.
    pub(super) pileup: f64,
    /// Events judged.
    pub(super) events: u64,
    /// Found rings per ring that is asked for.
    pub(super) efficiency: Option<f64>,
    /// Fitted rings that belong to no true ring, per fitted ring.
    pub(super) fake_rate: Option<f64>,
    /// Root mean square of the error of the radius, over the found rings.
    pub(super) radius_resolution_mm: Option<f64>,
    /// Root mean square of the least error that any fit could have on the same rings.
    pub(super) radius_bound_mm: Option<f64>,
}

/// What is to be studied.
#[derive(Clone, Copy)]
pub(super) struct Study {
    pub(super) seed: u64,
    pub(super) events: u64,
    pub(super) method: Method,
}

impl Study {
    /// A row for each kind of events; those that are complete, if it is stopped.
    pub(super) fn rows(&self, stop: &StopFlag) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for pileup in PILEUP {
            for noise in NOISE {
                for rings in RINGS {
                    rows.extend(self.row(rings, noise, pileup, stop)?);
                }
            }
        }
        Ok(rows)
    }

    fn row(
        &self,
        rings: u32,
        noise: f64,
        pileup: f64,
        stop: &StopFlag,
    ) -> anyhow::Result<Option<Row>> {
        let model = EventModel::new(ModelConfig {
            rings: Rings::Fixed(rings),
            noise,
            pileup,
            ..ModelConfig::default()
        })?;
        let mut finder = RingFinder::new(FinderConfig {
            method: self.method,
            ..FinderConfig::default()
        })?;
        let mut events = vec![TruthEvent::default(); MAX_BATCH];
        let mut sums = Sums::default();
        for first in (0..self.events).step_by(MAX_BATCH) {
            if stop.is_set() {
                return Ok(None);
            }
            let count = (self.events - first).min(MAX_BATCH as u64) as usize;
            let batch = events.get_mut(..count).context("a batch of events")?;
            for (n, event) in (first..).zip(batch.iter_mut()) {
                model.event(self.seed, n, event);
            }
            finder.find_batch(batch.iter().map(|event| &event.hits[..]));
            for (n, event) in batch.iter().enumerate() {
                sums.add(event, finder.rings(n));
            }
        }
        let per = |sum: f64| (sums.found > 0.0).then(|| (sum / sums.found).sqrt());
        Ok(Some(Row {
            rings,
            noise,
            pileup,
            events: sums.score.events,
            efficiency: sums.score.efficiency(),
            fake_rate: sums.score.fake_rate(),
            radius_resolution_mm: per(sums.errors),
            radius_bound_mm: per(sums.bounds),
        }))
    }
}

#[derive(Default)]
struct Sums {
    score: TruthScore,
    /// Found rings, the squares of their errors, and of the least errors.
    found: f64,
    errors: f64,
    bounds: f64,
}

impl Sums {
    fn add(&mut self, event: &TruthEvent, fitted: &[Ring]) {
        self.score.add(&event.rings, fitted);
        for (fit, found) in fitted.iter().zip(matches(&event.rings, fitted)) {
            let Some((i, ring)) = found.and_then(|i| Some((i, event.rings.get(i)?))) else {
                continue;
            };
            // Without a bound there are hits enough for a ring, and yet none of it.
            let bound = bound(ring, &event.hits);
            if let (true, Some(bound)) = (is_asked_for(&event.rings, i), bound) {
                let error = f64::from(fit.r - ring.r);
                self.found += 1.0;
                self.errors += error * error;
                self.bounds += bound;
            }
        }
    }
}

/// The least variance of a ring's radius, in mm^2 (Cramer and Rao): element rr of the inverse of
/// Fisher's information on centre and radius, which each hit at angle phi adds g g^T / sigma^2 to,
/// with g = (cos phi, sin phi, 1). The hits are those of its time whose cells it may cross.
fn bound(ring: &TrueRing, hits: &[Hit]) -> Option<f64> {
    let (mut n, mut c, mut s, mut cc, mut ss, mut cs) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for hit in hits {
        let Some([x, y]) = POSITIONS.get(usize::from(hit.pm)) else {
            continue;
        };
        let (dx, dy) = (f64::from(x - ring.x), f64::from(y - ring.y));
        let d = dx.hypot(dy);
        let near = (d - f64::from(ring.r)).abs() <= f64::from(PITCH_MM) / f64::sqrt(3.0);
        // Six standard deviations of a hit's time.
        let in_time = (f32::from(hit.fine) - ring.time).abs() <= 20.0;
        if near && in_time && disk_of(hit.pm) == ring.disk {
            let (cos, sin) = (dx / d, dy / d);
            n += 1.0;
            c += cos;
            s += sin;
            cc += cos * cos;
            ss += sin * sin;
            cs += cos * sin;
        }
    }
    let minor = cc * ss - cs * cs;
    let determinant = n * minor - c * (c * ss - cs * s) + s * (c * cs - cc * s);
    let variance = HIT_ERROR_MM * HIT_ERROR_MM * minor / determinant;
    (determinant > 1e-9 && variance.is_finite()).then_some(variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_hits_all_around_is_that_of_a_mean() {
        let ring = TrueRing {
            r: 180.0,
            time: 50.0,
            ..TrueRing::default()
        };
        // All photomultipliers of the disk on the ring: evenly spread.
        let on_ring = |pm: u16| {
            let [x, y] = POSITIONS[usize::from(pm)];
            (x.hypot(y) - 180.0).abs() < 9.0
        };
        let hit = |pm| Hit { pm, fine: 50 };
        let hits: Vec<Hit> = (0..976).filter(|&pm| on_ring(pm)).map(hit).collect();
        let near = hits.len() as f64;
        let bound = bound(&ring, &hits).map_or(0.0, f64::sqrt);
        let mean = HIT_ERROR_MM / near.sqrt();
        assert!((bound / mean - 1.0).abs() < 0.02, "{bound} {mean}");
    }

    #[test]
    fn hits_in_one_place_have_no_bound() {
        let ring = TrueRing {
            r: 180.0,
            ..TrueRing::default()
        };
        let hits = vec![Hit { pm: 478, fine: 0 }; 9];
        assert_eq!((bound(&ring, &hits), bound(&ring, &[])), (None, None));
    }
}
