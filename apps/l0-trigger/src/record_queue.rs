//! Record queue: events with their hits, passed on by the trigger loop and written outside of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use pollux_mempool::{Burst, MbufConsumer, MbufProducer, PoolCache, mbuf_ring};
use pollux_na62::l0::{Decision, EventView};

use crate::file_counts::FileCounts;
use crate::file_writer::FileWriter;

/// Number of events between the trigger loop and the writer thread: 80 ms at 100 kHz.
const QUEUE: usize = 1 << 13;

/// Number of events taken from the queue at a time.
const BURST: usize = 64;

/// Maximum number of events that are kept from their pool.
pub const CAPACITY: usize = QUEUE + BURST;

/// Maximum number of events collected for one write, and their maximum waiting time.
const GATHERED: u64 = 4096;
const STALE: Duration = Duration::from_millis(250);

/// Destination of recorded events. It may be slow, and it may fail: that ends the recording, never
/// the run.
pub trait Store: Send + 'static {
    /// Whether this event goes elsewhere than the collected ones, which must then be written first.
    fn turns_at(&self, event: EventView<'_>) -> bool;

    /// Adds an event to the collected ones.
    fn push(&mut self, event: EventView<'_>);

    /// Writes the collected events.
    fn flush(&mut self) -> Result<()>;

    /// Completes the recording at the end of the run, which dropped `lost` events.
    fn complete(self, lost: u64) -> Result<()>;
}

/// The producer in the trigger loop.
pub struct RecordQueue {
    queue: MbufProducer,
    counts: Arc<FileCounts>,
}

impl RecordQueue {
    /// Whether the queue has space for the next event.
    pub fn has_room(&self) -> bool {
        self.queue.free() > 0
    }

    /// Passes an event on, without a copy; if the queue is full, counts it and frees it into
    /// `events`.
    #[inline]
    pub fn push(&mut self, event: Decision, events: &mut PoolCache) {
        let mut burst = Burst::<1>::new();
        // It fits.
        drop(burst.push(event.into()));
        match self.queue.push(&mut burst.as_mut()) {
            0 => self.counts.missed.add(1),
            _ => self.counts.handed.add(1),
        }
        events.free_burst(&mut burst);
    }
}

/// The consumer: events that wait to be written.
pub struct QueuedRecords(MbufConsumer);

/// The queue from the loop to the writer thread; `counts` has the outcomes of the events.
pub fn queue(counts: Arc<FileCounts>) -> Result<(RecordQueue, QueuedRecords)> {
    let (queue, consumer) = mbuf_ring(QUEUE)?;
    Ok((RecordQueue { queue, counts }, QueuedRecords(consumer)))
}

/// Writes events to a store.
pub struct Writer<S> {
    queue: MbufConsumer,
    counts: Arc<FileCounts>,
    store: Result<S>,
    /// Number of events that the store has collected since `since`.
    gathered: u64,
    since: Instant,
}

impl<S: Store> Writer<S> {
    pub fn new(QueuedRecords(queue): QueuedRecords, counts: Arc<FileCounts>, store: S) -> Self {
        Self {
            queue,
            counts,
            store: Ok(store),
            gathered: 0,
            since: Instant::now(),
        }
    }

    fn take(&mut self) -> bool {
        let mut burst = Burst::<BURST>::new();
        let n = self.queue.pop(&mut burst.as_mut());
        if n > 0 && self.gathered == 0 {
            self.since = Instant::now();
        }
        let events = burst.iter().filter_map(|mbuf| EventView::of(mbuf.data()));
        events.for_each(|event| self.push(event));
        n > 0
    }

    fn push(&mut self, event: EventView<'_>) {
        if self.store.as_ref().is_ok_and(|store| store.turns_at(event)) {
            self.flush();
        }
        match &mut self.store {
            Ok(store) => {
                store.push(event);
                self.gathered += 1;
            }
            Err(_) => self.counts.refused.add(1),
        }
    }

    fn flush(&mut self) {
        let Ok(store) = &mut self.store else { return };
        match store.flush() {
            Ok(()) => self.counts.written.add(self.gathered),
            Err(error) => {
                tracing::error!("{error:#}: no more events are recorded, the run continues");
                self.counts.refused.add(self.gathered);
                self.store = Err(error);
            }
        }
        self.gathered = 0;
    }
}

impl<S: Store> FileWriter for Writer<S> {
    fn work(&mut self) -> bool {
        let taken = self.take();
        if self.gathered >= GATHERED || (self.gathered > 0 && self.since.elapsed() >= STALE) {
            self.flush();
        }
        taken
    }

    fn finish(mut self) -> Result<()> {
        self.flush();
        let lost = self.counts.at_end().lost;
        match self.store {
            Ok(store) => store.complete(lost),
            Err(error) => Err(error.context("the recording is incomplete")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::file_writer::{self, PATIENCE, Writing};
    use anyhow::bail;
    use pollux_mempool::{Mempool, PoolConfig};
    use pollux_na62::l0::{Draft, EventHead, Verdict, event_pool};
    use pollux_na62::merge::Span;
    use std::sync::mpsc::{Receiver, Sender, channel};

    const CACHE: usize = 8;

    fn pool() -> Mempool {
        event_pool(QUEUE + BURST + 2 * CACHE, PoolConfig::default()).unwrap()
    }

    fn event(timestamp: u64, cache: &mut PoolCache) -> Decision {
        let head = EventHead {
            timestamp,
            ..EventHead::default()
        };
        let event = Draft::new(cache).unwrap().finish(&head, Span::default());
        event.reconstructed(&[]).decided(Verdict::default())
    }

    /// A disk whose writes can be blocked, and made to fail.
    struct Disk {
        stamps: Vec<u64>,
        written: usize,
        /// Whether the next write succeeds.
        lets: Receiver<bool>,
        /// Returns the time stamps that were written, and the number of lost events.
        end: Sender<(Vec<u64>, u64)>,
    }

    impl Store for Disk {
        fn turns_at(&self, _: EventView<'_>) -> bool {
            false
        }

        fn push(&mut self, event: EventView<'_>) {
            self.stamps.push(event.head().timestamp);
        }

        fn flush(&mut self) -> Result<()> {
            // Continues without blocking.
            if !self.lets.recv().unwrap_or(true) {
                bail!("no space left");
            }
            self.written = self.stamps.len();
            Ok(())
        }

        fn complete(mut self, lost: u64) -> Result<()> {
            self.stamps.truncate(self.written);
            Ok(self.end.send((self.stamps, lost))?)
        }
    }

    /// A recording on such a disk.
    struct Rig {
        record_queue: RecordQueue,
        writing: Writing,
        lets: Sender<bool>,
        end: Receiver<(Vec<u64>, u64)>,
    }

    fn rig() -> Rig {
        let counts = Arc::<FileCounts>::default();
        let (record_queue, kept) = queue(Arc::clone(&counts)).unwrap();
        let ((lets, let_in), (end_out, end)) = (channel(), channel());
        let disk = Disk {
            stamps: Vec::new(),
            written: 0,
            lets: let_in,
            end: end_out,
        };
        let writer = Writer::new(kept, Arc::clone(&counts), disk);
        let writing = file_writer::start(writer, "--record disk".into(), counts, &[]).unwrap();
        Rig {
            record_queue,
            writing,
            lets,
            end,
        }
    }

    /// The loop is never blocked: events that do not fit are counted, and all others are written.
    #[test]
    fn a_disk_that_stands_still_drops_recordings() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let mut rig = rig();
        let events = 3 * QUEUE as u64;
        let mut kept = Vec::new();
        for n in 0..events {
            let room = rig.record_queue.has_room();
            let before = rig.record_queue.counts.missed.get();
            rig.record_queue.push(event(n, &mut cache), &mut cache);
            if rig.record_queue.counts.missed.get() == before {
                kept.push(n);
            } else {
                assert!(!room || !rig.record_queue.has_room());
            }
        }
        let missed = rig.record_queue.counts.so_far().lost;
        assert!(missed > 0, "the disk did not stand still");
        drop(rig.lets);
        let (report, end) = rig.writing.finish(PATIENCE);
        end.unwrap();
        assert_eq!(report.written, kept.len() as u64);
        assert_eq!(report.written + report.lost, events);
        assert_eq!(rig.end.recv().unwrap(), (kept, missed));
        drop((rig.record_queue, cache));
        assert_eq!(pool.available(), pool.buffers());
    }

    #[test]
    fn a_disk_that_fails_ends_the_recording_and_not_the_run() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let mut rig = rig();
        rig.lets.send(true).unwrap();
        rig.lets.send(false).unwrap();
        let events = 6 * GATHERED;
        for n in 0..events {
            while !rig.record_queue.has_room() {
                std::thread::yield_now();
            }
            rig.record_queue.push(event(n, &mut cache), &mut cache);
        }
        let (report, end) = rig.writing.finish(PATIENCE);
        let told = format!("{:#}", end.unwrap_err());
        assert_eq!(told, "the recording is incomplete: no space left");
        assert!(report.written > 0 && report.lost > 0);
        assert_eq!(report.written + report.lost, events);
        drop((rig.record_queue, cache));
        assert_eq!(pool.available(), pool.buffers());
    }

    /// A disk that accepts one write and no other: the end waits as long as there is progress, and
    /// no longer.
    #[test]
    fn a_disk_that_hangs_does_not_hold_up_the_end() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let mut rig = rig();
        rig.lets.send(true).unwrap();
        rig.record_queue.push(event(0, &mut cache), &mut cache);
        while rig.record_queue.counts.so_far().written == 0 {
            std::thread::yield_now();
        }
        for n in 1..=100 {
            rig.record_queue.push(event(n, &mut cache), &mut cache);
        }
        let (report, end) = rig.writing.finish(Duration::from_millis(500));
        let told = end.unwrap_err().to_string();
        assert!(
            told.starts_with("--record disk is incomplete: the disk has taken nothing for 0.5 s"),
            "{told}"
        );
        assert_eq!((report.written, report.lost), (1, 100));
        // The disk proceeds, and its thread ends, after the run.
        drop(rig.lets);
        let (stamps, _) = rig.end.recv().unwrap();
        assert_eq!(stamps.len(), 101);
        drop((rig.record_queue, cache));
        assert_eq!(pool.available(), pool.buffers());
    }
}
