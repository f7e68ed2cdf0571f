//! The events that the emulated detector sees, with the truth about them.
//!
//! A model of a RICH event, not a simulation of the detector: particles of given momentum and
//! kind, a Cherenkov ring each, light that falls evenly on the ring and is seen where it meets a
//! round light cone of a working channel, noise, and what else is in the slot of the event:
//! other events and halo muons. Event `n` of seed `s` is a function of (`s`, `n`) alone: events
//! can be made in any order, on any core, twice.
//!
//! The mirrors are two halves, which send their light to a disk each. Light of a track that passes
//! near their border reaches both: a photon that is emitted at angle phi, a part u of the radiator
//! before the mirrors, meets them u r cos(phi) from the track towards the border (r is the radius
//! of the ring, as focal length and radiator are equally long), and where that is beyond the
//! border the photon is seen on the other disk. Both halves image a direction at the same place
//! of their disks, so the parts of a ring have one centre and one radius, and a ring is two
//! [`TrueRing`]s of one particle.

mod cones;
mod config;
mod pm_set;

use std::f32::consts::TAU;
use std::ops::Range;

use crate::rich::Hit;
use crate::rich::geometry::{
    ACCEPTANCE_MM, DISKS, FOCAL_LENGTH_MM, PMS, REFRACTIVITY, board_of, ring_radius_mm,
};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;

use self::cones::Cones;
use self::pm_set::{PmSet, insert};
pub use config::{MASSES, ModelConfig, ModelError, Rings, SlotEdges};

/// Units of the fine time in a slot.
const SLOT: i16 = 256;
/// Units of the fine time in a nanosecond.
const FINE_PER_NS: f32 = 256.0 / 25.0;
/// Rings that are made to learn how many hits a ring has on average.
const CALIBRATION_RINGS: u32 = 2000;
/// Momenta of halo muons in GeV/c, evenly distributed between.
const HALO_MOMENTUM: [f64; 2] = [15.0, 75.0];
/// Rings that an event hardly ever exceeds, with a mean of 16 at most.
const MOST_RINGS: usize = 128;
/// Where the centres of halo rings are: distance from the disk's centre, in units of the
/// acceptance.
const HALO_CENTRES: Range<f32> = 1.0..2.0;

/// Where the light of a ring comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The event itself.
    #[default]
    Event,
    /// Another event in its slot.
    PileUp,
    /// A halo muon.
    Halo,
}

/// A ring as it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    /// When its light arrives, in units of 25/256 ns since the start of the slot.
    pub time: f32,
    /// Momentum of the particle in GeV/c.
    pub momentum: f32,
    /// Mass of the particle in GeV/c2.
    pub mass: f32,
    /// Where it comes from.
    pub origin: Origin,
    /// Number of the particle in its event: the two parts of a ring that both disks share have
    /// the same.
    pub particle: u16,
}

impl TrueRing {
    /// Fewest hits of a ring that a finder is asked to find.
    pub const MIN_HITS: u16 = 5;

    /// Whether a finder is asked to find the ring: hits enough, and the centre inside the
    /// acceptance.
    #[must_use]
    pub fn is_findable(&self) -> bool {
        self.hits >= Self::MIN_HITS && self.is_in_acceptance()
    }

    /// Whether the centre is inside the acceptance.
    #[must_use]
    pub fn is_in_acceptance(&self) -> bool {
        self.x.hypot(self.y) <= ACCEPTANCE_MM
    }
}

/// A hit whose time is in the slot before or behind that of its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The slot behind, else the one before.
    pub is_later: bool,
    /// The hit, with its time in that slot.
    pub hit: Hit,
}

