//! Sinks: where the results of stages go, and what happens where one is full.
//!
//! A stage puts results into an [`Output`], which takes all of them: a stage never stops half way
//! through a batch. A chain ends in a [`Sink`], which may be full and hands back what it has no room
//! for. Between the two, the chain holds what came back, in order ([`Held`]), and says so to the
//! poll loop, which receives no more until it is gone: the loss, if there is one, is then where
//! frames are counted as lost, in the receive ring.
//!
//! The loop asks before it receives ([`Pipeline::has_room`], [`Chain::has_room`]), so a chain holds at
//! most what it makes of one batch and of one tick.
//!
//! [`Pipeline::has_room`]: crate::Pipeline::has_room
//! [`Chain::has_room`]: crate::Chain::has_room

use std::collections::VecDeque;
use std::sync::Arc;

use pollux_pmd::Count;

/// The end of a chain: takes results as long as it has room.
pub trait Sink<T> {
    /// Takes one item.
    ///
    /// # Errors
    /// Hands the item back where there is no room for it now.
    fn try_push(&mut self, item: T) -> Result<(), T>;
}

/// Where a stage puts what it makes: takes all of it.
///
/// Every output is a [`Sink`] that is never full.
pub trait Output<T> {
    /// Takes one item.
    fn push(&mut self, item: T);
}

impl<T, O: Output<T>> Sink<T> for O {
    #[inline]
    fn try_push(&mut self, item: T) -> Result<(), T> {
        self.push(item);
        Ok(())
    }
}

/// For tests, and for collecting results where allocation does not matter.
impl<T> Output<T> for Vec<T> {
    #[inline]
    fn push(&mut self, item: T) {
        Vec::push(self, item);
    }
}

/// Drops every item.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl<T> Output<T> for Discard {
    #[inline]
    fn push(&mut self, _item: T) {}
}

/// Calls a function with every item.
pub struct Each<F>(pub F);

impl<T, F: FnMut(T)> Output<T> for Each<F> {
    #[inline]
    fn push(&mut self, item: T) {
        (self.0)(item);
    }
}

/// How often a full sink held a chain up. Written by the loop of the chain alone.
#[derive(Debug, Default)]
pub struct BackPressure {
    /// Times that the sink handed an item back.
    pub refused: Count,
    /// Times that the loop was told to receive no more.
    pub stops: Count,
    /// Items that the chain holds now.
    pub held: Count,
    /// Most items that it has held.
    pub most_held: Count,
}

/// Results that their sink had no room for, in order.
#[derive(Debug)]
pub struct Held<T> {
    items: VecDeque<T>,
    counts: Arc<BackPressure>,
}

/// Holds nothing; the memory grows with the first results that are held.
impl<T> Default for Held<T> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<T> Held<T> {
    /// Holds nothing, and has memory for so many results: with enough of them nothing is allocated
    /// later.
    #[must_use]
    pub fn with_capacity(results: usize) -> Self {
        Self {
            items: VecDeque::with_capacity(results),
            counts: Arc::default(),
        }
    }

    /// How often the sink was full.
    #[must_use]
    pub fn counts(&self) -> Arc<BackPressure> {
        Arc::clone(&self.counts)
    }

    /// Whether nothing is held.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Hands on what is held; whether all of it is gone.
    #[inline]
    pub fn flush(&mut self, sink: &mut impl Sink<T>) -> bool {
        self.items.is_empty() || self.flush_held(sink)
    }

    #[cold]
    fn flush_held(&mut self, sink: &mut impl Sink<T>) -> bool {
        while let Some(item) = self.items.pop_front() {
            if let Err(item) = sink.try_push(item) {
                self.items.push_front(item);
                self.counts.refused.add(1);
                break;
            }
        }
        self.counts.held.set(self.items.len() as u64);
        self.items.is_empty()
    }

    /// Whether a chain takes more: hands on what is held, and says whether all of it is gone and no
    /// stage `is_full`. A `false` is counted.
    #[inline]
    pub(crate) fn has_room(&mut self, is_full: bool, sink: &mut impl Sink<T>) -> bool {
        let room = self.flush(sink) && !is_full;
        if !room {
            self.counts.stops.add(1);
        }
        room
    }

    /// Takes one result: to the sink, or behind those that are held.
    #[inline]
    pub fn push(&mut self, item: T, sink: &mut impl Sink<T>) {
        if self.items.is_empty() {
            match sink.try_push(item) {
                Ok(()) => {}
                Err(item) => {
                    self.counts.refused.add(1);
                    self.hold(item);
                }
            }
        } else {
            self.hold(item);
        }
    }

    #[cold]
    fn hold(&mut self, item: T) {
        self.items.push_back(item);
        let held = self.items.len() as u64;
        self.counts.held.set(held);
        self.counts
            .most_held
            .set(self.counts.most_held.get().max(held));
    }

    /// Takes out what is held, for an end with a sink that stays full: the caller accounts for it.
    pub fn take(&mut self) -> impl Iterator<Item = T> + '_ {
        self.counts.held.set(0);
        self.items.drain(..)
    }

    /// An output that takes all results for a sink which may be full.
    #[inline]
    pub fn output<'a, S: Sink<T>>(&'a mut self, sink: &'a mut S) -> Holding<'a, T, S> {
        Holding { held: self, sink }
    }
}

/// Takes all results for a sink which may be full; see [`Held::output`].
pub struct Holding<'a, T, S> {
    held: &'a mut Held<T>,
    sink: &'a mut S,
}

impl<T, S: Sink<T>> Output<T> for Holding<'_, T, S> {
    #[inline]
    fn push(&mut self, item: T) {
        self.held.push(item, self.sink);
    }
}
