//! The events that the emulated detector sees, with the truth about them.
//!
//! A model of a RICH event, not a simulation of the detector: particles of given momentum and
//! kind, a Cherenkov ring each, light that falls evenly on the ring into hexagonal light
//! cones, and noise. Event `n` of seed `s` is a function of (`s`, `n`) alone: events can be made
//! in any order, on any core, twice.

use std::f32::consts::TAU;

use pollux_pipelines::rich::Hit;
use pollux_pipelines::rich::geometry::{
    ACCEPTANCE_MM, DISKS, FOCAL_LENGTH_MM, PMS, REFRACTIVITY, board_of, pm_at, ring_radius_mm,
};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// Masses in GeV/c2 (Particle Data Group): muon, charged pion, electron.
const MASSES: [f64; 3] = [0.105_658, 0.139_570, 0.000_511];
/// Units of the fine time in a nanosecond.
const FINE_PER_NS: f32 = 256.0 / 25.0;
/// Rings that are made to learn how many hits a ring has on average.
const CALIBRATION_RINGS: u32 = 2000;

/// How many rings an event has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rings {
    /// The same number always.
    Fixed(u32),
    /// A Poisson distribution of this mean.
    Poisson(f64),
}

/// What the events look like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Rings in an event.
    pub rings: Rings,
    /// Smallest and largest momentum in GeV/c; evenly distributed between.
    pub momentum: [f64; 2],
    /// Relative shares of muons, pions and electrons.
    pub particles: [f64; 3],
    /// Mean number of photons of a particle of speed c. A particle's light goes with the sine
    /// squared of its Cherenkov angle (Frank and Tamm).
    pub photons: f64,
    /// Noise hits per signal hit, on average over all events; noise does not know of the rings
    /// in its event, falls evenly on all photomultipliers, at any time in the slot.
    pub noise: f64,
    /// Time resolution of a hit, standard deviation in ns.
    pub jitter_ns: f64,
}

impl Default for ModelConfig {
    /// A beam of kaon decays in the RICH's range of momentum: rings of 13 to 20 hits mostly.
    fn default() -> Self {
        Self {
            rings: Rings::Poisson(1.5),
            momentum: [15.0, 35.0],
            particles: [0.65, 0.27, 0.08],
            photons: 20.0,
            noise: 0.1,
            jitter_ns: 0.3,
        }
    }
}

/// Why a [`ModelConfig`] is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The number of rings is negative, not a number, or beyond what fits a detector.
    #[error("the mean number of rings must be from 0 to 16")]
    Rings,
    /// The momenta are in the wrong order, or a particle gives no light at the lowest of them.
    #[error("momenta must ascend, and be above 13 GeV/c where there are pions (10 for muons)")]
    Momentum,
    /// The shares are negative or all zero.
    #[error("the shares of the particles must not be negative, nor all zero")]
    Particles,
    /// The amount of light, noise or jitter is out of range.
    #[error("photons must be from 1 to 200, noise from 0 to 10, jitter_ns from 0 to 5")]
    Light,
}

/// A ring as it was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueRing {
    /// Disk: 0 Jura, 1 Saleve.
    pub disk: u8,
    /// Centre in mm from the disk's centre.
    pub x: f32,
    /// Centre in mm from the disk's centre.
    pub y: f32,
    /// Radius in mm.
    pub r: f32,
    /// Photomultipliers that saw light of this ring.
    pub hits: u16,
}

impl TrueRing {
    /// Fewest hits of a ring that a finder is asked to find.
    pub const MIN_HITS: u16 = 5;

    /// Whether a finder is asked to find the ring: hits enough, and the centre inside the
    /// acceptance.
    #[must_use]
    pub fn is_findable(&self) -> bool {
        self.hits >= Self::MIN_HITS && self.x.hypot(self.y) <= ACCEPTANCE_MM
    }
}

/// One event: what happened and what the detector saw. Reuse one, so that its memory is
/// allocated once.
#[derive(Clone, Debug, Default)]
pub struct TruthEvent {
    /// The rings in it.
    pub rings: Vec<TrueRing>,
    /// All hits, sorted by photomultiplier, each at most once.
    pub hits: Vec<Hit>,
    /// How many of the hits are noise alone.
    pub noise: u32,
}

