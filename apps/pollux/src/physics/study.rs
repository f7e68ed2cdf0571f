//! Study of the ring finder with events of many kinds.

use anyhow::Context as _;
use pollux_emulator::physics::{EventModel, ModelConfig, Rings, TruthEvent};
use pollux_emulator::score::purity::PurityScore;
use pollux_emulator::score::{TruthScore, is_apart, is_asked_for, matches};
use pollux_na62::rich::find::{
    FinderConfig, MAX_BATCH, MAX_RINGS_PER_DISK, Method, Ring, RingFinder,
};
use pollux_na62::rich::geometry::DISKS;
use pollux_pmd::lcore::StopFlag;
use serde::Serialize;

use super::bound::bound;
use super::rate::{Moments, Rate};

/// Numbers of rings in an event.
pub(super) const RINGS: [u32; 4] = [1, 2, 3, 4];
/// Noise hits for each hit of a ring.
pub(super) const NOISE: [f64; 4] = [0.0, 0.1, 0.2, 0.4];
/// Other events in the slot, on average: none, 10 MHz, 40 MHz.
pub(super) const PILEUP: [f64; 3] = [0.0, 0.25, 1.0];
/// Share of the rings that are seen by both disks, in the rows about those.
pub(super) const SHARED: f64 = 0.15;
/// Minimum hits of a ring for a reliable fit.
pub(super) const STRONG: u16 = 7;

/// Results for events of one kind. Each rate has a statistical error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    /// Rings of an event.
    pub(super) rings: u32,
    /// Noise hits for each hit of a ring.
    pub(super) noise: f64,
    /// Other events in the slot, on average.
    pub(super) pileup: f64,
    /// Share of the rings that are seen by both disks.
    pub(super) shared: f64,
    /// Events judged.
    pub(super) events: u64,
    /// Reconstructible rings.
    pub(super) findable: u64,
    /// Fitted rings.
    pub(super) fitted: u64,
    /// Found rings per reconstructible ring.
    pub(super) efficiency: Rate,
    pub(super) efficiency_error: Option<f64>,
    /// The same, whatever the number of hits.
    pub(super) efficiency_all: Rate,
    pub(super) efficiency_all_error: Option<f64>,
    /// The same, of rings with at least [`STRONG`] hits.
    pub(super) efficiency_7: Rate,
    pub(super) efficiency_7_error: Option<f64>,
    /// Fitted rings that belong to no true ring, per fitted ring.
    pub(super) fake_rate: Rate,
    pub(super) fake_rate_error: Option<f64>,
    /// The same, of fitted rings with at least [`STRONG`] hits.
    pub(super) fake_rate_7: Rate,
    pub(super) fake_rate_7_error: Option<f64>,
    /// Second fits of a true ring, per fitted ring.
    pub(super) clone_rate: Rate,
    pub(super) clone_rate_error: Option<f64>,
    /// Efficiency, fakes and clones where rings are matched by the purity of their hits.
    pub(super) purity_efficiency: Rate,
    pub(super) purity_efficiency_error: Option<f64>,
    pub(super) purity_fake_rate: Rate,
    pub(super) purity_fake_rate_error: Option<f64>,
    pub(super) purity_clone_rate: Rate,
    pub(super) purity_clone_rate_error: Option<f64>,
    /// Reconstructible rings beyond the finder's limit for a disk, per reconstructible ring.
    pub(super) over_limit: Rate,
    pub(super) over_limit_error: Option<f64>,
    /// Root mean square of the error of the radius, over the found rings.
    pub(super) radius_resolution_mm: Option<f64>,
    pub(super) radius_resolution_error_mm: Option<f64>,
    /// Root mean square of the least error possible for a fit that knows the rings' hits.
    pub(super) radius_bound_mm: Option<f64>,
}

/// Parameters of the study.
#[derive(Clone, Copy)]
pub(super) struct Study {
    pub(super) seed: u64,
    pub(super) events: u64,
    pub(super) method: Method,
    pub(super) searches: u8,
}

