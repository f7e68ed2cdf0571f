//! Particle hypothesis of a ring.

use pollux_na62::rich::find::Ring;
use pollux_na62::rich::particle::Particle;

/// The hypothesis for a ring whose particle's momentum is known.
pub(super) enum Likely {
    /// The particle, and the deviation of the radius in standard deviations.
    Particle(Particle, f32),
    /// No particle fits: the nearest one, and its deviation.
    Nothing(Particle, f32),
}

/// Limit in standard deviations beyond which no particle fits: by chance, not one ring in a million
/// exceeds it.
const FARTHEST: f32 = 5.0;

impl Likely {
    /// `None` where no particle emits light at that momentum.
    pub(super) fn of(ring: &Ring, momentum: f64) -> Option<Self> {
        let (particle, pull) = Particle::of_ring(ring, momentum)?;
        Some(if pull.abs() <= FARTHEST {
            Self::Particle(particle, pull)
        } else {
            Self::Nothing(particle, pull)
        })
    }
}
