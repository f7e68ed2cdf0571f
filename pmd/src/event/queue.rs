//! Event queue: a single-producer, single-consumer ring of records with a phase bit.
//!
//! The phase bit marks new records: the producer writes 1 in its first pass over the ring, 0 in its
//! second, and so on. The consumer therefore needs no producer index, and a record and its
//! announcement are one write. In the other direction the consumer publishes the number of records
//! that it has released, and the producer never advances more than the ring's size beyond it.

use std::fmt;
use std::sync::Arc;

use pollux_mempool::region::{MemoryRegion, RegionError};

use super::RegionOptions;
use super::record::{EventRecord, PHASE, WORDS};
use super::words::Words;

/// Maximum number of records of a queue.
const MAX_RECORDS: usize = 1 << 20;

/// Error: an event queue could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The number of records is not a power of two, or out of bounds.
    #[error("an event queue of {0} records: it must be a power of two from 2 to {MAX_RECORDS}")]
    Records(usize),
    /// The memory is not available.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// Error: the queue is full. The record was not taken; the caller counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event queue is full: its consumer is too slow or gone")]
pub struct Full;

/// The memory of an event queue, before it is split into producer and consumer.
pub struct EventQueue(Words);

impl EventQueue {
    /// An empty queue of `records` records, a power of two from 2 to 1 048 576.
    ///
    /// # Errors
    /// Another number, or memory that is not available.
    pub fn new(records: usize, options: &RegionOptions) -> Result<Self, EventError> {
        if !records.is_power_of_two() || !(2..=MAX_RECORDS).contains(&records) {
            return Err(EventError::Records(records));
        }
        Ok(Self(Words::new(records, options)?))
    }

    /// Splits the queue into producer and consumer.
    #[must_use]
    pub fn split(self) -> (EventProducer, EventConsumer) {
        let words = Arc::new(self.0);
        let consumer = EventConsumer::new(Arc::clone(&words), Line(Arc::clone(&words)));
        (
            EventProducer {
                words,
                at: 0,
                released_seen: 0,
            },
            consumer,
        )
    }

    /// The memory, for a device as the producer: the records start at its first byte.
    pub(crate) fn region(&self) -> &Arc<MemoryRegion> {
        self.0.region()
    }

    /// The consumer of a queue whose producer is a device; `reporter` reports released records to
    /// it.
    pub(crate) fn into_consumer<R: Released>(self, reporter: R) -> EventConsumer<R> {
        EventConsumer::new(Arc::new(self.0), reporter)
    }
}

/// Reports consumed records to the producer.
pub trait Released {
    /// All records before number `at` belong to the producer again.
    fn released(&self, at: u64);
}

/// Reports through the cache line behind the records.
pub struct Line(Arc<Words>);

impl Released for Line {
    #[inline(always)]
    fn released(&self, at: u64) {
        self.0.release(at);
    }
}

/// The phase bit of the record at free-running index `at`.
#[inline(always)]
fn phase(at: u64, records: usize) -> u64 {
    if at & records as u64 == 0 { PHASE } else { 0 }
}

/// The producer of an event queue.
pub struct EventProducer {
    words: Arc<Words>,
    /// Records pushed.
    at: u64,
    /// Records released, as last read. Read again (from a line that the other core writes) only
    /// when the queue looks full.
    released_seen: u64,
}

impl EventProducer {
    /// Pushes an event.
    ///
    /// # Errors
    /// [`Full`], with nothing changed, if the consumer has not released a record for it.
    #[inline]
    pub fn push(&mut self, record: &EventRecord) -> Result<(), Full> {
        if !self.has_room() {
            return Err(Full);
        }
        let mut words = record.to_words();
        words[WORDS - 1] = words[WORDS - 1] & !PHASE | phase(self.at, self.words.records());
        self.words.write(self.at, words);
        self.at = self.at.wrapping_add(1);
        Ok(())
    }

    /// Whether the next push will succeed; only pushes reduce the free space.
    #[must_use]
    #[inline]
    pub fn has_room(&mut self) -> bool {
        // An invalid consumer index (beyond ours) gives a huge difference: the queue looks full.
        let records = self.words.records() as u64;
        if self.at.wrapping_sub(self.released_seen) < records {
            return true;
        }
        self.released_seen = self.words.released();
        self.at.wrapping_sub(self.released_seen) < records
    }
}

