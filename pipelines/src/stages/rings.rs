//! Rings: hits into rings.

use crate::l0::{Event, Reconstructed};
use crate::rich::find::{FinderConfig, FinderError, RingFinder};
use crate::stage::{Batch, Sink, Stage};

/// Finds the rings of each event.
pub struct FindRings {
    finder: RingFinder,
}

impl FindRings {
    /// Makes the stage.
    ///
    /// # Errors
    /// A configuration in which nothing could be a ring.
    pub fn new(config: FinderConfig) -> Result<Self, FinderError> {
        Ok(Self {
            finder: RingFinder::new(config)?,
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
                out.push(event.reconstructed(self.finder.rings(n)));
            }
        }
    }
}
