//! Decide: which events the experiment keeps.

use std::sync::Arc;

use serde::Deserialize;

use crate::l0::{Decision, L0Stats, Reconstructed};
use crate::stage::{Batch, Sink, Stage};

/// Options of the stage: an event is accepted when all hold.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecideOptions {
    /// Fewest rings within the window of radii.
    pub min_rings: usize,
    /// Most rings within the window of radii.
    pub max_rings: usize,
    /// Fewest hits of the event.
    pub min_hits: u16,
    /// Smallest and largest radius, in mm, of a ring that counts.
    pub radius_mm: [f32; 2],
}

impl Default for DecideOptions {
    fn default() -> Self {
        Self {
            min_rings: 1,
            max_rings: usize::MAX,
            min_hits: 0,
            radius_mm: [0.0, 1000.0],
        }
    }
}

/// Decides about each event.
pub struct Decide {
    options: DecideOptions,
    stats: Arc<L0Stats>,
}

impl Decide {
    /// Makes the stage.
    ///
    /// # Errors
    /// Bounds that no event could be within.
    pub fn new(options: DecideOptions, stats: &Arc<L0Stats>) -> Result<Self, String> {
        let DecideOptions {
            min_rings,
            max_rings,
            radius_mm: [low, high],
            ..
        } = options;
        if min_rings > max_rings {
            return Err(format!(
                "min_rings = {min_rings} is above max_rings = {max_rings}"
            ));
        }
        if !(0.0 <= low && low <= high && high.is_finite()) {
            return Err(format!(
                "radius_mm = [{low}, {high}]: smallest first, both in mm"
            ));
        }
        Ok(Self {
            options,
            stats: Arc::clone(stats),
        })
    }
}

impl Stage for Decide {
    type In = Reconstructed;
    type Out = Decision;

    fn process(&mut self, batch: &mut Batch<Reconstructed>, out: &mut impl Sink<Decision>) {
        let DecideOptions {
            min_rings,
            max_rings,
            min_hits,
            radius_mm: [low, high],
        } = self.options;
        for event in batch.drain() {
            let counting = event
                .rings()
                .iter()
                .filter(|ring| (low..=high).contains(&ring.r))
                .count();
            let accepted = (min_rings..=max_rings).contains(&counting)
                && event.hits().len() >= usize::from(min_hits);
            let counts = &self.stats.events;
            if accepted {
                counts.accepted.add(1);
            } else {
                counts.rejected.add(1);
            }
            out.push(event.decided(accepted));
        }
    }
}
