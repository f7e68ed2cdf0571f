//! The poll loop: takes frames from its queues and counts them by sender.

use std::time::Duration;

use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::time::{Ns, WireTime};
use pollux_pmd::mempool::{Burst, PoolCache};
use pollux_pmd::net::{ParseOptions, Parsed, classify};
use pollux_pmd::{Cause, Clock, RxQueue, Tally, TallyView, TscClock};

use super::senders::Senders;

const BURST: usize = 64;

/// How often counters that live outside the process are read.
const SYNC_EVERY: Ns = Ns(100_000_000);

/// A poll loop and all that it owns.
pub(super) struct Listener {
    queues: Vec<RxQueue>,
    cache: PoolCache,
    counter: Counter,
}

/// What is left when the loop has ended.
pub(super) struct Heard {
    /// In the order in which they were given.
    pub(super) queues: Vec<RxQueue>,
    /// Time from the first stamp to the last.
    pub(super) recorded: Duration,
}

impl Listener {
    pub(super) fn new(
        queues: Vec<RxQueue>,
        cache: PoolCache,
        senders: Senders,
        options: ParseOptions,
    ) -> Self {
        let counter = Counter {
            senders,
            options,
            tally: Tally::new(),
            stamps: None,
        };
        Self {
            queues,
            cache,
            counter,
        }
    }

    pub(super) fn tally(&self) -> TallyView {
        self.counter.tally.view()
    }

    /// Polls until `stop` is set or all queues have come to their end.
    pub(super) fn run(mut self, stop: &StopFlag) -> Heard {
        let clock = TscClock::get();
        let sync_every = clock.to_cycles(SYNC_EVERY);
        let mut synced = clock.now();
        let mut burst = Burst::<BURST>::new();
        let mut live = true;
        while live && !stop.is_set() {
            live = false;
            let mut received = 0;
            for queue in &mut self.queues {
                let n = queue.rx(&mut self.cache, &mut burst);
                received += n;
                live |= n > 0 || !queue.state().is_final();
                self.counter.count(&burst);
                self.cache.free_burst(&mut burst);
            }
            if received == 0 {
                clock.relax();
            }
            let now = clock.now();
            if now.since(synced) >= sync_every {
                synced = now;
                self.queues.iter_mut().for_each(RxQueue::sync_counters);
            }
        }
        self.queues.iter_mut().for_each(RxQueue::sync_counters);
        let recorded = self
            .counter
            .stamps
            .map_or(Ns(0), |(first, last)| last.since(first));
        Heard {
            queues: self.queues,
            recorded: Duration::from_nanos(recorded.0),
        }
    }
}

/// Delivers datagrams to the table of senders, and drops the rest by cause.
struct Counter {
    senders: Senders,
    options: ParseOptions,
    tally: Tally,
    /// First and last stamp of the frames, which may come from several files.
    stamps: Option<(WireTime, WireTime)>,
}

impl Counter {
    fn count(&mut self, burst: &Burst<BURST>) {
        let mut delivered = 0;
        for mbuf in burst.iter() {
            if let Some(time) = mbuf.wire_time() {
                let (first, last) = self.stamps.unwrap_or((time, time));
                self.stamps = Some((first.min(time), last.max(time)));
            }
            match classify(mbuf, &self.options) {
                Ok(Parsed::Udp(udp)) => {
                    self.senders.count(&udp);
                    delivered += 1;
                }
                Ok(Parsed::Arp | Parsed::IcmpEcho | Parsed::Other) => {
                    self.tally.count_dropped(Cause::NotForUs, 1);
                }
                Err(cause) => self.tally.count_dropped(cause, 1),
            }
        }
        self.tally.count_delivered(delivered);
    }
}
