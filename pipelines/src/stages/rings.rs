//! Rings: hits into rings.

use std::sync::Arc;

use crate::l0::{Event, L0Stats, List, Reconstructed};
use crate::rich::find::{FinderConfig, FinderError, MAX_BATCH, RingFinder};
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
        for events in batch.as_slice().chunks(MAX_BATCH) {
            let hits = events.iter().map(|event| &event.hits[..]);
            self.finder.find_batch(hits);
            for (n, event) in events.iter().enumerate() {
                let mut rings = List::default();
                // They fit: the finder has no more than MAX_RINGS.
                let _ = rings.extend(self.finder.rings(n));
                self.stats.events.rings.add(rings.len() as u64);
                out.push(Reconstructed {
                    head: event.head,
                    rings,
                });
            }
        }
    }
}
