//! Sending poll loop: makes frames when they are due, and sends them.

use std::sync::Arc;

use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::time::Tsc;
use pollux_pmd::mempool::{Burst, PoolCache};
use pollux_pmd::{Clock, TscClock, TxQueue};

use super::flows::Flows;
use super::rate::{Pace, Rate};
use crate::payload::{Content, Header};
use crate::stolen_time::StolenTime;

/// Burst size.
pub(super) const BURST: usize = 64;

/// Idle rounds between two calls of a driver that may hold frames: many, so that the calls cost
/// nothing.
const KICK: u32 = 1024;

/// Transmit queues of a loop, used round-robin, burst by burst.
pub(crate) struct Outputs {
    queues: Vec<TxQueue>,
    turn: usize,
}

impl Outputs {
    /// `None` without queues.
    pub(crate) fn new(queues: Vec<TxQueue>) -> Option<Self> {
        (!queues.is_empty()).then_some(Self { queues, turn: 0 })
    }

    /// Sends the frames of a burst that fit, and advances to the next queue.
    #[inline]
    fn send(&mut self, cache: &mut PoolCache, burst: &mut Burst<BURST>) {
        self.queues[self.turn].tx(cache, burst);
        if burst.is_empty() {
            self.turn = (self.turn + 1) % self.queues.len();
        }
    }
}

/// Poll loop, with the resources that it owns.
pub(crate) struct Sender {
    pub(crate) tx: Outputs,
    pub(crate) cache: PoolCache,
    pub(crate) flows: Flows,
    /// Table of frame lengths, and the index of the next frame's length.
    pub(crate) sizes: Box<[u16]>,
    pub(crate) size: usize,
    pub(crate) content: Arc<Content>,
    pub(crate) rate: Rate,
    /// Number of this loop, and number of loops.
    pub(crate) place: (usize, usize),
    /// Frames that are made together; `None`: as many as are due.
    pub(crate) together: Option<usize>,
    /// Frames still to be made.
    pub(crate) left: u64,
    pub(crate) stop: StopFlag,
    pub(crate) clock: TscClock,
}

/// Result of an ended loop.
pub(crate) struct Sent {
    pub(crate) tx: Vec<TxQueue>,
    /// Frames that were made but did not fit into the queue before the stop.
    pub(crate) unsent: u64,
    /// Rounds in which the transmit queue did not accept all frames.
    pub(crate) full: u64,
    /// Seconds from the first frame to the end of the last frame's slot.
    pub(crate) span_s: f64,
    /// Seconds by which the schedule was shifted because the loop was stalled.
    pub(crate) held_up_s: f64,
    /// Stolen time of the loop in seconds, made up for or not.
    pub(crate) taken_s: f64,
}

/// Results of the loop.
struct Work {
    unsent: u64,
    full: u64,
    stolen: StolenTime,
    /// Time when the last frame was made; time when it was accepted, if all were.
    last: Tsc,
}

impl Sender {
    /// Sends until the stop flag is set, or all frames are sent.
    pub(crate) fn run(mut self) -> Sent {
        let mut pace = Pace::new(self.rate, self.clock, self.place);
        let Work {
            unsent,
            full,
            stolen,
            last,
        } = self.work(&mut pace);
        let seconds = |cycles| self.clock.to_ns(cycles).0 as f64 / 1e9;
        Sent {
            tx: self.tx.queues,
            unsent,
            full,
            span_s: seconds(pace.span(last)),
            held_up_s: seconds(pace.given_up()),
            taken_s: stolen.seconds(),
        }
    }

