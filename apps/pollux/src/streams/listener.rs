//! The poll loop: takes frames from its queues and counts them by sender.

use std::time::Duration;

use pollux_pmd::endpoint::Classifier;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::time::{Ns, WireTime};
use pollux_pmd::mempool::{Burst, Mbuf, MbufFlags, PoolCache};
use pollux_pmd::net::Parsed;
use pollux_pmd::{Cause, Clock, RxQueue, TallyView, TscClock};

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

/// State of a loop that has ended.
pub(super) struct Finished {
    /// In the order in which they were given.
    pub(super) queues: Vec<RxQueue>,
    /// Time from the first stamp to the last.
    pub(super) recorded: Duration,
}

impl Listener {
    /// `ports`: the numbers of the ports, in the order of `classifier`.
    pub(super) fn new(
        queues: Vec<RxQueue>,
        cache: PoolCache,
        senders: Senders,
        classifier: Classifier,
        ports: Vec<u16>,
    ) -> Self {
        let counter = Counter {
            senders,
            classifier,
            ports,
            stamps: None,
        };
        Self {
            queues,
            cache,
            counter,
        }
    }

    pub(super) fn tally(&self) -> TallyView {
        self.counter.classifier.view()
    }

    /// Polls until `stop` is set or all queues have come to their end.
    pub(super) fn run(mut self, stop: &StopFlag) -> Finished {
        let clock = TscClock::get();
        let sync_every = clock.to_cycles(SYNC_EVERY);
        let begun = clock.now();
        let (mut now, mut synced) = (begun, begun);
        let mut burst = Burst::<BURST>::new();
        let mut live = true;
        while live && !stop.is_set() {
            live = false;
            let mut received = 0;
            for queue in &mut self.queues {
                let n = queue.rx(&mut self.cache, &mut burst);
                received += n;
                live |= n > 0 || !queue.state().is_final();
                let passed = clock.to_ns(now.since(begun));
                self.counter.count(&mut burst, passed, &mut self.cache);
            }
            if received == 0 {
                clock.relax();
            }
            now = clock.now();
            if now.since(synced) >= sync_every {
                synced = now;
                self.queues.iter_mut().for_each(RxQueue::sync_counters);
            }
        }
        self.counter.classifier.finish(&mut self.cache);
        self.queues.iter_mut().for_each(RxQueue::sync_counters);
        let recorded = self
            .counter
            .stamps
            .map_or(Ns(0), |(first, last)| last.since(first));
        Finished {
            queues: self.queues,
            recorded: Duration::from_nanos(recorded.0),
        }
    }
}

/// Delivers datagrams to the table of senders, and drops the rest by cause.
struct Counter {
    senders: Senders,
    classifier: Classifier,
    /// The numbers of the ports, in the order of the classifier's tables.
    ports: Vec<u16>,
    /// First and last stamp of the frames, which may come from several files.
    stamps: Option<(WireTime, WireTime)>,
}

impl Counter {
    /// Counts the frames of a burst and frees them. `now`: the time since the loop began.
    fn count(&mut self, burst: &mut Burst<BURST>, now: Ns, cache: &mut PoolCache) {
        for mbuf in burst.iter() {
            if let Some(time) = mbuf.wire_time() {
                let (first, last) = self.stamps.unwrap_or((time, time));
                self.stamps = Some((first.min(time), last.max(time)));
            }
        }
        if self.classifier.reassembles() {
            return burst.take_all(|mbuf| self.take(mbuf, now, cache));
        }
        for mbuf in burst.iter() {
            let parsed = self.classifier.classify(mbuf);
            self.end(parsed, 1, mbuf.data());
        }
        cache.free_burst(burst);
    }

    /// Counts a frame, or the datagram that it completes. Fragments of a recording expire by its time.
    fn take(&mut self, mbuf: Mbuf, now: Ns, cache: &mut PoolCache) {
        let port = mbuf.port();
        let recorded = mbuf.flags().contains(MbufFlags::RECORDED);
        let stamp = mbuf.wire_time().filter(|_| recorded);
        let now = stamp.map_or(now, |stamp| Ns(stamp.0));
        let place = self.ports.iter().position(|&of| of == port);
        // Frames without a table are not reassembled.
        let table = place.unwrap_or(usize::MAX);
        if let Some(taken) = self.classifier.take(mbuf, now, table, cache) {
            self.end(taken.parsed, taken.frames, taken.mbuf.data());
            cache.free(taken.mbuf);
        }
    }

    /// Counts what came in so many frames, and is `frame` now.
    fn end(&mut self, parsed: Result<Parsed, Cause>, frames: u64, frame: &[u8]) {
        match parsed {
            Ok(Parsed::Udp(udp)) => {
                self.senders.count(&udp, frame);
                self.classifier.tally().count_delivered(frames);
            }
            Ok(Parsed::Arp | Parsed::IcmpEcho | Parsed::Other) => {
                self.classifier
                    .tally()
                    .count_dropped(Cause::NotForUs, frames);
            }
            Err(cause) => self.classifier.tally().count_dropped(cause, frames),
        }
    }
}
