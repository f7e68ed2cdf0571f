//! Which particle makes a ring.

use super::geometry::ring_radius_mm;

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
    /// All of them, the lightest first.
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

    /// The particle of momentum `momentum` (GeV/c) that a ring of radius `radius_mm` is most
    /// likely of, and by how many standard deviations it is off, where the radius is known to
    /// `sigma_mm`. `None` if none gives light at that momentum, or `sigma_mm` is not positive.
    #[must_use]
    pub fn of_ring(radius_mm: f32, sigma_mm: f32, momentum: f64) -> Option<(Self, f32)> {
        let pull = |particle: Self| {
            let expected = ring_radius_mm(momentum, particle.mass())?;
            let pull = (radius_mm - expected) / sigma_mm;
            (sigma_mm > 0.0 && pull.is_finite()).then_some((particle, pull))
        };
        let pulls = Self::ALL.into_iter().filter_map(pull);
        pulls.min_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_ring_is_that_of_the_nearest_radius() {
        for momentum in [15.0, 20.0, 30.0] {
            for particle in Particle::ALL {
                let radius = ring_radius_mm(momentum, particle.mass()).unwrap();
                let (found, pull) = Particle::of_ring(radius + 0.5, 1.0, momentum).unwrap();
                assert_eq!(found, particle);
                assert!((pull - 0.5).abs() < 1e-3);
            }
        }
        // Below the threshold of muons and pions there are electrons alone.
        let (found, pull) = Particle::of_ring(100.0, 2.0, 5.0).unwrap();
        assert!(found == Particle::Electron && pull < -40.0);
        assert_eq!(Particle::of_ring(100.0, 1.0, 0.001), None);
        assert_eq!(Particle::of_ring(f32::NAN, 1.0, 20.0), None);
        assert_eq!(Particle::of_ring(100.0, 0.0, 20.0), None);
    }
}
