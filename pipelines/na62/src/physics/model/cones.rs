//! The light cones: round openings in front of the photomultipliers, and the dead channels.

use crate::rich::geometry::{PMS, POSITIONS, pm_at};
use rand::SeedableRng;
use rand::seq::index;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::ModelConfig;
use super::pm_set::{PmSet, insert};

/// Where light is seen.
#[derive(Clone, Debug)]
pub(super) struct Cones {
    /// Square of the radius of an opening, in mm^2.
    radius2: f32,
    dead: PmSet,
}

impl Cones {
    /// The cones of a configuration that is valid.
    pub(super) fn new(cfg: &ModelConfig) -> Self {
        let radius = 0.5 * cfg.cone_mm as f32;
        let mut dead: PmSet = [0; _];
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(cfg.dead_seed);
        let count = (cfg.dead * PMS as f64).round() as usize;
        for pm in index::sample(&mut rng, PMS, count.min(PMS)) {
            insert(&mut dead, pm as u16);
        }
        Self {
            radius2: radius * radius,
            dead,
        }
    }

    /// Whether the channel of photomultiplier `pm` works.
    pub(super) fn is_alive(&self, pm: u16) -> bool {
        self.dead[usize::from(pm) / 64] >> (pm % 64) & 1 == 0
    }

    /// The photomultiplier that sees light at (x, y) in mm from the centre of `disk`; `None`
    /// between the cones, outside the disk, and where the channel is dead.
    pub(super) fn seen_at(&self, disk: u8, x: f32, y: f32) -> Option<u16> {
        let pm = pm_at(disk, x, y)?;
        let [px, py] = *POSITIONS.get(usize::from(pm))?;
        let (dx, dy) = (x - px, y - py);
        (dx * dx + dy * dy <= self.radius2 && self.is_alive(pm)).then_some(pm)
    }
}
