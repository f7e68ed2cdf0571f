//! Events for the page: a few of each second, copied beside the trigger's work.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mbuf, MbufConsumer, MbufProducer, PoolCache, mbuf_ring};
use pollux_na62::l0::{Decision, EventHead};
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::Ring;
use pollux_pmd::{Clock, Count};

use crate::clock::RunClock;

/// How often an accepted event is offered, and how often a rejected one: what is rare is seen too.
const EVERY: Ns = Ns(100_000_000);

/// Samples between the trigger loop and housekeeping, which looks for them every 20 ms.
pub const QUEUE: usize = 64;

/// Samples that are kept to be looked at.
const KEPT: usize = 256;

/// The end in the trigger loop.
pub struct Sampler {
    queue: MbufProducer,
    /// When a rejected event is offered again, and an accepted one.
    due: [Tsc; 2],
    every_cycles: u64,
    missed: Arc<Count>,
}

impl Sampler {
    /// Offers an event, if it is time: a copy is taken if there is room, and counted if not. The
    /// event itself has its own way to go.
    #[inline]
    pub fn offer(&mut self, event: &Decision, now: Tsc, events: &mut PoolCache) {
        let due = &mut self.due[usize::from(event.verdict().accepted())];
        if now < *due {
            return;
        }
        *due = Tsc(now.0.saturating_add(self.every_cycles));
        self.take(event, now, events);
    }

    #[cold]
    fn take(&mut self, event: &Decision, now: Tsc, events: &mut PoolCache) {
        let mut copy = Burst::<1>::new();
        if let Some(mut mbuf) = events.alloc_from(event.bytes()) {
            // When it is decided, and no longer when its frames came.
            mbuf.set_arrival(now);
            // There is room for one.
            drop(copy.push(mbuf));
        }
        if self.queue.push(&mut copy.as_mut()) == 0 {
            self.missed.add(1);
        }
        events.free_burst(&mut copy);
    }
}

/// An event as it is shown.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When it was decided, by the machine's clock.
    pub decided: SystemTime,
    pub head: EventHead,
    pub accepted: bool,
    pub rings: Vec<Ring>,
    pub hits: Vec<Hit>,
}

impl Sample {
    /// Of a copy; `None` if it is no event.
    fn of(mbuf: Mbuf, clock: &RunClock) -> Option<Self> {
        // The loop looks at its own clock alone.
        let age = clock.to_ns(clock.now().since(mbuf.arrival()));
        let decided = SystemTime::now().checked_sub(Duration::from_nanos(age.0))?;
        let event = Decision::try_from(mbuf).ok()?;
        Some(Self {
            decided,
            head: event.head(),
            accepted: event.verdict().accepted(),
            rings: event.rings().to_vec(),
            hits: event.hits().to_vec(),
        })
    }
}

/// The last samples, with numbers from 1 on.
#[derive(Default)]
struct Kept {
    samples: VecDeque<(u64, Sample)>,
    last: u64,
}

impl Kept {
    fn add(&mut self, sample: Sample) {
        if self.samples.len() == KEPT {
            self.samples.pop_front();
        }
        self.last += 1;
        self.samples.push_back((self.last, sample));
    }
}

/// The last samples, for whoever shows them.
#[derive(Clone)]
pub struct Gallery {
    kept: Arc<Mutex<Kept>>,
    missed: Arc<Count>,
}

impl Gallery {
    /// Samples that found no room, since nobody took those before.
    pub fn missed(&self) -> u64 {
        self.missed.get()
    }