impl TruthEvent {
    /// The hits that readout board `board` of `boards` sees, sorted by photomultiplier.
    #[must_use]
    pub fn board_hits(&self, board: u8, boards: u8) -> &[Hit] {
        // The boards' photomultipliers are contiguous and the hits are sorted.
        let first = self
            .hits
            .partition_point(|hit| board_of(hit.pm, boards) < board);
        let end = self
            .hits
            .partition_point(|hit| board_of(hit.pm, boards) <= board);
        &self.hits[first..end]
    }
}

/// A set of photomultipliers.
type PmSet = [u64; PMS.div_ceil(64)];

/// Puts `pm` into `set`; whether it was not there before.
fn insert(set: &mut PmSet, pm: u16) -> bool {
    let (word, bit) = (usize::from(pm) / 64, 1u64 << (pm % 64));
    let new = set[word] & bit == 0;
    set[word] |= bit;
    new
}

/// Makes events.
#[derive(Clone, Debug)]
pub struct EventModel {
    cfg: ModelConfig,
    /// Upper ends of the shares of muons and pions in 0..1.
    shares: [f64; 2],
    /// `None` where the number of rings is fixed, or its mean is zero.
    rings: Option<Poisson<f64>>,
    noise: Option<Poisson<f64>>,
    jitter: Normal<f32>,
}

/// A Poisson distribution; `None` for a mean of zero.
fn poisson(mean: f64) -> Option<Poisson<f64>> {
    Poisson::new(mean).ok()
}

/// Light of a ring of radius `r` mm, relative to that of a particle of speed c: the squares of
/// the sines of the Cherenkov angles.
fn relative_light(r: f32) -> f64 {
    let sin2 = |tan: f64| tan * tan / (1.0 + tan * tan);
    let n = 1.0 + REFRACTIVITY;
    sin2(f64::from(r) / FOCAL_LENGTH_MM) / (1.0 - 1.0 / (n * n))
}

impl EventModel {
    /// Prepares the model.
    ///
    /// # Errors
    /// A [`ModelError`] that names what is out of range.
    pub fn new(cfg: ModelConfig) -> Result<Self, ModelError> {
        let mean_rings = match cfg.rings {
            Rings::Fixed(n) => f64::from(n),
            Rings::Poisson(mean) => mean,
        };
        if !(0.0..=16.0).contains(&mean_rings) {
            return Err(ModelError::Rings);
        }
        let total: f64 = cfg.particles.iter().sum();
        let none_negative = cfg.particles.iter().all(|&share| share >= 0.0);
        if !(none_negative && total > 0.0 && total.is_finite()) {
            return Err(ModelError::Particles);
        }
        let light_in_range = (1.0..=200.0).contains(&cfg.photons)
            && (0.0..=10.0).contains(&cfg.noise)
            && (0.0..=5.0).contains(&cfg.jitter_ns);
        let jitter = Normal::new(0.0, cfg.jitter_ns as f32 * FINE_PER_NS);
        let (true, Ok(jitter)) = (light_in_range, jitter) else {
            return Err(ModelError::Light);
        };

        let [low, high] = cfg.momentum;
        if !(low <= high && high.is_finite()) {
            return Err(ModelError::Momentum);
        }
        for (mass, share) in MASSES.into_iter().zip(cfg.particles) {
            if share > 0.0 && ring_radius_mm(low, mass).is_none() {
                return Err(ModelError::Momentum);
            }
        }

        let mut model = Self {
            cfg,
            shares: [
                cfg.particles[0] / total,
                (cfg.particles[0] + cfg.particles[1]) / total,
            ],
            rings: match cfg.rings {
                Rings::Fixed(_) => None,
                Rings::Poisson(mean) => poisson(mean),
            },
            noise: None,
            jitter,
        };
        model.noise = poisson(cfg.noise * mean_rings * model.hits_per_ring());
        Ok(model)
    }