/// One event: what happened and what the detector saw. Reuse one, so that its memory is
/// allocated once.
#[derive(Clone, Debug, Default)]
pub struct TruthEvent {
    /// The rings in its slot: its own first, then those of other events, then halo.
    pub rings: Vec<TrueRing>,
    /// The hits in the slot of the event, sorted by photomultiplier, each at most once.
    pub hits: Vec<Hit>,
    /// For each of them the rings whose light is in it: bit i for ring i of `rings`, for the first
    /// 64. None for noise.
    pub links: Vec<u64>,
    /// The hits in the slots beside, sorted by photomultiplier; a photomultiplier that has a hit
    /// there has none in `hits`. Empty but with [`SlotEdges::Carry`].
    pub carried: Vec<Carried>,
    /// How many of the hits are noise alone.
    pub noise: u32,
    /// What is lit, in the order in which it was made.
    lit: Vec<Lit>,
}

impl TruthEvent {
    /// An event whose memory any other one fits.
    #[must_use]
    pub fn roomy() -> Self {
        Self {
            rings: Vec::with_capacity(MOST_RINGS),
            hits: Vec::with_capacity(PMS),
            links: Vec::with_capacity(PMS),
            carried: Vec::with_capacity(PMS),
            noise: 0,
            lit: Vec::with_capacity(PMS),
        }
    }

    /// The hits that readout board `board` of `boards` sees, sorted by photomultiplier.
    #[must_use]
    pub fn board_hits(&self, board: u8, boards: u8) -> &[Hit] {
        board_hits(&self.hits, board, boards)
    }
}

/// Of hits that are sorted by photomultiplier, those that readout board `board` of `boards` sees.
#[must_use]
pub fn board_hits(hits: &[Hit], board: u8, boards: u8) -> &[Hit] {
    // The boards' photomultipliers are contiguous.
    let first = hits.partition_point(|hit| board_of(hit.pm, boards) < board);
    let end = hits.partition_point(|hit| board_of(hit.pm, boards) <= board);
    &hits[first..end]
}

/// A photomultiplier that saw light or noise in an event.
#[derive(Clone, Copy, Debug)]
struct Lit {
    pm: u16,
    /// Time since the start of the slot, in units of 25/256 ns.
    time: i16,
    /// The rings whose light it saw: bit i for ring i.
    rings: u64,
}

/// What the particles of one source have in common.
struct Source {
    momentum: [f64; 2],
    /// Upper ends of the shares of muons and pions in 0..1.
    shares: [f64; 2],
    /// Distance of their rings' centres from the disk's, in units of the acceptance.
    centres: Range<f32>,
    /// When their light arrives.
    time: f32,
    origin: Origin,
}

/// Makes events.
#[derive(Clone, Debug)]
pub struct EventModel {
    cfg: ModelConfig,
    cones: Cones,
    /// Upper ends of the shares of muons and pions in 0..1.
    shares: [f64; 2],
    /// Of the following, `None` where the number is fixed, or its mean is zero.
    rings: Option<Poisson<f64>>,
    noise: Option<Poisson<f64>>,
    pileup: Option<Poisson<f64>>,
    halo: Option<Poisson<f64>>,
    jitter: Normal<f32>,
}

/// A Poisson distribution; `None` for a mean of zero.
fn poisson(mean: f64) -> Option<Poisson<f64>> {
    Poisson::new(mean).ok()
}

