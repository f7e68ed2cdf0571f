//! Receiving by several loops for one chain.
//!
//! ```text
//!   queue 0 --> receive loop 0 --> lane 0 --+
//!   queue 1 --> receive loop 1 --> lane 1 --+--> Receiver::route --> chain
//!   queue 2 --> receive loop 0 --> lane 2 --+
//! ```
//!
//! A receive loop polls its queues, classifies the frames and reassembles datagrams, on a core of its
//! own, and passes them on through one lane for each queue. The loop of the chain routes them: the
//! endpoints, the neighbour and the demux have one owner, as with one loop. How streams are
//! distributed to queues is up to the port: RSS, flow rules, or the kernel's fan-out.
//!
//! A lane keeps the order of its queue. The frames of a recording carry their time of capture, by which
//! the chain can take the lanes in the order of capture: its results then do not depend on the number
//! of loops.
//!
//! Batches of frames are boxes that return to the receive loop, so nothing is allocated after the
//! start. Where all batches of a lane are with the chain, its queue is not polled: frames stay in the
//! receive ring, where a loss has a cause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_mempool::ring::RingError;
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{BoxConsumer, BoxProducer, Burst, Mbuf, PoolCache, box_ring};

use super::classifier::{Classified, Classifier};
use crate::count::Count;
use crate::ledger::TallyView;
use crate::port::RxQueue;

/// Batches of a lane.
const BATCHES: usize = 4;

/// Maximum number of frames in a batch.
const BATCH: usize = 32;

/// A frame from a receive loop.
#[derive(Debug)]
pub struct LaneFrame {
    /// The frame, without an error: the receive loop counts and frees what must be dropped.
    pub frame: Classified,
    /// The time of capture of a recorded frame; else the time of the receive loop.
    pub at: Ns,
}

type Batch = Vec<LaneFrame>;

/// What a receive loop has done. Written by that loop alone.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ReceiveCounts {
    /// Frames that were passed on.
    pub frames: Count,
    /// Polls of a queue that were left out because all batches of its lane were with the chain.
    pub stops: Count,
}

/// The end of a lane in the receive loop.
struct Feed {
    rx: RxQueue,
    /// Index of the port.
    port: usize,
    /// Absent after the end of the queue.
    to: Option<BoxProducer<Batch>>,
    returned: BoxConsumer<Batch>,
    /// An empty batch.
    spare: Option<Box<Batch>>,
    is_waiting: Arc<AtomicBool>,
}

/// Polls receive queues for the loop of a chain.
pub struct ReceiveLoop {
    feeds: Vec<Feed>,
    classifier: Classifier,
    cache: PoolCache,
    burst: usize,
    is_recorded: bool,
    counts: Arc<ReceiveCounts>,
}

impl ReceiveLoop {
    /// A loop without queues, which takes up to `burst` frames from a queue at a time (32 at most).
    /// With `is_recorded`, all its queues are of recordings, and times are those of capture.
    #[must_use]
    pub fn new(classifier: Classifier, cache: PoolCache, burst: usize, is_recorded: bool) -> Self {
        Self {
            feeds: Vec::new(),
            classifier,
            cache,
            burst: burst.clamp(1, BATCH),
            is_recorded,
            counts: Arc::default(),
        }
    }

    /// Adds a queue of the port with this index; returns the lane for the loop of the chain.
    ///
    /// # Errors
    /// No memory for the rings.
    pub fn add(&mut self, rx: RxQueue, port: usize) -> Result<Lane, RingError> {
        // Both rings hold all batches of the lane, so a push never fails.
        let (to, from) = box_ring(BATCHES)?;
        let (mut back, returned) = box_ring(BATCHES)?;
        for _ in 0..BATCHES {
            drop(back.push(Box::new(Vec::with_capacity(BATCH))));
        }
        let is_waiting = Arc::<AtomicBool>::default();
        self.feeds.push(Feed {
            rx,
            port,
            to: Some(to),
            returned,
            spare: None,
            is_waiting: Arc::clone(&is_waiting),
        });
        Ok(Lane {
            from,
            back,
            is_waiting,
            was_waiting: false,
            has_ended: false,
        })
    }

