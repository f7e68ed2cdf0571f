//! Stage `rings`: finds the rings in the hits of events.

use std::sync::Arc;

use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Stage};

use crate::l0::{Event, L0Stats, Reconstructed};
use crate::rich::find::{FinderConfig, FinderError, RingFinder};

/// Finds the rings of each event, in those of its hits that are not masked.
pub struct FindRings {
    finder: RingFinder,
    /// Counts events with too many rings; several loops may share it.
    stats: Arc<L0Stats>,
}

impl FindRings {
    /// Creates the stage, with a counter of its own.
    ///
    /// # Errors
    /// A configuration that excludes every ring.
    pub fn new(config: FinderConfig) -> Result<Self, FinderError> {
        Self::with_stats(config, L0Stats::new(1))
    }

    /// Creates the stage with a shared counter.
    ///
    /// # Errors
    /// A configuration that excludes every ring.
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

    fn process(&mut self, batch: &mut Batch<Event>, out: &mut impl Output<Reconstructed>) {
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
