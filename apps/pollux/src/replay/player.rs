//! Replay poll loop: reads frames ahead, applies faults, and sends each frame when it is due.

use pollux_faults::Injector;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::time::{Ns, Tsc, WireTime};
use pollux_pmd::mempool::{Burst, PoolCache};
use pollux_pmd::{Cause, Clock, LatencyHistogram, RxQueue, Tally, TallyView, TscClock, TxQueue};

use super::options::Speed;
use super::outgoing::Outgoing;

/// Burst size.
const BURST: usize = 32;

/// Limit on frames that are read ahead.
pub(super) const AHEAD: usize = 512;

/// Idle rounds between two calls of a driver that may hold frames.
const KICK: u32 = 1024;

/// Longest wait of a loop that lacks nothing but a buffer.
const PATIENCE: Ns = Ns(1_000_000_000);

/// Poll loop, with the resources that it owns.
pub(super) struct Player {
    pub(super) rx: RxQueue,
    pub(super) tx: TxQueue,
    pub(super) cache: PoolCache,
    pub(super) injector: Injector<Outgoing>,
    pub(super) speed: Speed,
    /// Frames wait until they are due.
    pub(super) paced: bool,
    pub(super) stop: StopFlag,
    burst: Burst<BURST>,
    /// Bit n: frame n of the burst is a copy, and does not come from the file.
    copies: u32,
    /// Stamp of the first frame.
    first: Option<WireTime>,
    /// Least due time of the frames that are still to be read; `None`: all are read.
    horizon: Option<Ns>,
    /// The last read returned no frame: no buffer is free.
    starved: bool,
    scratch: Box<[u8]>,
    tally: Tally,
    behind: LatencyHistogram,
    clock: TscClock,
}

/// Result of an ended loop.
pub(super) struct Played {
    pub(super) rx: RxQueue,
    pub(super) tx: TxQueue,
    pub(super) read: u64,
    pub(super) impaired: pollux_faults::Counts,
    /// Frames that waited when the loop was stopped, copies included.
    pub(super) unsent: u64,
    /// Delay of departures after their due times, where frames wait until they are due.
    pub(super) behind: LatencyHistogram,
    /// Held-back frames took all buffers, so that reading could not go on.
    pub(super) stalled: bool,
}

impl Player {
    pub(super) fn new(
        (rx, tx): (RxQueue, TxQueue),
        cache: PoolCache,
        injector: Injector<Outgoing>,
        speed: Speed,
        paced: bool,
        stop: StopFlag,
    ) -> Self {
        let scratch = vec![0; cache.pool().longest_frame()].into();
        Self {
            rx,
            tx,
            cache,
            injector,
            speed,
            paced,
            stop,
            burst: Burst::new(),
            copies: 0,
            first: None,
            horizon: Some(Ns(0)),
            starved: false,
            scratch,
            tally: Tally::new(),
            behind: LatencyHistogram::new(),
            clock: TscClock::get(),
        }
    }

    pub(super) fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Sends until the stop flag is set, or all frames are sent.
    pub(super) fn run(mut self) -> Played {
        let stalled = self.work();
        self.end(stalled)
    }

    /// Returns whether it has ended for lack of buffers.
    fn work(&mut self) -> bool {
        let mut start = None;
        let (mut moved_at, mut idle) = (self.clock.now(), 0_u32);
        while !self.stop.is_set() && !self.is_done() {
            let now = self.clock.now();
            let elapsed = self.elapsed(&mut start, now);
            let read = self.wants_more(elapsed) && self.read() > 0;
            let sent = self.send(elapsed) > 0;
            if read || sent {
                (moved_at, idle) = (now, 0);
                continue;
            }
            idle += 1;
            if idle.is_multiple_of(KICK) {
                // An empty burst makes the driver send frames that the kernel refused before, and
                // free buffers that the device has completed.
                self.tx.tx(&mut self.cache, &mut Burst::<1>::new());
            }
            // Undecided frames wait for the file, and the file waits for buffers.
            let waits_for_buffers = !self.paced && self.burst.is_empty() && !self.is_done();
            let waited = self.clock.to_ns(now.since(moved_at));
            if waits_for_buffers && waited > PATIENCE {
                return true;
            }
            self.clock.relax();
        }
        false
    }

    /// Time since the first frame. Where frames do not wait, all are due.
    fn elapsed(&self, start: &mut Option<Tsc>, now: Tsc) -> Ns {
        if !self.paced {
            return Ns(u64::MAX);
        }
        if self.first.is_none() {
            return Ns(0);
        }
        self.clock.to_ns(now.since(*start.get_or_insert(now)))
    }

    fn is_done(&self) -> bool {
        self.horizon.is_none() && self.injector.is_empty() && self.burst.is_empty()
    }

    /// Whether to read on: no frame is due, and too few frames are known in advance.
    fn wants_more(&self, elapsed: Ns) -> bool {
        let Some(horizon) = self.horizon else {
            return false;
        };
        let ready = self.next();
        ready.is_none_or(|frame| frame.due > elapsed)
            && (horizon <= elapsed || self.injector.len() < AHEAD)
    }

    /// The frame to be sent next. When the file waits for buffers, only time decides: frames that
    /// are held back occupy the buffers until they depart. They depart when they are due, although
    /// the file may contain frames to be sent before them.
    fn next(&self) -> Option<&Outgoing> {
        let certain = self.horizon.filter(|_| !(self.starved && self.paced));
        self.injector.peek(certain)
    }