    /// Mean number of hits of a ring. It is less than that of its photons, of which several
    /// fall into one cell or none at all: made rings say it more simply than a formula.
    fn hits_per_ring(&self) -> f64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut hits = Vec::new();
        let mut total = 0;
        for _ in 0..CALIBRATION_RINGS {
            hits.clear();
            self.ring(&mut rng, 0.0, &mut [0; _], &mut hits);
            total += hits.len();
        }
        total as f64 / f64::from(CALIBRATION_RINGS)
    }

    /// The configuration that the model was made from.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.cfg
    }

    /// Makes event `n` of seed `seed` in `out`, whose former content is lost.
    pub fn event(&self, seed: u64, n: u64, out: &mut TruthEvent) {
        // The generator is seeded through SplitMix64, which scatters neighbouring numbers; the
        // odd factor keeps (seed, n) apart from (seed + 1, n - 1).
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(
            seed.wrapping_mul(0xD1B5_4A32_D192_ED03) ^ n.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        );
        out.rings.clear();
        out.hits.clear();

        let rings = match (self.cfg.rings, &self.rings) {
            (Rings::Fixed(n), _) => n,
            (Rings::Poisson(_), Some(poisson)) => poisson.sample(&mut rng) as u32,
            (Rings::Poisson(_), None) => 0,
        };
        // One decay, one time: the light of all its particles arrives together.
        let time: f32 = rng.random_range(0.0..256.0);
        let mut lit: PmSet = [0; _];
        for _ in 0..rings {
            let ring = self.ring(&mut rng, time, &mut lit, &mut out.hits);
            out.rings.push(ring);
        }

        let signal = out.hits.len();
        let noise = self
            .noise
            .map_or(0, |poisson| poisson.sample(&mut rng) as u32);
        for _ in 0..noise {
            let pm = rng.random_range(0..PMS as u16);
            if insert(&mut lit, pm) {
                out.hits.push(Hit {
                    pm,
                    fine: rng.random(),
                });
            }
        }
        out.noise = (out.hits.len() - signal) as u32;
        out.hits.sort_unstable_by_key(|hit| hit.pm);
    }

    /// Makes one ring and adds its light to `hits`. A photomultiplier is read once an event:
    /// light on one that is lit already counts for the ring, but makes no second hit.
    fn ring(
        &self,
        rng: &mut Xoshiro256PlusPlus,
        time: f32,
        lit: &mut PmSet,
        hits: &mut Vec<Hit>,
    ) -> TrueRing {
        let kind: f64 = rng.random();
        let mass =
            MASSES[usize::from(kind >= self.shares[0]) + usize::from(kind >= self.shares[1])];
        let [low, high] = self.cfg.momentum;
        let momentum = low + (high - low) * rng.random::<f64>();
        // `new` refused momenta below the threshold.
        let r = ring_radius_mm(momentum, mass).unwrap_or(0.0);
        // The square root makes the centres evenly distributed over the acceptance.
        let (sin, cos) = (TAU * rng.random::<f32>()).sin_cos();
        let centre = ACCEPTANCE_MM * rng.random::<f32>().sqrt();
        let disk = rng.random_range(0..DISKS as u8);
        let mut ring = TrueRing {
            disk,
            x: centre * cos,
            y: centre * sin,
            r,
            hits: 0,
        };

        let photons = poisson(self.cfg.photons * relative_light(r))
            .map_or(0, |poisson| poisson.sample(rng) as u32);
        let mut own: PmSet = [0; _];
        for _ in 0..photons {
            let (sin, cos) = (TAU * rng.random::<f32>()).sin_cos();
            let Some(pm) = pm_at(disk, ring.x + r * cos, ring.y + r * sin) else {
                continue;
            };
            ring.hits += u16::from(insert(&mut own, pm));
            if insert(lit, pm) {
                // Times beyond the slot are read in the slot, at its edge; the cast saturates.
                let fine = (time + self.jitter.sample(rng)) as u8;
                hits.push(Hit { pm, fine });
            }
        }
        ring
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use pollux_pipelines::rich::geometry::POSITIONS;

    use super::*;

    fn model() -> EventModel {
        EventModel::new(ModelConfig::default()).unwrap()
    }

    #[test]
    fn an_event_depends_on_seed_and_number_alone() {
        let model = model();
        let (mut a, mut b) = (TruthEvent::default(), TruthEvent::default());
        let mut different = 0;
        for n in (0..200).rev() {
            model.event(7, n, &mut a);
            model.event(7, 1000 + n, &mut b);
            different += u32::from(a.hits != b.hits);
            model.event(8, n, &mut b);
            different += u32::from(a.hits != b.hits);
            model.event(7, n, &mut b);
            assert_eq!((&a.hits, &a.rings, a.noise), (&b.hits, &b.rings, b.noise));
        }
        // All but the pairs of two empty events.
        assert!(different > 340, "{different}");
    }

    #[test]
    fn hits_are_sorted_unique_and_shared_out_to_the_boards() {
        let model = model();
        let mut event = TruthEvent::default();
        for n in 0..500 {
            model.event(1, n, &mut event);
            assert!(event.hits.windows(2).all(|pair| pair[0].pm < pair[1].pm));
            for boards in [1, 3, 4, 16] {
                let parts: Vec<Hit> = (0..boards)
                    .flat_map(|board| event.board_hits(board, boards).to_vec())
                    .collect();
                assert_eq!(parts, event.hits);
                for board in 0..boards {
                    let hits = event.board_hits(board, boards);
                    assert!(hits.iter().all(|hit| board_of(hit.pm, boards) == board));
                }
            }
        }
    }

    #[test]
    fn figures_are_those_of_the_configuration() {
        let model = model();
        let mut event = TruthEvent::default();
        let (events, mut rings, mut hits, mut signal, mut noise) = (20_000, 0, 0, 0, 0);
        let (mut off, mut square) = (0.0f64, 0.0f64);
        for n in 0..events {
            model.event(3, n, &mut event);
            rings += event.rings.len();
            hits += event
                .rings
                .iter()
                .map(|ring| usize::from(ring.hits))
                .sum::<usize>();
            signal += event.hits.len() - event.noise as usize;
            noise += event.noise as usize;
            if let ([ring], 0) = (&event.rings[..], event.noise) {
                for hit in &event.hits {
                    let [x, y] = POSITIONS[usize::from(hit.pm)];
                    let d = f64::from((x - ring.x).hypot(y - ring.y) - ring.r);
                    square += d * d;
                    off += 1.0;
                }
            }
        }
        let per = |a: usize, b: usize| a as f64 / b as f64;
        assert!((per(rings, events as usize) - 1.5).abs() < 0.03);
        assert!(
            (per(noise, signal) - 0.1).abs() < 0.006,
            "{}",
            per(noise, signal)
        );
        assert!(
            (14.0..18.0).contains(&per(hits, rings)),
            "{}",
            per(hits, rings)
        );
        // A hexagonal cell of pitch p has a variance of 5/72 p^2 in any direction.
        assert!((square / off - 22.5).abs() < 1.0, "{}", square / off);
    }

    #[test]
    fn configurations_out_of_range_are_refused() {
        let default = ModelConfig::default();
        for (cfg, error) in [
            (
                ModelConfig {
                    rings: Rings::Poisson(-1.0),
                    ..default
                },
                ModelError::Rings,
            ),
            (
                ModelConfig {
                    rings: Rings::Poisson(f64::NAN),
                    ..default
                },
                ModelError::Rings,
            ),
            (
                ModelConfig {
                    rings: Rings::Fixed(1000),
                    ..default
                },
                ModelError::Rings,
            ),
            (
                ModelConfig {
                    momentum: [5.0, 35.0],
                    ..default
                },
                ModelError::Momentum,
            ),
            (
                ModelConfig {
                    momentum: [35.0, 15.0],
                    ..default
                },
                ModelError::Momentum,
            ),
            (
                ModelConfig {
                    particles: [0.0; 3],
                    ..default
                },
                ModelError::Particles,
            ),
            (
                ModelConfig {
                    particles: [-1.0, 2.0, 0.0],
                    ..default
                },
                ModelError::Particles,
            ),
            (
                ModelConfig {
                    photons: 0.0,
                    ..default
                },
                ModelError::Light,
            ),
            (
                ModelConfig {
                    noise: -0.1,
                    ..default
                },
                ModelError::Light,
            ),
            (
                ModelConfig {
                    jitter_ns: f64::INFINITY,
                    ..default
                },
                ModelError::Light,
            ),
        ] {
            assert_eq!(EventModel::new(cfg).err(), Some(error), "{cfg:?}");
        }
        let electrons = ModelConfig {
            momentum: [5.0, 35.0],
            particles: [0.0, 0.0, 1.0],
            ..default
        };
        assert!(EventModel::new(electrons).is_ok());
    }

    #[test]
    fn no_rings_and_no_noise_is_an_empty_event() {
        let mut event = TruthEvent::default();
        model().event(1, 1, &mut event);
        for rings in [Rings::Fixed(0), Rings::Poisson(0.0)] {
            let model = EventModel::new(ModelConfig {
                rings,
                ..ModelConfig::default()
            })
            .unwrap();
            model.event(1, 1, &mut event);
            assert!(event.rings.is_empty() && event.hits.is_empty() && event.noise == 0);
        }
    }
}