/// The consumer of an event queue. It returns copies of whatever the producer wrote; the records of
/// a device must be validated.
pub struct EventConsumer<R = Line> {
    words: Arc<Words>,
    reporter: R,
    /// Records taken.
    at: u64,
    /// Records released, as last published.
    released: u64,
    /// Number of records that are released together.
    batch: u64,
}

impl<R: Released> EventConsumer<R> {
    fn new(words: Arc<Words>, reporter: R) -> Self {
        Self {
            at: 0,
            released: 0,
            // Rare enough to keep the shared line cached, frequent enough to leave the producer
            // free records.
            batch: (words.records() / 4).min(32) as u64,
            words,
            reporter,
        }
    }

    /// Records taken since the start.
    pub(crate) fn taken(&self) -> u64 {
        self.at
    }

    /// Takes the next event, if any. Never waits. Records are released in batches, and whenever
    /// there is no event.
    #[inline]
    pub fn poll(&mut self) -> Option<EventRecord> {
        let record = self.take();
        if record.is_none() || self.at.wrapping_sub(self.released) >= self.batch {
            self.release();
        }
        record
    }

    /// Takes events into the front of `out`, as many as are available and fit, and returns their
    /// number. Releases all of them.
    #[inline]
    pub fn poll_burst(&mut self, out: &mut [EventRecord]) -> usize {
        let mut n = 0;
        for slot in out {
            let Some(record) = self.take() else { break };
            *slot = record;
            n += 1;
        }
        self.release();
        n
    }

    #[inline(always)]
    fn take(&mut self) -> Option<EventRecord> {
        let words = self
            .words
            .read(self.at, phase(self.at, self.words.records()))?;
        self.at = self.at.wrapping_add(1);
        Some(EventRecord::from_words(words))
    }

    #[inline(always)]
    fn release(&mut self) {
        if self.released != self.at {
            self.reporter.released(self.at);
            self.released = self.at;
        }
    }
}

/// Faults that a device on the other side can cause.
#[cfg(any(test, fuzzing))]
impl EventProducer {
    /// Writes arbitrary words as the record at an arbitrary index.
    #[doc(hidden)]
    pub fn forge(&mut self, at: u64, words: [u64; WORDS]) {
        self.words.write(at, words);
    }
}

/// Faults that a device on the other side can cause.
#[cfg(any(test, fuzzing))]
impl EventConsumer {
    /// Pretends to have released all records before `at`.
    #[doc(hidden)]
    pub fn forge_release(&mut self, at: u64) {
        self.words.release(at);
    }
}

impl fmt::Debug for EventProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventProducer")
            .field("records", &self.words.records())
            .field("pushed", &self.at)
            .finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for EventConsumer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventConsumer")
            .field("records", &self.words.records())
            .field("taken", &self.at)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A producer may write anything anywhere: the consumer takes records with its phase, at
        /// most one ring at a time, and continues.
        #[test]
        fn a_hostile_producer_does_not_stop_the_consumer(
            writes in proptest::collection::vec((any::<u64>(), any::<[u64; WORDS]>()), 1..50),
        ) {
            let queue = EventQueue::new(8, &RegionOptions::default()).unwrap();
            let (mut hostile, mut consumer) = queue.split();
            for (at, words) in writes {
                hostile.forge(at, words);
                let mut taken = 0;
                while consumer.poll().is_some() {
                    taken += 1;
                }
                prop_assert!(taken <= 8);
            }
            prop_assert_eq!(hostile.words.released(), consumer.at);
        }

        /// A consumer may release anything: the producer sees a full queue or the true free space.
        #[test]
        fn a_hostile_consumer_does_not_stop_the_producer(
            releases in proptest::collection::vec((any::<u64>(), 0_u64..20), 1..50),
        ) {
            let queue = EventQueue::new(8, &RegionOptions::default()).unwrap();
            let (mut producer, mut hostile) = queue.split();
            for (wild, near) in releases {
                for released in [wild, near] {
                    hostile.forge_release(released);
                    let before = producer.at;
                    while producer.push(&EventRecord::default()).is_ok() {}
                    prop_assert!(producer.at - before <= 8);
                }
            }
        }
    }
}
