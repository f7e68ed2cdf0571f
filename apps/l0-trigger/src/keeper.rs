//! Recording of events with their hits: handed over by the trigger loop, written outside of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use pollux_mempool::{Burst, MbufConsumer, MbufProducer, PoolCache, mbuf_ring};
use pollux_na62::l0::{Decision, EventView};

use crate::scribe::{FileCounts, Scribe};

/// Events between the trigger loop and the thread that writes: 80 ms of 100 kHz.
const QUEUE: usize = 1 << 13;

/// Events taken from the queue at a time.
const BURST: usize = 64;

/// Events that are kept from their pool, at most.
pub const KEPT: usize = QUEUE + BURST;

/// Events that are gathered for one write, and how long they may wait for others.
const GATHERED: u64 = 4096;
const STALE: Duration = Duration::from_millis(250);

/// Where events are recorded. It may be slow, and it may fail: that ends the recording, never the
/// run.
pub trait Store: Send + 'static {
    /// Whether this event goes elsewhere than those that are gathered, which are to be written first.
    fn turns_at(&self, event: EventView<'_>) -> bool;

    /// Adds an event to those that are gathered.
    fn push(&mut self, event: EventView<'_>);

    /// Writes what was gathered.
    fn flush(&mut self) -> Result<()>;

    /// Completes it at the end of the run, in which `lost` events found no way here.
    fn complete(self, lost: u64) -> Result<()>;
}

/// The end in the trigger loop.
pub struct Keeper {
    queue: MbufProducer,
    counts: Arc<FileCounts>,
}

impl Keeper {
    /// Whether the next event will find room.
    pub fn has_room(&self) -> bool {
        self.queue.free() > 0
    }

    /// Hands an event over, as it is; one that finds no room is counted, and freed into `events`.
    #[inline]
    pub fn keep(&mut self, event: Decision, events: &mut PoolCache) {
        let mut burst = Burst::<1>::new();
        // There is room for one.
        drop(burst.push(event.into()));
        match self.queue.push(&mut burst.as_mut()) {
            0 => self.counts.missed.add(1),
            _ => self.counts.handed.add(1),
        }
        events.free_burst(&mut burst);
    }
}

/// The other end: events that wait to be written.
pub struct Kept(MbufConsumer);

/// The way from the loop to the thread that writes; what becomes of the events is in `counts`.
pub fn queue(counts: Arc<FileCounts>) -> Result<(Keeper, Kept)> {
    let (queue, consumer) = mbuf_ring(QUEUE)?;
    Ok((Keeper { queue, counts }, Kept(consumer)))
}

/// Writes events to a store.
pub struct Writer<S> {
    queue: MbufConsumer,
    counts: Arc<FileCounts>,
    store: Result<S>,
    /// Events that the store has gathered since `since`.
    gathered: u64,
    since: Instant,
}

impl<S: Store> Writer<S> {
    pub fn new(Kept(queue): Kept, counts: Arc<FileCounts>, store: S) -> Self {
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
                tracing::error!("{error:#}: no more events are recorded, the run goes on");
                self.counts.refused.add(self.gathered);
                self.store = Err(error);
            }
        }
        self.gathered = 0;
    }
}

impl<S: Store> Scribe for Writer<S> {
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
    use crate::scribe::{self, PATIENCE, Writing};
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

    /// A disk that writes when it is let, and fails when it is told to.
    struct Disk {
        stamps: Vec<u64>,
        written: usize,
        /// Whether the next write succeeds.
        lets: Receiver<bool>,
        /// Takes the time stamps that were written, and the number of events that were lost.
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
            // Without a word any more, it goes on.
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
        keeper: Keeper,
        writing: Writing,
        lets: Sender<bool>,
        end: Receiver<(Vec<u64>, u64)>,
    }

    fn rig() -> Rig {
        let counts = Arc::<FileCounts>::default();
        let (keeper, kept) = queue(Arc::clone(&counts)).unwrap();
        let ((lets, let_in), (end_out, end)) = (channel(), channel());
        let disk = Disk {
            stamps: Vec::new(),
            written: 0,
            lets: let_in,
            end: end_out,
        };
        let writer = Writer::new(kept, Arc::clone(&counts), disk);
        let writing = scribe::start(writer, "--record disk".into(), counts, &[]).unwrap();
        Rig {
            keeper,
            writing,
            lets,
            end,
        }
    }

    /// The loop is never held up: what finds no room is counted, and all else is written.
    #[test]
    fn a_disk_that_stands_still_drops_recordings() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let mut rig = rig();
        let events = 3 * QUEUE as u64;
        let mut kept = Vec::new();
        for n in 0..events {
            let room = rig.keeper.has_room();
            let before = rig.keeper.counts.missed.get();
            rig.keeper.keep(event(n, &mut cache), &mut cache);
            if rig.keeper.counts.missed.get() == before {
                kept.push(n);
            } else {
                assert!(!room || !rig.keeper.has_room());
            }
        }
        let missed = rig.keeper.counts.so_far().lost;
        assert!(missed > 0, "the disk did not stand still");
        drop(rig.lets);
        let (report, end) = rig.writing.finish(PATIENCE);
        end.unwrap();
        assert_eq!(report.written, kept.len() as u64);
        assert_eq!(report.written + report.lost, events);
        assert_eq!(rig.end.recv().unwrap(), (kept, missed));
        drop((rig.keeper, cache));
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
            while !rig.keeper.has_room() {
                std::thread::yield_now();
            }
            rig.keeper.keep(event(n, &mut cache), &mut cache);
        }
        let (report, end) = rig.writing.finish(PATIENCE);
        let told = format!("{:#}", end.unwrap_err());
        assert_eq!(told, "the recording is incomplete: no space left");
        assert!(report.written > 0 && report.lost > 0);
        assert_eq!(report.written + report.lost, events);
        drop((rig.keeper, cache));
        assert_eq!(pool.available(), pool.buffers());
    }

    /// One that takes a write and no other: the end waits as long as it moves, and no longer.
    #[test]
    fn a_disk_that_hangs_does_not_hold_up_the_end() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let mut rig = rig();
        rig.lets.send(true).unwrap();
        rig.keeper.keep(event(0, &mut cache), &mut cache);
        while rig.keeper.counts.so_far().written == 0 {
            std::thread::yield_now();
        }
        for n in 1..=100 {
            rig.keeper.keep(event(n, &mut cache), &mut cache);
        }
        let (report, end) = rig.writing.finish(Duration::from_millis(500));
        let told = end.unwrap_err().to_string();
        assert!(
            told.starts_with("--record disk is incomplete: the disk has taken nothing for 0.5 s"),
            "{told}"
        );
        assert_eq!((report.written, report.lost), (1, 100));
        // It moves again, and its thread comes to its end, after that of the run.
        drop(rig.lets);
        let (stamps, _) = rig.end.recv().unwrap();
        assert_eq!(stamps.len(), 101);
        drop((rig.keeper, cache));
        assert_eq!(pool.available(), pool.buffers());
    }
}