    fn work(&mut self, pace: &mut Pace) -> Work {
        let clock = self.clock;
        let mut burst = Burst::<BURST>::new();
        let (mut idle, mut full) = (0_u32, 0);
        let mut stolen = StolenTime::new(clock);
        let mut last = clock.now();
        while !self.stop.is_set() && (self.left > 0 || !burst.is_empty()) {
            let now = stolen.round();
            if burst.is_empty() && self.fill(&mut burst, pace, now) {
                last = now;
            }
            if burst.is_empty() {
                idle += 1;
                if idle.is_multiple_of(KICK) {
                    // An empty burst makes the driver send frames that the kernel refused before,
                    // and free buffers that the device has completed.
                    self.tx.send(&mut self.cache, &mut burst);
                }
                clock.relax();
                continue;
            }
            idle = 0;
            self.tx.send(&mut self.cache, &mut burst);
            if !burst.is_empty() {
                full += 1;
                clock.relax();
            }
        }
        if self.left == 0 && burst.is_empty() {
            // The last frames may have waited for a free descriptor.
            last = clock.now();
        }
        let unsent = burst.len() as u64;
        self.cache.free_burst(&mut burst);
        Work {
            unsent,
            full,
            stolen,
            last,
        }
    }

    /// Makes the frames that are due now, as far as buffers are available. Returns whether there
    /// were any.
    #[inline]
    fn fill(&mut self, burst: &mut Burst<BURST>, pace: &mut Pace, now: Tsc) -> bool {
        pace.catch_up(now);
        let most = self.left.min(self.together.unwrap_or(BURST) as u64) as usize;
        let header = |flow, sequence| Header {
            flow,
            sequence,
            sent: now,
        };
        // The first frame of a group of fixed size makes the others due.
        while burst.len() < most
            && (pace.is_due(now) || self.together.is_some() && !burst.is_empty())
            && let Some(mut mbuf) = self.cache.alloc()
        {
            let size = usize::from(self.sizes[self.size]);
            let last = self.size + 1 == self.sizes.len();
            self.size = if last { 0 } else { self.size + 1 };
            let made = self.flows.make(&mut mbuf, size, &self.content, header);
            // It fits: sizes were checked against the pool's data room, and the burst is not full.
            debug_assert!(made.is_some());
            drop(burst.push(mbuf));
            pace.spend(size);
            self.left -= 1;
        }
        !burst.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::generate::endpoints::Endpoint;
    use crate::generate::flows::{Addresses, Vary};
    use crate::payload::Pattern;
    use pollux_pmd::mempool::{Mempool, PoolConfig};
    use pollux_pmd::net::{MacAddr, UdpChecksum};
    use pollux_pmd::{PortConfig, Registry};

    #[test]
    fn the_loop_does_nothing_but_work() {
        let pool = Mempool::new(PoolConfig {
            buffers: 256,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let port = Registry::builtin().open("null").unwrap();
        let port = port.configure(PortConfig {
            rx_queues: 0,
            ..PortConfig::new(pool.clone())
        });
        let end = |n| Endpoint {
            mac: MacAddr([2, 0, 0, 0, 0, n]),
            socket: ([10, 0, 0, n], 9000).into(),
        };
        let addresses = Addresses {
            src: end(1),
            dst: end(2),
            vary: &[Vary::DstPort],
            checksum: UdpChecksum::Whole,
        };
        let mut sender = Sender {
            tx: Outputs::new(port.unwrap().start().unwrap().tx).unwrap(),
            cache: pool.cache(64).unwrap(),
            flows: Flows::new(&addresses, 100, (0, 1), Some(5)).unwrap(),
            sizes: vec![64, 1000].into(),
            size: 0,
            content: Arc::new(Content::new(Pattern::Random, 1, 1000)),
            rate: Rate::Frames(1e6),
            place: (0, 1),
            together: None,
            left: 20_000,
            stop: StopFlag::new(),
            clock: TscClock::get(),
        };
        let sent = sender.tx.queues[0].sent();
        let ((), noise) = pollux_pmd_testkit::guard::listen(move |ear| {
            let mut pace = Pace::new(sender.rate, sender.clock, sender.place);
            ear.during(|| sender.work(&mut pace));
        });
        noise.assert_none();
        assert_eq!((sent.packets(), sent.bytes()), (20_000, 10_640_000));
    }
}
