//! Chains that are compiled as one piece, in front of a sink that may be full.

use std::sync::Arc;

use crate::sink::{BackPressure, Held, Sink};
use crate::stage::{Batch, Moment, Stage};

/// A stage, or stages [behind each other](crate::StageExt::then), and what their sink had no room
/// for: what a [`Pipeline`](crate::Pipeline) is for stages chosen at run time.
pub struct Chain<S: Stage> {
    stage: S,
    held: Held<S::Out>,
}

impl<S: Stage> Chain<S> {
    /// In front of any sink, with memory for so many results that it has no room for: with as many
    /// as one batch and one tick make, nothing is allocated where it is full.
    #[must_use]
    pub fn new(stage: S, holding: usize) -> Self {
        Self {
            stage,
            held: Held::with_capacity(holding),
        }
    }

    /// Whether the chain takes more: hands on what it holds, and says whether all of it is gone and
    /// no stage is full. The poll loop asks this before it receives; a `false` is counted
    /// ([`BackPressure::stops`]).
    #[inline]
    pub fn has_room(&mut self, out: &mut impl Sink<S::Out>) -> bool {
        self.held.has_room(self.stage.is_full(), out)
    }

    /// Takes a batch through all stages. What the first stage leaves in it stays.
    #[inline]
    pub fn process(&mut self, batch: &mut Batch<S::In>, out: &mut impl Sink<S::Out>) {
        self.held.flush(out);
        self.stage.process(batch, &mut self.held.output(out));
    }

    /// Tells all stages the time, unless results are held: what is due then waits in its stage.
    #[inline]
    pub fn tick(&mut self, now: Moment, out: &mut impl Sink<S::Out>) {
        if self.held.flush(out) {
            self.stage.tick(now, &mut self.held.output(out));
        }
    }

    /// Lets all stages release what they hold. Results may be left where the sink is full: the caller
    /// asks whether there [is room](Self::has_room) until they are gone, or [takes](Self::take_held)
    /// them.
    pub fn finish(&mut self, out: &mut impl Sink<S::Out>) {
        self.held.flush(out);
        self.stage.finish(&mut self.held.output(out));
    }

    /// How often the sink was full.
    #[must_use]
    pub fn back_pressure(&self) -> Arc<BackPressure> {
        self.held.counts()
    }

    /// Takes out the results that the sink had no room for: the caller accounts for them.
    pub fn take_held(&mut self) -> impl Iterator<Item = S::Out> + '_ {
        self.held.take()
    }
}