/// A number from a distribution; zero where there is none.
fn draw(poisson: Option<Poisson<f64>>, rng: &mut Xoshiro256PlusPlus) -> u32 {
    poisson.map_or(0, |poisson| poisson.sample(rng) as u32)
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
        cfg.validate()?;
        let jitter = Normal::new(0.0, cfg.jitter_ns as f32 * FINE_PER_NS);
        let jitter = jitter.map_err(|_| ModelError::Light)?;
        let total: f64 = cfg.particles.iter().sum();
        let mut model = Self {
            cfg,
            cones: Cones::new(&cfg),
            shares: [
                cfg.particles[0] / total,
                (cfg.particles[0] + cfg.particles[1]) / total,
            ],
            rings: match cfg.rings {
                Rings::Fixed(_) => None,
                Rings::Poisson(mean) => poisson(mean),
            },
            noise: None,
            pileup: poisson(cfg.pileup),
            halo: poisson(cfg.halo),
            jitter,
        };
        model.noise = poisson(cfg.noise * cfg.rings.mean() * model.hits_per_ring());
        Ok(model)
    }

    /// Mean number of hits of a ring. It is less than that of its photons, of which several
    /// fall into one cone or none at all: made rings say it more simply than a formula.
    fn hits_per_ring(&self) -> f64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let (mut rings, mut lit, mut total) = (Vec::new(), Vec::new(), 0);
        for _ in 0..CALIBRATION_RINGS {
            let mut slot = Slot::new(&mut rings, &mut lit);
            self.ring(&mut rng, &self.decay(0.0, Origin::Event), &mut slot);
            total += lit.len();
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
        let mut slot = Slot::new(&mut out.rings, &mut out.lit);
        let mut emit = |rng: &mut Xoshiro256PlusPlus, source: &Source, rings: u32| {
            (0..rings).for_each(|_| self.ring(rng, source, &mut slot));
        };
        let rings = |rng: &mut Xoshiro256PlusPlus| match self.cfg.rings {
            Rings::Fixed(n) => n,
            Rings::Poisson(_) => draw(self.rings, rng),
        };
        // One decay, one time: the light of all its particles arrives together.
        let own = rings(&mut rng);
        let time = rng.random_range(0.0..256.0);
        emit(&mut rng, &self.decay(time, Origin::Event), own);
        for _ in 0..draw(self.pileup, &mut rng) {
            let others = rings(&mut rng);
            let time = rng.random_range(0.0..256.0);
            emit(&mut rng, &self.decay(time, Origin::PileUp), others);
        }
        for _ in 0..draw(self.halo, &mut rng) {
            let muon = Source {
                momentum: HALO_MOMENTUM,
                shares: [1.0, 1.0],
                centres: HALO_CENTRES,
                time: rng.random_range(0.0..256.0),
                origin: Origin::Halo,
            };
            emit(&mut rng, &muon, 1);
        }

        let signal = slot.lit.len();
        for _ in 0..draw(self.noise, &mut rng) {
            let pm = rng.random_range(0..PMS as u16);
            let time = rng.random::<u8>().into();
            if self.cones.is_alive(pm) {
                slot.light(pm, time, 0);
            }
        }
        out.noise = (out.lit.len() - signal) as u32;
        self.read_out(out);
    }

    /// Makes the hits of what is lit.
    fn read_out(&self, out: &mut TruthEvent) {
        out.hits.clear();
        out.links.clear();
        out.carried.clear();
        out.lit.sort_unstable_by_key(|lit| lit.pm);
        for &Lit { pm, time, rings } in &out.lit {
            let inside = time.clamp(0, SLOT - 1);
            if inside == time || self.cfg.slot_edges == SlotEdges::Clip {
                let fine = inside as u16;
                out.hits.push(Hit { pm, fine });
                out.links.push(rings);
            } else {
                let is_later = time >= SLOT;
                let time = if is_later { time - SLOT } else { time + SLOT };
                // The resolution of a hit is far less than a slot.
                let fine = time.clamp(0, SLOT - 1) as u16;
                out.carried.push(Carried {
                    is_later,
                    hit: Hit { pm, fine },
                });
            }
        }
    }

    /// The particles of a decay.
    fn decay(&self, time: f32, origin: Origin) -> Source {
        Source {
            momentum: self.cfg.momentum,
            shares: self.shares,
            centres: 0.0..1.0,
            time,
            origin,
        }
    }

    /// Makes one ring and lights what its photons meet.
    fn ring(&self, rng: &mut Xoshiro256PlusPlus, source: &Source, slot: &mut Slot<'_>) {
        let kind: f64 = rng.random();
        let [muons, pions] = source.shares;
        let mass = MASSES[usize::from(kind >= muons) + usize::from(kind >= pions)];
        let [low, high] = source.momentum;
        let momentum = low + (high - low) * rng.random::<f64>();
        // `validate` refused momenta below the threshold.
        let r = ring_radius_mm(momentum, mass).unwrap_or(0.0);
        // The square root makes the centres evenly distributed over disk or annulus.
        let (sin, cos) = (TAU * rng.random::<f32>()).sin_cos();
        let [inner, outer] = [source.centres.start, source.centres.end].map(|edge| edge * edge);
        let centre = ACCEPTANCE_MM * (inner + (outer - inner) * rng.random::<f32>()).sqrt();
        let disk = rng.random_range(0..DISKS as u8);
        // How far the border of the mirrors is from the track, in units of the radius: light
        // reaches up to one.
        let border = if rng.random::<f64>() < self.cfg.shared {
            rng.random::<f32>()
        } else {
            1.0
        };
        let ring = TrueRing {
            disk,
            x: centre * cos,
            y: centre * sin,
            r,
            hits: 0,
            time: source.time,
            momentum: momentum as f32,
            mass: mass as f32,
            origin: source.origin,
            particle: slot.particles,
        };
        slot.particles += 1;
        let mut parts = [
            ring,
            TrueRing {
                disk: 1 - disk,
                ..ring
            },
        ];
        let first = slot.rings.len();

        // Each photon is seen or not by itself, so the number of those seen is Poisson as well.
        let seen = self.cfg.photons * self.cfg.quantum_efficiency * relative_light(r);
        let mut own: PmSet = [0; _];
        for _ in 0..draw(poisson(seen), rng) {
            let (sin, cos) = (TAU * rng.random::<f32>()).sin_cos();
            // The border is at larger x for the half that serves disk 0.
            let towards = if disk == 0 { cos } else { -cos };
            let crosses = border < 1.0 && rng.random::<f32>() * towards > border;
            let part = usize::from(crosses);
            let (x, y) = (ring.x + r * cos, ring.y + r * sin);
            let Some(pm) = self.cones.seen_at(parts[part].disk, x, y) else {
                continue;
            };
            parts[part].hits += u16::from(insert(&mut own, pm));
            let time = (source.time + self.jitter.sample(rng)).floor() as i16;
            slot.light(pm, time, link(first + part));
        }
        let [whole, other] = parts;
        slot.rings.push(whole);
        if other.hits > 0 {
            slot.rings.push(other);
        }
    }
}

