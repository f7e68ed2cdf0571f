//! Stages: what a pipeline is made of.
//!
//! A stage takes a batch of one type and puts items of another into a sink. Two stages of
//! matching types make a stage ([`StageExt::then`]); the whole chain is then one type, compiled
//! as one piece. [`Pipeline`](crate::Pipeline) makes the same chains from a configuration.

use std::ops::RangeInclusive;

use pollux_mempool::time::Ns;

pub use crate::moment::Moment;
use crate::sink::Output;
use crate::wanted::Wanted;

/// Up to a fixed number of items, in memory that is allocated once.
#[derive(Debug)]
pub struct Batch<T> {
    items: Vec<T>,
    capacity: usize,
}

/// Items in a batch between two stages, unless asked otherwise: as many as there are numbers in a
/// vector ([`simd`](crate::simd)), and few enough that the first does not wait long for the last.
pub const BATCH: usize = 16;

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::with_capacity(BATCH)
    }
}

impl<T> Batch<T> {
    /// An empty batch for `capacity` items (at least one).
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self {
            items: Vec::with_capacity(capacity),
            capacity,
        }
    }

    /// Adds an item.
    ///
    /// # Errors
    /// Gives it back if the batch is full.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        self.items.push(item);
        Ok(())
    }

    /// Whether no more items fit.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.items.len() == self.capacity
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The items, to be changed.
    #[must_use]
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// Takes all items out, in order.
    #[inline]
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.items.drain(..)
    }

    /// Takes the first `n` items out, or all if there are fewer, in order.
    #[inline]
    pub fn drain_front(&mut self, n: usize) -> impl Iterator<Item = T> + '_ {
        self.items.drain(..n.min(self.items.len()))
    }

    /// Drops all items.
    #[inline]
    pub fn clear(&mut self) {
        self.items.clear();
    }
}

/// One step of a pipeline. After the start it must not allocate, lock, log or enter the kernel.
pub trait Stage {
    /// What it takes.
    type In;
    /// What it makes.
    type Out;

    /// How many of what it makes are gathered before the next stage sees them, unless a batch of
    /// its own ends before.
    const GATHERED: usize = BATCH;

    /// How many items it wants at once, from 1 up. The chain gathers as many as the least number,
    /// but not for longer than [`batch_wait`](Self::batch_wait), and splits what is more than the
    /// largest. Read once, when the chain is made.
    fn batch(&self) -> RangeInclusive<usize> {
        1..=usize::MAX
    }

    /// For how long the chain keeps items back that are fewer than the stage wants at once: from the
    /// first tick behind the first of them.
    fn batch_wait(&self) -> Ns {
        Ns(20_000)
    }

    /// Works on a batch. What it leaves in the batch goes back to the caller, who drops it (or,
    /// for frames, returns the buffers to the loop's cache).
    fn process(&mut self, batch: &mut Batch<Self::In>, out: &mut impl Output<Self::Out>);

    /// Called now and then, in idle rounds too, with the present time: the stage releases what
    /// has waited long enough.
    fn tick(&mut self, _now: Moment, _out: &mut impl Output<Self::Out>) {}

    /// The input has ended: the stage releases all that it holds.
    fn finish(&mut self, _out: &mut impl Output<Self::Out>) {}

    /// Whether the stage has as much as it may hold: a loop that asks its chain then receives no
    /// more. A batch that comes nevertheless must be taken.
    fn is_full(&self) -> bool {
        false
    }
}

/// Combining stages.
pub trait StageExt: Stage + Sized {
    /// This stage, then `next`, as one stage.
    fn then<B: Stage<In = Self::Out>>(self, next: B) -> Then<Self, B> {
        let wanted = Wanted::new(&next.batch(), next.batch_wait());
        Then {
            first: self,
            between: Batch::with_capacity(wanted.room(Self::GATHERED)),
            wanted,
            next,
        }
    }
}

impl<S: Stage> StageExt for S {}

/// Two stages, one behind the other.
pub struct Then<A: Stage, B> {
    first: A,
    next: B,
    between: Batch<A::Out>,
    /// What `next` wants.
    wanted: Wanted,
}

/// Feeds `next` whenever the batch in front of it is full.
struct Link<'a, T, B, O> {
    between: &'a mut Batch<T>,
    wanted: &'a mut Wanted,
    next: &'a mut B,
    out: &'a mut O,
}

