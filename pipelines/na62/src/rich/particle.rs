//! Particle identification: the particle that emitted the light of a ring.

use super::find::Ring;
use super::geometry::{HIT_ERROR_MM, ring_radius_mm};

/// A charged particle that lives long enough to cross the detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Particle {
    /// Electron or positron.
    Electron,
    /// Muon.
    Muon,
    /// Charged pion.
    Pion,
}

impl Particle {
    /// All particles, by ascending mass.
    pub const ALL: [Self; 3] = [Self::Electron, Self::Muon, Self::Pion];

    /// Mass in GeV/c2 (Particle Data Group).
    #[must_use]
    pub const fn mass(self) -> f64 {
        match self {
            Self::Electron => 0.000_511,
            Self::Muon => 0.105_658,
            Self::Pion => 0.139_570,
        }
    }

    /// Name of the particle.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Electron => "electron",
            Self::Muon => "muon",
            Self::Pion => "pion",
        }
    }

    /// The most likely particle for a ring at momentum `momentum` (GeV/c), and the deviation of the
    /// ring's radius in standard deviations: the resolution of a hit over the square root of the
    /// number of hits, as for a mean. `None` if no particle emits light at that momentum, or if the
    /// ring has no hits.
    #[must_use]
    pub fn of_ring(ring: &Ring, momentum: f64) -> Option<(Self, f32)> {
        let sigma = HIT_ERROR_MM as f32 / f32::from(ring.hits).sqrt();
        let pull = |particle: Self| {
            let expected = ring_radius_mm(momentum, particle.mass())?;
            let pull = (ring.r - expected) / sigma;
            (sigma.is_finite() && pull.is_finite()).then_some((particle, pull))
        };
        let pulls = Self::ALL.into_iter().filter_map(pull);
        pulls.min_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rich::geometry::{FOCAL_LENGTH_MM, REFRACTIVITY};

    fn ring(r: f32, hits: u16) -> Ring {
        Ring {
            hits,
            r,
            ..Ring::default()
        }
    }

    #[test]
    fn a_ring_is_that_of_the_nearest_radius() {
        // Masses by the Particle Data Group.
        let masses = [0.000_511, 0.105_658, 0.139_570];
        for momentum in [15.0_f64, 20.0, 30.0] {
            for (particle, mass) in Particle::ALL.into_iter().zip(masses) {
                // n^2 beta^2 = 1 + tan^2 of the angle.
                let n_beta = (1.0 + REFRACTIVITY) * momentum / momentum.hypot(mass);
                let radius = FOCAL_LENGTH_MM * (n_beta * n_beta - 1.0).sqrt();
                // Half a standard deviation of 16 hits.
                let off = 0.5 * (18.0 / 4.0) / 4.0;
                let ring = ring((radius + off) as f32, 16);
                let (found, pull) = Particle::of_ring(&ring, momentum).unwrap();
                assert_eq!(found, particle);
                assert!((pull - 0.5).abs() < 0.01, "{pull}");
            }
        }
        // Below the threshold of muons and pions only electrons emit light.
        let (found, pull) = Particle::of_ring(&ring(100.0, 9), 5.0).unwrap();
        assert!(found == Particle::Electron && pull < -40.0);
        assert_eq!(Particle::of_ring(&ring(100.0, 9), 0.001), None);
        assert_eq!(Particle::of_ring(&ring(f32::NAN, 9), 20.0), None);
        assert_eq!(Particle::of_ring(&ring(100.0, 0), 20.0), None);
    }
}