    /// Reads a burst of the file; returns the number of frames.
    fn read(&mut self) -> usize {
        let mut burst = Burst::<BURST>::new();
        let n = self.rx.rx(&mut self.cache, &mut burst);
        let (cache, scratch) = (&mut self.cache, &mut self.scratch);
        burst.take_all(|mbuf| {
            let time = mbuf.wire_time().unwrap_or_default();
            let first = *self.first.get_or_insert(time);
            let due = self.speed.scale(time.since(first));
            self.horizon = Some(due);
            let frame = Outgoing {
                mbuf,
                due,
                is_copy: false,
            };
            if let Some(lost) = self.injector.push(frame, |f| f.copy(cache, scratch)) {
                self.tally.count_dropped(Cause::Impaired, 1);
                cache.free(lost.mbuf);
            }
        });
        if n == 0 && self.rx.state().is_final() {
            self.injector.finish();
            self.horizon = None;
        }
        self.starved = n == 0;
        n
    }

    /// Sends due frames until the queue is full; returns their number.
    fn send(&mut self, elapsed: Ns) -> usize {
        while !self.burst.is_full()
            && let Some(frame) = self.next()
            && frame.due <= elapsed
            && let Some(frame) = self.injector.pop()
        {
            let Outgoing {
                mut mbuf,
                due,
                is_copy,
            } = frame;
            if self.paced {
                self.behind.record((elapsed - due).0);
            }
            // For ports that store it: a capture then has the due times of the frames.
            mbuf.set_wire_time(self.first.unwrap_or_default() + due);
            self.copies |= u32::from(is_copy) << self.burst.len();
            drop(self.burst.push(mbuf));
        }
        if self.burst.is_empty() {
            return 0;
        }
        let sent = self.tx.tx(&mut self.cache, &mut self.burst);
        let (gone, left) = split(self.copies, sent);
        self.copies = left;
        self.tally
            .count_delivered(sent as u64 - u64::from(gone.count_ones()));
        sent
    }

    /// Drops the waiting frames.
    fn end(mut self, stalled: bool) -> Played {
        let read = self.injector.made();
        let mut unsent = self.burst.len() as u64;
        let mut aborted = unsent - u64::from(self.copies.count_ones());
        self.cache.free_burst(&mut self.burst);
        let impaired = self.injector.counts();
        self.injector.finish();
        while let Some(frame) = self.injector.pop() {
            unsent += 1;
            aborted += u64::from(!frame.is_copy);
            self.cache.free(frame.mbuf);
        }
        self.tally.count_dropped(Cause::Aborted, aborted);
        Played {
            rx: self.rx,
            tx: self.tx,
            read,
            impaired,
            unsent,
            behind: self.behind,
            stalled,
        }
    }
}

/// The first `n` bits, and the remaining ones shifted to the front.
fn split(bits: u32, n: usize) -> (u32, u32) {
    let first = u64::from(bits) & ((1 << n) - 1);
    (first as u32, (u64::from(bits) >> n) as u32)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_faults::{Behind, FaultRates};
    use pollux_pmd::mempool::{Mempool, PoolConfig};
    use pollux_pmd::{PortConfig, Registry};

    #[test]
    fn bits_are_split_anywhere() {
        assert_eq!(split(0b1011, 2), (0b11, 0b10));
        assert_eq!(split(u32::MAX, 0), (0, u32::MAX));
        assert_eq!(split(u32::MAX, 32), (u32::MAX, 0));
    }

    /// The file is read through the kernel; nothing is allocated.
    #[test]
    fn the_loop_does_not_allocate() {
        let pool = Mempool::new(PoolConfig {
            buffers: 1024,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let spec = format!("pcap:tx={0}/a,rx={0}/a", folder.path().display());
        let (write, read) = spec.split_once(',').unwrap();
        let start = |spec: &str, rx_queues, tx_queues| {
            let config = PortConfig {
                rx_queues,
                tx_queues,
                ..PortConfig::new(pool.clone())
            };
            let port = Registry::builtin().open(spec).unwrap().configure(config);
            port.unwrap().start().unwrap()
        };
        let (mut cache, mut burst) = (pool.cache(64).unwrap(), Burst::<1>::new());
        let mut file = start(write, 0, 1);
        for n in 0..5000 {
            let mut mbuf = cache.alloc_from(&[0; 60]).unwrap();
            mbuf.set_wire_time(WireTime(n * 10));
            burst.push(mbuf).unwrap();
            file.tx[0].tx(&mut cache, &mut burst);
        }
        file.port.stop(file.rx, file.tx).unwrap();

        let (mut from, mut to) = (start(&format!("pcap:{read}"), 1, 0), start("null", 0, 1));
        let fault = 0.1;
        let impairments = FaultRates {
            loss: fault,
            delay: fault,
            delay_by: (Ns(1), Ns(2000)),
            duplicate: fault,
            reorder: fault,
            corrupt: fault,
        };
        let injector = Injector::new(impairments, Behind::Frames(3), 1, 1024);
        let queues = (from.rx.remove(0), to.tx.remove(0));
        let mut player = Player::new(queues, cache, injector, Speed::Max, false, StopFlag::new());
        let (player, noise) = pollux_pmd_testkit::guard::listen(move |ear| {
            // Metadata of the file arrives with its first frames, and is kept.
            assert_eq!(player.read(), BURST);
            let stalled = ear.during(|| player.work());
            assert!(!stalled);
            player
        });
        assert_eq!(noise.allocator_calls, 0);
        let counts = player.injector.counts();
        assert_eq!(
            player.tx.sent().packets(),
            5000 - counts.lost + counts.duplicated
        );
        assert!(counts.lost > 300 && counts.duplicated > 300, "{counts:?}");
    }
}