impl<B: Stage, O: Output<B::Out>> Link<'_, B::In, B, O> {
    fn flush(&mut self) {
        if !self.between.is_empty() {
            self.next.process(self.between, self.out);
            self.between.clear();
            self.wanted.begin_anew();
        }
    }

    /// Hands on what was gathered, unless it is too little for `next`.
    #[inline]
    fn flush_enough(&mut self) {
        if !self.wanted.keeps_back(self.between.as_slice().len()) {
            self.flush();
        }
    }

    /// The same at a time: what has waited long enough goes on.
    fn flush_due(&mut self, now: Moment) {
        let kept = self.wanted.keeps_back(self.between.as_slice().len());
        if !kept || self.wanted.is_due(now) {
            self.flush();
        }
    }
}

impl<B: Stage, O: Output<B::Out>> Output<B::In> for Link<'_, B::In, B, O> {
    #[inline]
    fn push(&mut self, item: B::In) {
        if let Err(item) = self.between.push(item) {
            self.flush();
            // The batch is empty now and holds at least one.
            let _ = self.between.push(item);
        }
    }
}

impl<A: Stage, B: Stage<In = A::Out>> Stage for Then<A, B> {
    type In = A::In;
    type Out = B::Out;

    fn batch(&self) -> RangeInclusive<usize> {
        self.first.batch()
    }

    fn batch_wait(&self) -> Ns {
        self.first.batch_wait()
    }

    #[inline]
    fn process(&mut self, batch: &mut Batch<A::In>, out: &mut impl Output<B::Out>) {
        let mut link = Link {
            between: &mut self.between,
            wanted: &mut self.wanted,
            next: &mut self.next,
            out,
        };
        self.first.process(batch, &mut link);
        link.flush_enough();
    }

    fn tick(&mut self, now: Moment, out: &mut impl Output<B::Out>) {
        let mut link = Link {
            between: &mut self.between,
            wanted: &mut self.wanted,
            next: &mut self.next,
            out,
        };
        self.first.tick(now, &mut link);
        link.flush_due(now);
        self.next.tick(now, out);
    }

    fn finish(&mut self, out: &mut impl Output<B::Out>) {
        let mut link = Link {
            between: &mut self.between,
            wanted: &mut self.wanted,
            next: &mut self.next,
            out,
        };
        self.first.finish(&mut link);
        link.flush();
        self.next.finish(out);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.first.is_full() || self.next.is_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats each number `.0` times, and holds the last one back until the end.
    struct Repeat(usize, Option<u32>);

    impl Stage for Repeat {
        type In = u32;
        type Out = u32;

        fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Output<u32>) {
            for n in batch.drain() {
                if let Some(held) = self.1.replace(n) {
                    (0..self.0).for_each(|_| out.push(held));
                }
            }
        }

        fn finish(&mut self, out: &mut impl Output<u32>) {
            if let Some(held) = self.1.take() {
                (0..self.0).for_each(|_| out.push(held));
            }
        }
    }

    #[test]
    fn a_chain_loses_nothing_where_batches_overflow() {
        let mut chain = Repeat(50, None).then(Repeat(3, None)).then(Repeat(1, None));
        let (mut batch, mut out) = (Batch::default(), Vec::new());
        for n in 0..40 {
            if batch.is_full() {
                chain.process(&mut batch, &mut out);
            }
            assert_eq!(batch.push(n), Ok(()));
        }
        chain.process(&mut batch, &mut out);
        chain.finish(&mut out);
        let expected: Vec<u32> = (0..40).flat_map(|n| std::iter::repeat_n(n, 150)).collect();
        assert_eq!(out, expected);
    }

    #[test]
    fn a_full_batch_gives_the_item_back() {
        let mut batch = Batch::with_capacity(0);
        assert_eq!(batch.push(1), Ok(()));
        assert_eq!(batch.push(2), Err(2));
        assert_eq!(batch.drain().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn items_leave_from_the_front() {
        let mut batch = Batch::with_capacity(3);
        (0..3).for_each(|n| assert_eq!(batch.push(n), Ok(())));
        assert_eq!(batch.drain_front(2).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(batch.drain_front(2).collect::<Vec<_>>(), [2]);
        assert!(batch.is_empty());
    }
}
