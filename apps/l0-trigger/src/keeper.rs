//! Recording of events with their hits: handed over by the trigger loop, written outside of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use pollux_mempool::{Burst, MbufConsumer, MbufProducer, PoolCache, mbuf_ring};
use pollux_pipelines::l0::{Decision, EventView};
use pollux_pmd::{Count, lcore};

use crate::report::RecordingReport;

/// Events between the trigger loop and the thread that writes: 80 ms of 100 kHz.
const QUEUE: usize = 1 << 13;

/// Events taken from the queue at a time.
const BURST: usize = 64;

/// Events that are kept from their pool, at most.
pub const KEPT: usize = QUEUE + BURST;

/// Events that are gathered for one write, and how long they may wait for others.
const GATHERED: u64 = 4096;
const STALE: Duration = Duration::from_millis(250);

/// How long the thread sleeps when there is nothing to write.
const NAP: Duration = Duration::from_millis(1);

/// Where events are recorded. It may be slow, and it may fail: that ends the recording, never the
/// run.
pub trait Store: Send + 'static {
    /// Adds an event to those that are gathered.
    fn push(&mut self, event: EventView<'_>);

    /// Writes what was gathered.
    fn flush(&mut self) -> Result<()>;
}

/// The end in the trigger loop.
pub struct Keeper {
    queue: MbufProducer,
    missed: Arc<Count>,
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
        if self.queue.push(&mut burst.as_mut()) == 0 {
            self.missed.add(1);
        }
        events.free_burst(&mut burst);
    }
}

/// What the thread gives back.
pub struct Kept<S> {
    /// What it wrote to; none if that has failed.
    pub store: Result<S>,
    pub report: RecordingReport,
}

/// The thread that writes.
pub struct Recording<S> {
    thread: JoinHandle<Kept<S>>,
    done: Arc<AtomicBool>,
}

/// Starts to record in `store`, on none of the CPUs in `loops`.
pub fn start<S: Store>(store: S, loops: &[usize]) -> Result<(Keeper, Recording<S>)> {
    let (producer, consumer) = mbuf_ring(QUEUE)?;
    let (missed, done) = (Arc::<Count>::default(), Arc::<AtomicBool>::default());
    let writer = Writer {
        queue: consumer,
        missed: Arc::clone(&missed),
        done: Arc::clone(&done),
        store: Ok(store),
        gathered: 0,
        since: Instant::now(),
        report: RecordingReport::default(),
    };
    let loops = loops.to_vec();
    let body = move || {
        lcore::keep_off(&loops);
        writer.run()
    };
    let thread = std::thread::Builder::new()
        .name("recording".into())
        .spawn(body)
        .context("cannot start the thread that records")?;
    let keeper = Keeper {
        queue: producer,
        missed,
    };
    Ok((keeper, Recording { thread, done }))
}

impl<S> Recording<S> {
    /// Writes what is left, once the loop has ended.
    pub fn finish(self) -> Kept<S> {
        // Release pairs with the acquire of `run`: all that the loop has handed over is seen.
        self.done.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|_| Kept {
            store: Err(anyhow!("the thread that records has panicked")),
            report: RecordingReport::default(),
        })
    }
}

struct Writer<S> {
    queue: MbufConsumer,
    missed: Arc<Count>,
    done: Arc<AtomicBool>,
    store: Result<S>,
    /// Events that the store has gathered since `since`.
    gathered: u64,
    since: Instant,
    report: RecordingReport,
}

impl<S: Store> Writer<S> {
    fn run(mut self) -> Kept<S> {
        loop {
            let done = self.done.load(Ordering::Acquire);
            let taken = self.take();
            if self.gathered >= GATHERED || (self.gathered > 0 && self.since.elapsed() >= STALE) {
                self.flush();
            }
            if !taken {
                if done {
                    break;
                }
                std::thread::sleep(NAP);
            }
        }
        self.flush();
        self.report.lost += self.missed.get();
        Kept {
            store: self.store,
            report: self.report,
        }
    }

    fn take(&mut self) -> bool {
        let mut burst = Burst::<BURST>::new();
        let n = self.queue.pop(&mut burst.as_mut());
        if n > 0 && self.gathered == 0 {
            self.since = Instant::now();
        }
        match &mut self.store {
            Ok(store) => {
                let events = burst.iter().filter_map(|mbuf| EventView::of(mbuf.data()));
                events.for_each(|event| store.push(event));
                self.gathered += n as u64;
            }
            Err(_) => self.report.lost += n as u64,
        }
        n > 0
    }

    fn flush(&mut self) {
        let Ok(store) = &mut self.store else { return };
        match store.flush() {
            Ok(()) => self.report.written += self.gathered,
            Err(error) => {
                tracing::error!("{error:#}: no more events are recorded, the run goes on");
                self.report.lost += self.gathered;
                self.store = Err(error);
            }
        }
        self.gathered = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anyhow::bail;
    use pollux_mempool::{Mempool, PoolConfig};
    use pollux_pipelines::l0::{Draft, EventHead, Verdict, event_pool};
    use pollux_pipelines::merge::Span;
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
    }

    impl Store for Disk {
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
    }

    fn disk() -> (Sender<bool>, Disk) {
        let (let_it, lets) = channel();
        let disk = Disk {
            stamps: Vec::new(),
            written: 0,
            lets,
        };
        (let_it, disk)
    }

    /// The loop is never held up: what finds no room is counted, and all else is written.
    #[test]
    fn a_disk_that_stands_still_drops_recordings() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let (let_it, disk) = disk();
        let (mut keeper, recording) = start(disk, &[]).unwrap();
        let events = 3 * QUEUE as u64;
        let mut kept = Vec::new();
        for n in 0..events {
            let room = keeper.has_room();
            let before = keeper.missed.get();
            keeper.keep(event(n, &mut cache), &mut cache);
            if keeper.missed.get() == before {
                kept.push(n);
            } else {
                assert!(!room || !keeper.has_room());
            }
        }
        assert!(keeper.missed.get() > 0, "the disk did not stand still");
        drop(let_it);
        let Kept { store, report } = recording.finish();
        let disk = store.unwrap();
        assert_eq!(disk.stamps, kept);
        assert_eq!(disk.written, kept.len());
        assert_eq!(report.written, kept.len() as u64);
        assert_eq!(report.written + report.lost, events);
        drop((keeper, cache));
        assert_eq!(pool.available(), pool.buffers());
    }

    #[test]
    fn a_disk_that_fails_ends_the_recording_and_not_the_run() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let (let_it, disk) = disk();
        let_it.send(true).unwrap();
        let_it.send(false).unwrap();
        let (mut keeper, recording) = start(disk, &[]).unwrap();
        let events = 6 * GATHERED;
        for n in 0..events {
            while !keeper.has_room() {
                std::thread::yield_now();
            }
            keeper.keep(event(n, &mut cache), &mut cache);
        }
        let Kept { store, report } = recording.finish();
        assert_eq!(store.err().unwrap().to_string(), "no space left");
        assert!(report.written > 0 && report.lost > 0);
        assert_eq!(report.written + report.lost, events);
        drop((keeper, cache));
        assert_eq!(pool.available(), pool.buffers());
    }
}
