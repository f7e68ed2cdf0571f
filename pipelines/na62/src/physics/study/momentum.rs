//! Study of single rings against momentum: efficiency, and separation of pions and muons by the
//! radius.

use pollux_pmd::lcore::StopFlag;
use serde::Serialize;

use super::rate::{Moments, Rate};
use super::{STRONG, Study, StudyError};
use crate::physics::model::{ModelConfig, Rings};
use crate::physics::score::purity::owner_of;
use crate::physics::score::{is_asked_for, matches};
use crate::rich::geometry::ring_radius_mm;
use crate::rich::particle::Particle;

/// Momenta in GeV/c: the range of the RICH.
pub const MOMENTA: [f64; 9] = [15.0, 17.5, 20.0, 22.5, 25.0, 27.5, 30.0, 32.5, 35.0];
/// The particles, in the order of the model's shares.
pub const PARTICLES: [Particle; 3] = [Particle::Muon, Particle::Pion, Particle::Electron];

/// Single rings of one particle type at one momentum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MomentumRow {
    /// muon, pion or electron.
    pub particle: &'static str,
    /// Momentum in GeV/c.
    pub momentum: f64,
    /// Events judged.
    pub events: u64,
    /// True radius in mm.
    pub radius_mm: Option<f64>,
    /// Photomultipliers that saw light of a ring, on average.
    pub hits: Option<f64>,
    /// Found rings per ring, whatever its number of hits.
    pub efficiency_all: Rate,
    /// Statistical error of [`efficiency_all`](Self::efficiency_all).
    pub efficiency_all_error: Option<f64>,
    /// Found rings per ring with at least 5 hits.
    pub efficiency: Rate,
    /// Statistical error of [`efficiency`](Self::efficiency).
    pub efficiency_error: Option<f64>,
    /// Found rings per ring with at least 7 hits.
    pub efficiency_7: Rate,
    /// Statistical error of [`efficiency_7`](Self::efficiency_7).
    pub efficiency_7_error: Option<f64>,
    /// Mean of the fitted radius, of rings that are matched by the purity of their hits: no tail of
    /// the radius is cut off.
    pub fitted_mm: Option<f64>,
    /// Its standard deviation.
    pub spread_mm: Option<f64>,
    /// Statistical error of the standard deviation.
    pub spread_error_mm: Option<f64>,
    /// Rings that are found and look like a pion's: the radius is below the middle between those of
    /// pion and muon, per found ring.
    pub as_pion: Rate,
    /// Statistical error of [`as_pion`](Self::as_pion).
    pub as_pion_error: Option<f64>,
}

/// Separation of pions and muons of one momentum by the fitted radius.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeparationRow {
    /// Momentum in GeV/c.
    pub momentum: f64,
    /// Difference of the mean fitted radii in mm.
    pub distance_mm: Option<f64>,
    /// The same, over the root mean square of both standard deviations.
    pub sigmas: Option<f64>,
    /// Pions among the found pion rings that are below the middle.
    pub pions_kept: Rate,
    /// Statistical error of [`pions_kept`](Self::pions_kept).
    pub pions_kept_error: Option<f64>,
    /// Muons among the found muon rings that are below the middle.
    pub muons_as_pions: Rate,
    /// Statistical error of [`muons_as_pions`](Self::muons_as_pions).
    pub muons_as_pions_error: Option<f64>,
}

impl Study {
    /// One row for each particle and momentum; the completed ones, if it is stopped.
    ///
    /// # Errors
    /// Impossible parameters of the finder.
    pub fn momenta(&self, stop: &StopFlag) -> Result<Vec<MomentumRow>, StudyError> {
        let mut rows = Vec::new();
        for (place, particle) in PARTICLES.into_iter().enumerate() {
            for momentum in MOMENTA {
                let mut particles = [0.0; PARTICLES.len()];
                particles
                    .iter_mut()
                    .skip(place)
                    .take(1)
                    .for_each(|share| *share = 1.0);
                let model = ModelConfig {
                    rings: Rings::Fixed(1),
                    momentum: [momentum; 2],
                    particles,
                    ..ModelConfig::default()
                };
                rows.extend(self.momentum(particle, momentum, &model, stop)?);
            }
        }
        Ok(rows)
    }

    fn momentum(
        &self,
        particle: Particle,
        momentum: f64,
        model: &ModelConfig,
        stop: &StopFlag,
    ) -> Result<Option<MomentumRow>, StudyError> {
        let cfg = self.finder;
        let radius = |particle: Particle| ring_radius_mm(momentum, particle.mass()).map(f64::from);
        let middle = radius(Particle::Muon)
            .zip(radius(Particle::Pion))
            .map(|(muon, pion)| f64::midpoint(muon, pion));
        let (mut events, mut hits, mut fitted) = (0, Moments::default(), Moments::default());
        let [mut all, mut asked, mut strong, mut as_pion] = [Rate::default(); 4];
        let done = self.each(model, stop, |event, fits| {
            events += 1;
            let Some(ring) = event.rings.first() else {
                return;
            };
            hits.add(ring.hits.into());
            let is_found = matches(&event.rings, fits).contains(&Some(0));
            all.count(is_found);
            if is_asked_for(&event.rings, 0) {
                asked.count(is_found);
                if ring.hits >= STRONG {
                    strong.count(is_found);
                }
            }
            let own = |fit: &&_| owner_of(event, fit, &cfg) == Some(0);
            if let Some(fit) = fits.iter().find(own) {
                fitted.add(fit.r.into());
                as_pion.count(middle.is_some_and(|middle| f64::from(fit.r) < middle));
            }
        })?;
        Ok(done.then(|| MomentumRow {
            particle: particle.name(),
            momentum,
            events,
            radius_mm: radius(particle),
            hits: hits.mean(),
            efficiency_all: all,
            efficiency_all_error: all.error(),
            efficiency: asked,
            efficiency_error: asked.error(),
            efficiency_7: strong,
            efficiency_7_error: strong.error(),
            fitted_mm: fitted.mean(),
            spread_mm: fitted.deviation(),
            spread_error_mm: fitted
                .rms_error()
                .zip(fitted.rms())
                .zip(fitted.deviation())
                .map(
                    // Error of the standard deviation, not of the root mean square.
                    |((error, rms), deviation)| error * deviation / rms,
                ),
            as_pion,
            as_pion_error: as_pion.error(),
        }))
    }
}

/// Pions and muons of the same momentum.
#[must_use]
pub fn separation(rows: &[MomentumRow]) -> Vec<SeparationRow> {
    let of = |particle: Particle, momentum: f64| {
        rows.iter()
            .find(|row| row.particle == particle.name() && (row.momentum - momentum).abs() < 1e-9)
    };
    let pairs = MOMENTA
        .into_iter()
        .filter_map(|momentum| of(Particle::Pion, momentum).zip(of(Particle::Muon, momentum)));
    pairs
        .map(|(pion, muon)| {
            let distance = muon.fitted_mm.zip(pion.fitted_mm).map(|(a, b)| a - b);
            let spread = muon.spread_mm.zip(pion.spread_mm);
            let spread = spread.map(|(a, b)| f64::midpoint(a * a, b * b).sqrt());
            SeparationRow {
                momentum: pion.momentum,
                distance_mm: distance,
                sigmas: distance
                    .zip(spread)
                    .map(|(distance, spread)| distance / spread),
                pions_kept: pion.as_pion,
                pions_kept_error: pion.as_pion_error,
                muons_as_pions: muon.as_pion,
                muons_as_pions_error: muon.as_pion_error,
            }
        })
        .collect()
}
