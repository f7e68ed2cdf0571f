//! Rings: hits into rings.

use std::sync::Arc;

use crate::l0::{Event, L0Stats, Reconstructed};
use crate::rich::find::{FinderConfig, FinderError, RingFinder};
use crate::stage::{Batch, Sink, Stage};

/// Finds the rings of each event.
pub struct FindRings {
    finder: RingFinder,
    stats: Arc<L0Stats>,
}

impl FindRings {
    /// Makes the stage.
    ///
    /// # Errors
    /// A configuration in which nothing could be a ring.
    pub fn new(config: FinderConfig, stats: &Arc<L0Stats>) -> Result<Self, FinderError> {
        Ok(Self {
            finder: RingFinder::new(config)?,
            stats: Arc::clone(stats),
        })
    }
}

impl Stage for FindRings {
    type In = Event;
    type Out = Reconstructed;

    fn process(&mut self, batch: &mut Batch<Event>, out: &mut impl Sink<Reconstructed>) {
        while !batch.is_empty() {
            let hits = batch.as_slice().iter().map(Event::hits);
            let found = self.finder.find_batch(hits);
            for (n, event) in batch.drain_front(found).enumerate() {
                let event = event.reconstructed(self.finder.rings(n));
                self.stats.events.rings.add(event.rings().len() as u64);
                out.push(event);
            }
        }
    }
}