    /// What `show` makes of each sample with a number above `number`.
    pub fn after<T>(&self, number: u64, mut show: impl FnMut(u64, &Sample) -> T) -> Vec<T> {
        let kept = self.kept();
        let new = kept.samples.iter().filter(|(n, _)| *n > number);
        new.map(|(n, sample)| show(*n, sample)).collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end in housekeeping.
pub struct Collector {
    queue: MbufConsumer,
    gallery: Gallery,
    clock: RunClock,
}

impl Collector {
    /// Takes what the loop has offered; whether there was anything.
    pub fn collect(&mut self) -> bool {
        let mut events = Burst::<QUEUE>::new();
        let any = self.queue.pop(&mut events.as_mut()) > 0;
        events.take_all(|mbuf| {
            if let Some(sample) = Sample::of(mbuf, &self.clock) {
                self.gallery.kept().add(sample);
            }
        });
        any
    }

    pub fn gallery(&self) -> Gallery {
        self.gallery.clone()
    }
}

/// The way of the samples from the loop, which runs by `clock`, to housekeeping.
pub fn display(clock: &RunClock) -> Result<(Sampler, Collector)> {
    let (producer, consumer) = mbuf_ring(QUEUE)?;
    let missed = Arc::<Count>::default();
    let sampler = Sampler {
        queue: producer,
        due: [Tsc(0); 2],
        every_cycles: clock.to_cycles(EVERY),
        missed: Arc::clone(&missed),
    };
    let gallery = Gallery {
        kept: Arc::default(),
        missed,
    };
    let collector = Collector {
        queue: consumer,
        gallery,
        clock: clock.clone(),
    };
    Ok((sampler, collector))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_mempool::{Mempool, PoolConfig};
    use pollux_na62::l0::{Draft, Verdict, event_pool};
    use pollux_na62::merge::Span;
    use pollux_pmd::TscClock;

    const CACHE: usize = 8;

    /// Events for a while: those under way, and their copies.
    fn pool() -> Mempool {
        event_pool(QUEUE + 2 + 2 * CACHE, PoolConfig::default()).unwrap()
    }

    fn decision(timestamp: u64, accepted: bool, cache: &mut PoolCache) -> Decision {
        let head = EventHead {
            timestamp,
            ..EventHead::default()
        };
        let mut draft = Draft::new(cache).unwrap();
        let hits = [5, 6, 7].map(|pm| Hit {
            pm,
            ..Hit::default()
        });
        assert!(draft.insert(0, &hits));
        let ring = Ring {
            r: 100.0 + timestamp as f32,
            ..Ring::default()
        };
        let event = draft.finish(&head, Span::default());
        event.reconstructed(&[ring]).decided(Verdict {
            rules: accepted.into(),
            ..Verdict::default()
        })
    }

    fn clock() -> RunClock {
        RunClock::Tsc(TscClock::get())
    }

    fn stamps(gallery: &Gallery, after: u64) -> Vec<u64> {
        gallery.after(after, |_, sample| sample.head.timestamp)
    }

    #[test]
    fn each_kind_of_event_has_its_turn() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let (mut sampler, mut collector) = display(&clock()).unwrap();
        let every = sampler.every_cycles;
        for (n, (at, accepted)) in [(0, true), (0, true), (1, false), (every - 1, true)]
            .into_iter()
            .chain([(every, true), (every, false), (every + 1, false)])
            .enumerate()
        {
            let event = decision(n as u64, accepted, &mut cache);
            sampler.offer(&event, Tsc(at), &mut cache);
        }
        let gallery = collector.gallery();
        assert!(stamps(&gallery, 0).is_empty());
        assert!(collector.collect() && !collector.collect());
        assert_eq!(stamps(&gallery, 0), [0, 2, 4, 6]);
        assert_eq!(stamps(&gallery, 3), [6]);
        let seen = gallery.after(3, |_, sample| (sample.rings[0].r, sample.hits[2].pm));
        assert_eq!(seen, [(106.0, 7)]);
        drop(cache);
        assert_eq!(pool.available(), pool.buffers());
    }

    /// Not the time at which it is looked at, which may be later.
    #[test]
    fn a_sample_says_by_the_clock_on_the_wall_when_it_was_decided() {
        let (pool, clock) = (pool(), clock());
        let mut cache = pool.cache(CACHE).unwrap();
        let (mut sampler, mut collector) = display(&clock).unwrap();
        let event = decision(1, true, &mut cache);
        let before = SystemTime::now();
        let decided = clock.now();
        let after = SystemTime::now();
        sampler.offer(&event, decided, &mut cache);
        let wait = Duration::from_millis(50);
        std::thread::sleep(wait);
        assert!(collector.collect());
        let told = collector.gallery().after(0, |_, sample| sample.decided)[0];
        // The two clocks run alike, but for what sets the one on the wall meanwhile.
        let slack = wait / 5;
        assert!(
            before - slack < told && told < after + slack,
            "{before:?} {told:?} {after:?}"
        );
    }

    #[test]
    fn what_nobody_takes_is_counted_and_the_newest_are_kept() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let (mut sampler, mut collector) = display(&clock()).unwrap();
        let gallery = collector.gallery();
        let mut at = 0;
        let mut offer = |n: usize| {
            for _ in 0..n {
                let event = decision(at, true, &mut cache);
                sampler.offer(&event, Tsc(at * sampler.every_cycles), &mut cache);
                at += 1;
            }
        };
        offer(QUEUE + 3);
        assert_eq!(gallery.missed(), 3);
        for _ in 0..KEPT / QUEUE {
            collector.collect();
            offer(QUEUE);
        }
        assert_eq!(gallery.missed(), 3);
        assert_eq!(stamps(&gallery, 0).len(), KEPT);
        assert_eq!(stamps(&gallery, 0)[0], 0);
        collector.collect();
        let kept = stamps(&gallery, 0);
        assert_eq!((kept.len(), kept[0]), (KEPT, QUEUE as u64 + 3));
        drop(cache);
        assert_eq!(pool.available(), pool.buffers());
    }
}
