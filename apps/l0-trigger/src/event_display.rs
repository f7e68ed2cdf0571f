//! Event display: copies a few events of each second for the page, during the trigger's work.

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

/// Intervals at which an accepted and a rejected event are sampled, so that rare ones appear too.
const EVERY: Ns = Ns(100_000_000);

/// Number of samples between the trigger loop and housekeeping, which reads them every 20 ms.
pub const QUEUE: usize = 64;

/// Number of samples that are kept for display.
const RECENT: usize = 256;

/// The producer in the trigger loop.
pub struct Sampler {
    queue: MbufProducer,
    /// Time of the next sample of a rejected and of an accepted event.
    due: [Tsc; 2],
    every_cycles: u64,
    missed: Arc<Count>,
}

impl Sampler {
    /// Samples an event if it is time: takes a copy if there is space, otherwise counts it. Does
    /// not affect the event itself.
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
            // Time of the decision, not of the arrival of its frames.
            mbuf.set_arrival(now);
            // It fits.
            drop(copy.push(mbuf));
        }
        if self.queue.push(&mut copy.as_mut()) == 0 {
            self.missed.add(1);
        }
        events.free_burst(&mut copy);
    }
}

/// A sampled event.
#[derive(Clone, Debug)]
pub struct SampledEvent {
    /// Time of the decision, by the system's clock.
    pub decided: SystemTime,
    pub head: EventHead,
    pub accepted: bool,
    pub rings: Vec<Ring>,
    pub hits: Vec<Hit>,
}

impl SampledEvent {
    /// From a copy; `None` if it is not an event.
    fn of(mbuf: Mbuf, clock: &RunClock) -> Option<Self> {
        // The loop reads only its own clock.
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

/// The last samples, numbered from 1.
#[derive(Default)]
struct RecentEvents {
    samples: VecDeque<(u64, SampledEvent)>,
    last: u64,
}

impl RecentEvents {
    fn add(&mut self, sample: SampledEvent) {
        if self.samples.len() == RECENT {
            self.samples.pop_front();
        }
        self.last += 1;
        self.samples.push_back((self.last, sample));
    }
}

/// Read access to the last samples.
#[derive(Clone)]
pub struct EventDisplay {
    kept: Arc<Mutex<RecentEvents>>,
    missed: Arc<Count>,
}

impl EventDisplay {
    /// Samples that were dropped because the queue was full.
    pub fn missed(&self) -> u64 {
        self.missed.get()
    }

    /// The result of `show` for each sample with a number above `number`.
    pub fn after<T>(&self, number: u64, mut show: impl FnMut(u64, &SampledEvent) -> T) -> Vec<T> {
        let kept = self.kept();
        let new = kept.samples.iter().filter(|(n, _)| *n > number);
        new.map(|(n, sample)| show(*n, sample)).collect()
    }

    fn kept(&self) -> MutexGuard<'_, RecentEvents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The consumer in housekeeping.
pub struct Collector {
    queue: MbufConsumer,
    display: EventDisplay,
    clock: RunClock,
}

impl Collector {
    /// Takes the samples of the loop; returns whether there were any.
    pub fn collect(&mut self) -> bool {
        let mut events = Burst::<QUEUE>::new();
        let any = self.queue.pop(&mut events.as_mut()) > 0;
        events.take_all(|mbuf| {
            if let Some(sample) = SampledEvent::of(mbuf, &self.clock) {
                self.display.kept().add(sample);
            }
        });
        any
    }

    pub fn display(&self) -> EventDisplay {
        self.display.clone()
    }
}

/// Queue of samples from the loop, whose clock is `clock`, to housekeeping.
pub fn channel(clock: &RunClock) -> Result<(Sampler, Collector)> {
    let (producer, consumer) = mbuf_ring(QUEUE)?;
    let missed = Arc::<Count>::default();
    let sampler = Sampler {
        queue: producer,
        due: [Tsc(0); 2],
        every_cycles: clock.to_cycles(EVERY),
        missed: Arc::clone(&missed),
    };
    let display = EventDisplay {
        kept: Arc::default(),
        missed,
    };
    let collector = Collector {
        queue: consumer,
        display,
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

    /// Events for a while: those in flight, and their copies.
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

    fn stamps(display: &EventDisplay, after: u64) -> Vec<u64> {
        display.after(after, |_, sample| sample.head.timestamp)
    }

    #[test]
    fn each_kind_of_event_has_its_turn() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let (mut sampler, mut collector) = channel(&clock()).unwrap();
        let every = sampler.every_cycles;
        for (n, (at, accepted)) in [(0, true), (0, true), (1, false), (every - 1, true)]
            .into_iter()
            .chain([(every, true), (every, false), (every + 1, false)])
            .enumerate()
        {
            let event = decision(n as u64, accepted, &mut cache);
            sampler.offer(&event, Tsc(at), &mut cache);
        }
        let display = collector.display();
        assert!(stamps(&display, 0).is_empty());
        assert!(collector.collect() && !collector.collect());
        assert_eq!(stamps(&display, 0), [0, 2, 4, 6]);
        assert_eq!(stamps(&display, 3), [6]);
        let seen = display.after(3, |_, sample| (sample.rings[0].r, sample.hits[2].pm));
        assert_eq!(seen, [(106.0, 7)]);
        drop(cache);
        assert_eq!(pool.available(), pool.buffers());
    }

    /// Not the time at which it is read, which may be later.
    #[test]
    fn a_sample_says_by_the_clock_on_the_wall_when_it_was_decided() {
        let (pool, clock) = (pool(), clock());
        let mut cache = pool.cache(CACHE).unwrap();
        let (mut sampler, mut collector) = channel(&clock).unwrap();
        let event = decision(1, true, &mut cache);
        let before = SystemTime::now();
        let decided = clock.now();
        let after = SystemTime::now();
        sampler.offer(&event, decided, &mut cache);
        let wait = Duration::from_millis(50);
        std::thread::sleep(wait);
        assert!(collector.collect());
        let told = collector.display().after(0, |_, sample| sample.decided)[0];
        // Both clocks advance alike, unless the system's clock is set meanwhile.
        let slack = wait / 5;
        assert!(
            before - slack < told && told < after + slack,
            "{before:?} {told:?} {after:?}"
        );
    }

    #[test]
    fn events_that_are_not_taken_are_counted_and_the_newest_are_kept() {
        let pool = pool();
        let mut cache = pool.cache(CACHE).unwrap();
        let (mut sampler, mut collector) = channel(&clock()).unwrap();
        let display = collector.display();
        let mut at = 0;
        let mut offer = |n: usize| {
            for _ in 0..n {
                let event = decision(at, true, &mut cache);
                sampler.offer(&event, Tsc(at * sampler.every_cycles), &mut cache);
                at += 1;
            }
        };
        offer(QUEUE + 3);
        assert_eq!(display.missed(), 3);
        for _ in 0..RECENT / QUEUE {
            collector.collect();
            offer(QUEUE);
        }
        assert_eq!(display.missed(), 3);
        assert_eq!(stamps(&display, 0).len(), RECENT);
        assert_eq!(stamps(&display, 0)[0], 0);
        collector.collect();
        let kept = stamps(&display, 0);
        assert_eq!((kept.len(), kept[0]), (RECENT, QUEUE as u64 + 3));
        drop(cache);
        assert_eq!(pool.available(), pool.buffers());
    }
}