impl Study {
    /// One row for each kind of events; the completed ones, if it is stopped.
    pub(super) fn rows(&self, stop: &StopFlag) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for pileup in PILEUP {
            for noise in NOISE {
                for rings in RINGS {
                    let model = ModelConfig {
                        rings: Rings::Fixed(rings),
                        noise,
                        pileup,
                        ..ModelConfig::default()
                    };
                    rows.extend(self.row(rings, &model, stop)?);
                }
            }
        }
        Ok(rows)
    }

    /// The same for events in which both disks share some rings.
    pub(super) fn shared(&self, stop: &StopFlag) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for rings in RINGS {
            let model = ModelConfig {
                rings: Rings::Fixed(rings),
                shared: SHARED,
                ..ModelConfig::default()
            };
            rows.extend(self.row(rings, &model, stop)?);
        }
        Ok(rows)
    }

    /// The finder under study.
    pub(super) fn finder(&self) -> FinderConfig {
        FinderConfig {
            method: self.method,
            searches: self.searches,
            ..FinderConfig::default()
        }
    }

    /// Passes each event of a model and the found rings to `see`; false if it was stopped.
    pub(super) fn each(
        &self,
        model: &ModelConfig,
        stop: &StopFlag,
        mut see: impl FnMut(&TruthEvent, &[Ring]),
    ) -> anyhow::Result<bool> {
        let model = EventModel::new(*model)?;
        let mut finder = RingFinder::new(self.finder())?;
        let mut events = vec![TruthEvent::default(); MAX_BATCH];
        for first in (0..self.events).step_by(MAX_BATCH) {
            if stop.is_set() {
                return Ok(false);
            }
            let count = (self.events - first).min(MAX_BATCH as u64) as usize;
            let batch = events.get_mut(..count).context("a batch of events")?;
            for (n, event) in (first..).zip(batch.iter_mut()) {
                model.event(self.seed, n, event);
            }
            finder.find_batch(batch.iter().map(|event| &event.hits[..]));
            for (n, event) in batch.iter().enumerate() {
                see(event, finder.rings(n));
            }
        }
        Ok(true)
    }

    fn row(&self, rings: u32, model: &ModelConfig, stop: &StopFlag) -> anyhow::Result<Option<Row>> {
        let (cfg, sigma) = (self.finder(), model.hit_error_mm());
        let mut sums = Sums::default();
        let done = self.each(model, stop, |event, fitted| {
            sums.add(event, fitted, &cfg, sigma);
        })?;
        Ok(done.then(|| sums.row(rings, model)))
    }
}

#[derive(Default)]
struct Sums {
    score: TruthScore,
    purity: PurityScore,
    all: Rate,
    strong: Rate,
    strong_fakes: Rate,
    over_limit: Rate,
    /// Errors of the radius of the found rings, and the roots of the least variances.
    errors: Moments,
    bounds: Moments,
}

impl Sums {
    fn add(&mut self, event: &TruthEvent, fitted: &[Ring], cfg: &FinderConfig, sigma: f64) {
        self.score.add(&event.rings, fitted);
        self.purity.add(event, fitted, cfg);
        let matched = matches(&event.rings, fitted);
        let mut on_disk = [0; DISKS];
        for (i, ring) in event.rings.iter().enumerate() {
            let is_found = matched.contains(&Some(i));
            if ring.is_in_acceptance() && is_apart(&event.rings, i) {
                self.all.count(is_found);
                if ring.hits >= STRONG {
                    self.strong.count(is_found);
                }
            }
            if is_asked_for(&event.rings, i)
                && let Some(count) = on_disk.get_mut(usize::from(ring.disk))
            {
                *count += 1;
                self.over_limit.count(*count > MAX_RINGS_PER_DISK);
            }
        }
        for (fit, found) in fitted.iter().zip(matched) {
            if fit.hits >= STRONG {
                let mut alone = TruthScore::default();
                alone.add(&event.rings, std::slice::from_ref(fit));
                self.strong_fakes.count(alone.unmatched > 0);
            }
            let Some((i, ring)) = found.and_then(|i| Some((i, event.rings.get(i)?))) else {
                continue;
            };
            // Without a bound there are enough hits for a ring, and yet none of it.
            let bound = bound(event, i, sigma);
            if let (true, Some(bound)) = (is_asked_for(&event.rings, i), bound) {
                self.errors.add(f64::from(fit.r - ring.r));
                self.bounds.add(bound.sqrt());
            }
        }
    }

    fn row(&self, rings: u32, model: &ModelConfig) -> Row {
        let Self { score, purity, .. } = self;
        let efficiency = Rate::new(score.found, score.findable);
        let fakes = Rate::new(score.unmatched, score.fitted);
        let clones = Rate::new(score.clones, score.fitted);
        let purity_efficiency = Rate::new(purity.found, purity.findable);
        let purity_fakes = Rate::new(purity.fakes, purity.fitted);
        let purity_clones = Rate::new(purity.clones, purity.fitted);
        Row {
            rings,
            noise: model.noise,
            pileup: model.pileup,
            shared: model.shared,
            events: score.events,
            findable: score.findable,
            fitted: score.fitted,
            efficiency,
            efficiency_error: efficiency.error(),
            efficiency_all: self.all,
            efficiency_all_error: self.all.error(),
            efficiency_7: self.strong,
            efficiency_7_error: self.strong.error(),
            fake_rate: fakes,
            fake_rate_error: fakes.error(),
            fake_rate_7: self.strong_fakes,
            fake_rate_7_error: self.strong_fakes.error(),
            clone_rate: clones,
            clone_rate_error: clones.error(),
            purity_efficiency,
            purity_efficiency_error: purity_efficiency.error(),
            purity_fake_rate: purity_fakes,
            purity_fake_rate_error: purity_fakes.error(),
            purity_clone_rate: purity_clones,
            purity_clone_rate_error: purity_clones.error(),
            over_limit: self.over_limit,
            over_limit_error: self.over_limit.error(),
            radius_resolution_mm: self.errors.rms(),
            radius_resolution_error_mm: self.errors.rms_error(),
            radius_bound_mm: self.bounds.rms(),
        }
    }
}