    /// One round over the queues, which began at `time` by the clock and `now` after the start of the
    /// loop. Returns whether there was a frame.
    #[inline]
    pub fn poll(&mut self, time: Tsc, now: Ns) -> bool {
        let mut busy = false;
        for feed in &mut self.feeds {
            let Some(to) = &mut feed.to else { continue };
            // Every recording must be able to show its next frame: when buffers are few, none is read
            // further ahead than that.
            let pool = self.cache.pool();
            let scarce = self.is_recorded && !pool.has(pool.buffers() / 2);
            if scarce && to.free() < BATCHES {
                self.counts.stops.add(1);
                continue;
            }
            let most = if scarce { 1 } else { self.burst };
            let Some(mut batch) = feed.spare.take().or_else(|| feed.returned.pop()) else {
                self.counts.stops.add(1);
                continue;
            };
            let mut burst = Burst::<BATCH>::new();
            let received = if self.is_recorded {
                feed.rx.rx_up_to(&mut self.cache, &mut burst, most)
            } else {
                let cache = &mut self.cache;
                feed.rx.rx_at(time, cache, &mut burst, most)
            };
            if received == 0 {
                feed.spare = Some(batch);
                if feed.rx.state().is_final() {
                    feed.to = None;
                } else if !feed.is_waiting.load(Ordering::Relaxed) {
                    // Release: who sees it sees all batches that were passed on before.
                    feed.is_waiting.store(true, Ordering::Release);
                }
                continue;
            }
            busy = true;
            burst.iter().for_each(Mbuf::prefetch_read);
            let (classifier, cache) = (&mut self.classifier, &mut self.cache);
            burst.take_all(|mbuf| {
                let at = if self.is_recorded {
                    Ns(mbuf.wire_time().unwrap_or_default().0)
                } else {
                    now
                };
                let Some(frame) = classifier.take(mbuf, at, feed.port, cache) else {
                    return;
                };
                match frame.parsed {
                    Ok(_) => batch.push(LaneFrame { frame, at }),
                    Err(cause) => {
                        classifier.tally().count_dropped(cause, frame.frames);
                        cache.free(frame.mbuf);
                    }
                }
            });
            if batch.is_empty() {
                feed.spare = Some(batch);
                continue;
            }
            self.counts.frames.add(batch.len() as u64);
            // Relaxed: the push publishes it, and an old value is harmless beside a batch.
            feed.is_waiting.store(false, Ordering::Relaxed);
            drop(to.push(batch));
        }
        busy
    }

    /// Whether all queues have come to their end, and all their frames were passed on.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.feeds.iter().all(|feed| feed.to.is_none())
    }

    /// The queues, for an idle loop.
    pub fn queues(&mut self) -> impl Iterator<Item = &mut RxQueue> {
        self.feeds.iter_mut().map(|feed| &mut feed.rx)
    }

    /// Drops datagrams that were not complete in time.
    pub fn expire(&mut self, now: Ns) {
        self.classifier.expire(now, &mut self.cache);
    }

    /// The counts of the loop.
    #[must_use]
    pub fn counts(&self) -> Arc<ReceiveCounts> {
        Arc::clone(&self.counts)
    }

    /// A view of the counter of frames that end in the loop, for the ledger.
    #[must_use]
    pub fn view(&self) -> TallyView {
        self.classifier.view()
    }

    /// Ends all lanes and drops incomplete datagrams; returns the queues, with which the ports are
    /// stopped.
    #[must_use]
    pub fn finish(mut self) -> Vec<RxQueue> {
        self.classifier.finish(&mut self.cache);
        self.feeds.into_iter().map(|feed| feed.rx).collect()
    }
}

/// The frames of one queue, for the loop of the chain.
pub struct Lane {
    from: BoxConsumer<Batch>,
    back: BoxProducer<Batch>,
    is_waiting: Arc<AtomicBool>,
    was_waiting: bool,
    has_ended: bool,
}

impl Lane {
    /// Maximum number of frames in a lane.
    pub const FRAMES: usize = BATCHES * BATCH;

    /// Takes up to 32 frames, in the order of their queue. Returns whether there were any.
    #[inline]
    pub fn take(&mut self, each: impl FnMut(LaneFrame)) -> bool {
        // Before the ring: if the queue was waiting then and the ring is empty, all frames before
        // have been taken. Acquire pairs with the Release of the receive loop.
        let waiting = self.is_waiting.load(Ordering::Acquire);
        let Some(mut batch) = self.from.pop().or_else(|| self.last()) else {
            self.was_waiting = waiting;
            return false;
        };
        self.was_waiting = false;
        batch
            .iter()
            .for_each(|item| item.frame.mbuf.prefetch_read());
        batch.drain(..).for_each(each);
        drop(self.back.push(batch));
        true
    }

    /// What is in the ring after the receive loop has left the lane.
    fn last(&mut self) -> Option<Box<Batch>> {
        if self.has_ended || !self.from.is_abandoned() {
            return None;
        }
        let batch = self.from.pop();
        self.has_ended = batch.is_none();
        batch
    }

    /// Whether the queue itself had no frame when the lane was found empty: a recording that is read
    /// at its own pace, for example.
    #[must_use]
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.was_waiting
    }

    /// Whether the lane was found empty, and nothing can come any more.
    #[must_use]
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }
}
