//! Recording of events with their hits, outside of the trigger loop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use pollux_na62::l0::EventView;
use pollux_output::{QueuedEvents, Task};

use crate::file_counts::FileCounts;

/// Number of events taken from the queue at a time.
const BURST: usize = 64;

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

/// Writes events to a store.
pub struct Writer<S> {
    queue: QueuedEvents,
    counts: Arc<FileCounts>,
    store: Result<S>,
    /// Number of events that the store has collected since `since`.
    gathered: u64,
    since: Instant,
}

impl<S: Store> Writer<S> {
    pub fn new(queue: QueuedEvents, counts: Arc<FileCounts>, store: S) -> Self {
        Self {
            queue,
            counts,
            store: Ok(store),
            gathered: 0,
            since: Instant::now(),
        }
    }

    fn take(&mut self) -> bool {
        let mut taken = 0;
        while taken < BURST && self.take_one() {
            taken += 1;
        }
        taken > 0
    }

    fn take_one(&mut self) -> bool {
        let Some(event) = self.queue.pop() else {
            return false;
        };
        if self.gathered == 0 {
            self.since = Instant::now();
        }
        if let Some(event) = event.event() {
            self.push(event.view);
        }
        true
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

impl<S: Store> Task for Writer<S> {
    type End = Result<()>;

    fn work(&mut self) -> bool {
        let taken = self.take();
        if self.gathered >= GATHERED || (self.gathered > 0 && self.since.elapsed() >= STALE) {
            self.flush();
        }
        taken
    }

    fn finish(mut self, _: Option<Instant>) -> Result<()> {
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
    use crate::file_writer::{PATIENCE, Writing};
    use anyhow::bail;
    use pollux_mempool::{Mempool, PoolCache, PoolConfig};
    use pollux_na62::l0::{Decision, Draft, EventHead, Verdict, event_pool};
    use pollux_na62::merge::Span;
    use pollux_output::{CAPACITY, EventQueues, Selection, event_queue};
    use std::sync::mpsc::{Receiver, Sender, channel};

    const CACHE: usize = 8;

    fn pool() -> Mempool {
        event_pool(CAPACITY + 2 * CACHE, PoolConfig::default()).unwrap()
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
        queues: EventQueues,
        counts: Arc<FileCounts>,
        writing: Writing,
        lets: Sender<bool>,
        end: Receiver<(Vec<u64>, u64)>,
    }

    fn rig() -> Rig {
        let counts = Arc::<FileCounts>::default();
        let (producer, kept) = event_queue(Selection::All, Arc::clone(&counts.queue)).unwrap();
        let mut queues = EventQueues::default();
        queues.add(producer);
        let ((lets, let_in), (end_out, end)) = (channel(), channel());
        let disk = Disk {
            stamps: Vec::new(),
            written: 0,
            lets: let_in,
            end: end_out,
        };
        let writer = Writer::new(kept, Arc::clone(&counts), disk);
        let writing =
            Writing::start(writer, "--record disk".into(), Arc::clone(&counts), &[]).unwrap();
        Rig {
            queues,
            counts,
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
        let events = 3 * CAPACITY as u64;
        let mut kept = Vec::new();
        for n in 0..events {
            let room = rig.queues.have_room();
            let before = rig.counts.queue.missed.get();
            let decision = event(n, &mut cache);
            rig.queues.push(0, decision, &mut cache, |_| ());
            if rig.counts.queue.missed.get() == before {
                kept.push(n);
            } else {
                assert!(!room || !rig.queues.have_room());
            }
        }
        let missed = rig.counts.so_far().lost;
        assert!(missed > 0, "the disk did not stand still");
        drop(rig.lets);
        let (report, end) = rig.writing.finish(PATIENCE);
        end.unwrap();
        assert_eq!(report.written, kept.len() as u64);
        assert_eq!(report.written + report.lost, events);
        assert_eq!(rig.end.recv().unwrap(), (kept, missed));
        drop((rig.queues, cache));
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
            while !rig.queues.have_room() {
                std::thread::yield_now();
            }
            let decision = event(n, &mut cache);
            rig.queues.push(0, decision, &mut cache, |_| ());
        }
        let (report, end) = rig.writing.finish(PATIENCE);
        let told = format!("{:#}", end.unwrap_err());
        assert_eq!(told, "the recording is incomplete: no space left");
        assert!(report.written > 0 && report.lost > 0);
        assert_eq!(report.written + report.lost, events);
        drop((rig.queues, cache));
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
        let decision = event(0, &mut cache);
        rig.queues.push(0, decision, &mut cache, |_| ());
        while rig.counts.so_far().written == 0 {
            std::thread::yield_now();
        }
        for n in 1..=100 {
            let decision = event(n, &mut cache);
            rig.queues.push(0, decision, &mut cache, |_| ());
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
        drop((rig.queues, cache));
        assert_eq!(pool.available(), pool.buffers());
    }
}
