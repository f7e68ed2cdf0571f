//! What the emulated events look like.

use crate::rich::geometry::{PITCH_MM, ring_radius_mm};
use crate::rich::particle::Particle;
use serde::{Deserialize, Serialize};

/// Masses in GeV/c2 of muon, charged pion and electron.
pub const MASSES: [f64; 3] = [
    Particle::Muon.mass(),
    Particle::Pion.mass(),
    Particle::Electron.mass(),
];

/// How many rings an event has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rings {
    /// The same number always.
    Fixed(u32),
    /// A Poisson distribution of this mean.
    Poisson(f64),
}

impl Rings {
    /// The mean number.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed(n) => f64::from(n),
            Self::Poisson(mean) => mean,
        }
    }
}

/// What becomes of a hit whose time is beyond the slot of its event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotEdges {
    /// It is reported at the edge of the slot of its event.
    #[default]
    Clip,
    /// It is reported at its true time, in the slot before or behind: all boards then have an event
    /// for that slot too.
    Carry,
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
    /// Mean number of photons that a particle of speed c sends to the plane of the light cones. A
    /// particle's light goes with the sine squared of its Cherenkov angle (Frank and Tamm). What
    /// falls between the cones is lost.
    pub photons: f64,
    /// The part of the photons inside a cone that is seen: cone, window and photocathode together.
    pub quantum_efficiency: f64,
    /// Diameter of a light cone's round opening in mm. Cones of 18 mm touch each other on the
    /// lattice of 18 mm and cover pi / (2 sqrt(3)) = 0.907 of the plane; from 20.79 mm on each
    /// covers its whole hexagonal cell.
    pub cone_mm: f64,
    /// The part of the channels that are dead, 0 to 0.5: neither light nor noise is read there.
    pub dead: f64,
    /// Seed of the choice of the dead channels, which is the same for all events.
    pub dead_seed: u64,
    /// Noise hits per signal hit, on average over all events; noise does not know of the rings
    /// in its event, falls evenly on all photomultipliers, at any time in the slot.
    pub noise: f64,
    /// Time resolution of a hit, standard deviation in ns.
    pub jitter_ns: f64,
    /// What becomes of a hit whose time is beyond the slot of its event.
    pub slot_edges: SlotEdges,
    /// The part of the tracks that pass so near to the border of the two halves of the mirrors that
    /// both disks see light of them: at distances spread evenly from 0 to the radius of the ring.
    pub shared: f64,
    /// Mean number of further events whose light falls into the slot of an event, each at a time
    /// of its own: the rate of events times 25 ns (10 MHz: 0.25).
    pub pileup: f64,
    /// Mean number of halo muons in the slot of an event: not of a decay, at any time, with
    /// momenta up to 75 GeV/c, and so inclined that their rings lie outside the acceptance.
    pub halo: f64,
}

impl Default for ModelConfig {
    /// Kaon decays in the RICH's range of momentum, with the light of the real detector: a ring of
    /// a particle of speed c has 14 hits on average, as positrons in the NA62 RICH have ("Precise
    /// mirror alignment and basic performance of the RICH detector of the NA62 experiment at
    /// CERN", G. Anzivino et al., JINST 13 (2018) P07012), and one of a pion of 15 GeV/c has 4 to 5.
    fn default() -> Self {
        Self {
            rings: Rings::Poisson(1.5),
            momentum: [15.0, 35.0],
            particles: [0.65, 0.27, 0.08],
            photons: 100.0,
            quantum_efficiency: 0.173,
            cone_mm: 18.0,
            dead: 0.005,
            dead_seed: 1,
            noise: 0.1,
            jitter_ns: 0.3,
            slot_edges: SlotEdges::default(),
            shared: 0.0,
            pileup: 0.0,
            halo: 0.0,
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
    #[error(
        "photons must be from 1 to 1000, quantum_efficiency above 0 and up to 1, noise from 0 to \
         10, jitter_ns from 0 to 5"
    )]
    Light,
    /// A light cone is too small or too large, or too many channels are dead.
    #[error("cone_mm must be from 1 to 21, dead from 0 to 0.5, dead_seed from 0 to 2^63 - 1")]
    Cones,
    /// The number of other particles in an event's slot is out of range.
    #[error("pileup and halo must be from 0 to 8, shared from 0 to 1")]
    Overlap,
}

impl ModelConfig {
    /// Standard deviation of the place of a hit in any direction, in mm: that of light spread evenly
    /// over a round cone (a quarter of its diameter), which is at most its hexagonal cell (the root of
    /// 5/72 of the pitch).
    #[must_use]
    pub fn hit_error_mm(&self) -> f64 {
        (self.cone_mm / 4.0).min((5.0_f64 / 72.0).sqrt() * f64::from(PITCH_MM))
    }

    /// Checks every value against its range.
    pub(super) fn validate(&self) -> Result<(), ModelError> {
        if !(0.0..=16.0).contains(&self.rings.mean()) {
            return Err(ModelError::Rings);
        }
        let total: f64 = self.particles.iter().sum();
        let none_negative = self.particles.iter().all(|&share| share >= 0.0);
        if !(none_negative && total > 0.0 && total.is_finite()) {
            return Err(ModelError::Particles);
        }
        let efficiency = self.quantum_efficiency;
        if !((1.0..=1000.0).contains(&self.photons)
            && efficiency > 0.0
            && efficiency <= 1.0
            && (0.0..=10.0).contains(&self.noise)
            && (0.0..=5.0).contains(&self.jitter_ns))
        {
            return Err(ModelError::Light);
        }
        // TOML has no larger number than 2^63 - 1.
        if !((1.0..=21.0).contains(&self.cone_mm)
            && (0.0..=0.5).contains(&self.dead)
            && i64::try_from(self.dead_seed).is_ok())
        {
            return Err(ModelError::Cones);
        }
        if ![self.pileup, self.halo]
            .iter()
            .all(|mean| (0.0..=8.0).contains(mean))
            || !(0.0..=1.0).contains(&self.shared)
        {
            return Err(ModelError::Overlap);
        }
        let [low, high] = self.momentum;
        if !(low <= high && high.is_finite()) {
            return Err(ModelError::Momentum);
        }
        for (mass, share) in MASSES.into_iter().zip(self.particles) {
            if share > 0.0 && ring_radius_mm(low, mass).is_none() {
                return Err(ModelError::Momentum);
            }
        }
        Ok(())
    }
}
