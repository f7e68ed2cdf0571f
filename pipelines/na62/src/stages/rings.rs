//! Rings: hits into rings.

use std::sync::Arc;

use pollux_pipelines::stage::{Batch, Sink, Stage};

use crate::l0::{Event, L0Stats, Reconstructed};
use crate::rich::find::{FinderConfig, FinderError, RingFinder};

/// Finds the rings of each event, in those of its hits that are not masked.
pub struct FindRings {
    finder: RingFinder,
    /// Where events with too many rings are counted; several loops may do so.
    stats: Arc<L0Stats>,
}

impl FindRings {
    /// Makes the stage, which counts for itself.
    ///
    /// # Errors
    /// A configuration in which nothing could be a ring.
    pub fn new(config: FinderConfig) -> Result<Self, FinderError> {
        Self::with_stats(config, L0Stats::new(1))
    }

    /// Makes the stage, which counts where others do.
    ///
    /// # Errors
    /// A configuration in which nothing could be a ring.
    pub fn with_stats(config: FinderConfig, stats: Arc<L0Stats>) -> Result<Self, FinderError> {
        Ok(Self {
            finder: RingFinder::new(config)?,
            stats,
        })
    }
}

impl Stage for FindRings {
    type In = Event;
    type Out = Reconstructed;

    fn process(&mut self, batch: &mut Batch<Event>, out: &mut impl Sink<Reconstructed>) {
        while !batch.is_empty() {
            let events = batch.as_slice().iter();
            let hits = events.map(|event| event.view().unmasked_hits());
            let found = self.finder.find_batch(hits);
            for (n, event) in batch.drain_front(found).enumerate() {
                if self.finder.was_cut(n) {
                    self.stats.events.rings_cut.add_shared(1);
                }
                out.push(event.reconstructed(self.finder.rings(n)));
            }
        }
    }
}
