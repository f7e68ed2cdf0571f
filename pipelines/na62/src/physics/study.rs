//! Study of a ring finder with events of many kinds.
//!
//! A true ring is required to be found if it has at least 5 hits, its centre is inside the
//! acceptance, and no other centre on the disk is nearer than one pitch of the photomultipliers.
//! What "found" means is in [`score`](super::score).

mod bound;
pub mod momentum;
pub mod rate;

use pollux_pmd::lcore::StopFlag;
use serde::Serialize;

use self::bound::bound;
use self::rate::{Moments, Rate};
use super::model::{EventModel, ModelConfig, ModelError, Rings, TruthEvent};
use super::score::purity::PurityScore;
use super::score::{TruthScore, is_apart, is_asked_for, matches};
use crate::rich::find::{
    FinderConfig, FinderError, MAX_BATCH, MAX_RINGS_PER_DISK, Ring, RingFinder,
};
use crate::rich::geometry::DISKS;

/// Numbers of rings in an event.
pub const RINGS: [u32; 4] = [1, 2, 3, 4];
/// Noise hits for each hit of a ring.
pub const NOISE: [f64; 4] = [0.0, 0.1, 0.2, 0.4];
/// Other events in the slot, on average: none, 10 MHz, 40 MHz.
pub const PILEUP: [f64; 3] = [0.0, 0.25, 1.0];
/// Share of the rings that are seen by both disks, in the rows about those.
pub const SHARED: f64 = 0.15;
/// Minimum hits of a ring for a reliable fit.
pub const STRONG: u16 = 7;

/// Results for events of one kind. Each rate has a statistical error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Rings of an event.
    pub rings: u32,
    /// Noise hits for each hit of a ring.
    pub noise: f64,
    /// Other events in the slot, on average.
    pub pileup: f64,
    /// Share of the rings that are seen by both disks.
    pub shared: f64,
    /// Events judged.
    pub events: u64,
    /// Reconstructible rings.
    pub findable: u64,
    /// Fitted rings.
    pub fitted: u64,
    /// Found rings per reconstructible ring.
    pub efficiency: Rate,
    /// Statistical error of [`efficiency`](Self::efficiency).
    pub efficiency_error: Option<f64>,
    /// The same, whatever the number of hits.
    pub efficiency_all: Rate,
    /// Statistical error of [`efficiency_all`](Self::efficiency_all).
    pub efficiency_all_error: Option<f64>,
    /// The same, of rings with at least [`STRONG`] hits.
    pub efficiency_7: Rate,
    /// Statistical error of [`efficiency_7`](Self::efficiency_7).
    pub efficiency_7_error: Option<f64>,
    /// Fitted rings that belong to no true ring, per fitted ring.
    pub fake_rate: Rate,
    /// Statistical error of [`fake_rate`](Self::fake_rate).
    pub fake_rate_error: Option<f64>,
    /// The same, of fitted rings with at least [`STRONG`] hits.
    pub fake_rate_7: Rate,
    /// Statistical error of [`fake_rate_7`](Self::fake_rate_7).
    pub fake_rate_7_error: Option<f64>,
    /// Second fits of a true ring, per fitted ring.
    pub clone_rate: Rate,
    /// Statistical error of [`clone_rate`](Self::clone_rate).
    pub clone_rate_error: Option<f64>,
    /// Efficiency where rings are matched by the purity of their hits.
    pub purity_efficiency: Rate,
    /// Statistical error of [`purity_efficiency`](Self::purity_efficiency).
    pub purity_efficiency_error: Option<f64>,
    /// Fakes where rings are matched by the purity of their hits.
    pub purity_fake_rate: Rate,
    /// Statistical error of [`purity_fake_rate`](Self::purity_fake_rate).
    pub purity_fake_rate_error: Option<f64>,
    /// Clones where rings are matched by the purity of their hits.
    pub purity_clone_rate: Rate,
    /// Statistical error of [`purity_clone_rate`](Self::purity_clone_rate).
    pub purity_clone_rate_error: Option<f64>,
    /// Reconstructible rings beyond the finder's limit for a disk, per reconstructible ring.
    pub over_limit: Rate,
    /// Statistical error of [`over_limit`](Self::over_limit).
    pub over_limit_error: Option<f64>,
    /// Root mean square of the error of the radius, over the found rings.
    pub radius_resolution_mm: Option<f64>,
    /// Its statistical error.
    pub radius_resolution_error_mm: Option<f64>,
    /// Root mean square of the least error possible for a fit that knows the rings' hits.
    pub radius_bound_mm: Option<f64>,
}

/// Parameters of a study.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Seed of the events.
    pub seed: u64,
    /// Events of each row.
    pub events: u64,
    /// The finder under study.
    pub finder: FinderConfig,
}

/// Why a study cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// Impossible parameters of the events.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Impossible parameters of the finder.
    #[error(transparent)]
    Finder(#[from] FinderError),
}

impl Study {
    /// One row for each kind of events; the completed ones, if it is stopped.
    ///
    /// # Errors
    /// Impossible parameters of the finder.
    pub fn rows(&self, stop: &StopFlag) -> Result<Vec<Row>, StudyError> {
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
    ///
    /// # Errors
    /// Impossible parameters of the finder.
    pub fn shared(&self, stop: &StopFlag) -> Result<Vec<Row>, StudyError> {
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

    /// Passes each event of a model and the found rings to `see`; false if it was stopped.
    fn each(
        &self,
        model: &ModelConfig,
        stop: &StopFlag,
        mut see: impl FnMut(&TruthEvent, &[Ring]),
    ) -> Result<bool, StudyError> {
        let model = EventModel::new(*model)?;
        let mut finder = RingFinder::new(self.finder)?;
        let mut events = vec![TruthEvent::default(); MAX_BATCH];
        for first in (0..self.events).step_by(MAX_BATCH) {
            if stop.is_set() {
                return Ok(false);
            }
            let count = (self.events - first).min(MAX_BATCH as u64) as usize;
            let batch = &mut events[..count];
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

    /// The row of events of a model, of `rings` rings each; `None` if it is stopped.
    ///
    /// # Errors
    /// Impossible parameters.
    pub fn row(
        &self,
        rings: u32,
        model: &ModelConfig,
        stop: &StopFlag,
    ) -> Result<Option<Row>, StudyError> {
        let (cfg, sigma) = (self.finder, model.hit_error_mm());
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