/// The bit of ring `i` in the links of a hit; none for those beyond 64.
fn link(i: usize) -> u64 {
    u32::try_from(i)
        .ok()
        .and_then(|i| 1_u64.checked_shl(i))
        .unwrap_or(0)
}

/// What happens in the slot of an event.
struct Slot<'a> {
    rings: &'a mut Vec<TrueRing>,
    lit: &'a mut Vec<Lit>,
    set: PmSet,
    particles: u16,
}

impl<'a> Slot<'a> {
    /// An empty slot, which uses the memory of another one.
    fn new(rings: &'a mut Vec<TrueRing>, lit: &'a mut Vec<Lit>) -> Self {
        rings.clear();
        lit.clear();
        Self {
            rings,
            lit,
            set: [0; _],
            particles: 0,
        }
    }

    /// Light, or noise, in a photomultiplier, which is read once an event: light on one that is lit
    /// already counts for the ring, but makes no second hit.
    fn light(&mut self, pm: u16, time: i16, rings: u64) {
        if insert(&mut self.set, pm) {
            self.lit.push(Lit { pm, time, rings });
        } else if let Some(lit) = self.lit.iter_mut().find(|lit| lit.pm == pm) {
            lit.rings |= rings;
        }
    }
}

#[cfg(test)]
mod tests;
