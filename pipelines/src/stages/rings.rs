//! Rings: hits into rings.

use std::sync::Arc;

use crate::l0::{Event, L0Stats, MAX_EVENT_HITS, MAX_SOURCES, Reconstructed};
use crate::rich::Hit;
use crate::rich::find::{FinderConfig, FinderError, MAX_BATCH, RingFinder};
use crate::rich::geometry::{PMS, board_of};
use crate::stage::{Batch, Sink, Stage};

/// Finds the rings of each event.
///
/// A readout board with more hits than rings explain is hot: its hits are passed over, so that it
/// costs nobody else's rings, and it is counted.
pub struct FindRings {
    finder: RingFinder,
    /// Readout boards, and most hits of one in an event.
    boards: u8,
    most: u16,
    /// Where hot boards and events with too many rings are counted; several loops may do so.
    stats: Arc<L0Stats>,
    /// Hits of events with hot boards, without these.
    cool: Vec<Hit>,
}

impl FindRings {
    /// Makes the stage, which counts for itself.
    ///
    /// # Errors
    /// A configuration in which nothing could be a ring.
    pub fn new(config: FinderConfig) -> Result<Self, FinderError> {
        Self::with_stats(config, L0Stats::new(1))
    }

    /// Makes the stage. The detector is shared evenly by as many boards as there are sources.
    ///
    /// # Errors
    /// A configuration in which nothing could be a ring.
    pub fn with_stats(config: FinderConfig, stats: Arc<L0Stats>) -> Result<Self, FinderError> {
        let boards = stats.sources.len().clamp(1, MAX_SOURCES) as u8;
        let each = PMS as f32 / f32::from(boards);
        Ok(Self {
            finder: RingFinder::new(config)?,
            boards,
            most: (config.max_occupancy * each) as u16,
            stats,
            cool: Vec::with_capacity(MAX_BATCH * MAX_EVENT_HITS),
        })
    }

    /// Adds the hits of an event, without those of hot boards, to those that are kept here; where
    /// they are, if there are hot boards.
    #[cold]
    fn cool_down(&mut self, hits: &[Hit]) -> Option<(usize, usize)> {
        let boards = self.boards;
        let mut counts = [0_u16; MAX_SOURCES];
        for hit in hits {
            if let Some(count) = counts.get_mut(usize::from(board_of(hit.pm, boards))) {
                *count += 1;
            }
        }
        let most = self.most;
        let is_hot = |count: u16| count > most;
        if !counts.iter().any(|&count| is_hot(count)) {
            return None;
        }
        for (source, &count) in self.stats.sources.iter().zip(&counts) {
            source.hot.add_shared(u64::from(is_hot(count)));
        }
        let board = |hit: &Hit| counts.get(usize::from(board_of(hit.pm, boards)));
        let start = self.cool.len();
        // There is room for the most hits of a batch.
        let cool = hits
            .iter()
            .filter(|hit| board(hit).is_some_and(|&n| !is_hot(n)));
        self.cool.extend(cool);
        Some((start, self.cool.len()))
    }
}

impl Stage for FindRings {
    type In = Event;
    type Out = Reconstructed;

    fn process(&mut self, batch: &mut Batch<Event>, out: &mut impl Sink<Reconstructed>) {
        while !batch.is_empty() {
            let mut places = [None; MAX_BATCH];
            self.cool.clear();
            for (place, event) in places.iter_mut().zip(batch.as_slice()) {
                let hits = event.hits();
                if hits.len() > usize::from(self.most) {
                    *place = self.cool_down(hits);
                }
            }
            let cool = &self.cool;
            let hits = batch.as_slice().iter().zip(places);
            let hits = hits.map(|(event, place)| match place {
                Some((start, end)) => &cool[start..end],
                None => event.hits(),
            });
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
