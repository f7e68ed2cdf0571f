//! Receiving poll loop: compares frames with those that the generator sends.

use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::time::{Ns, Tsc};
use pollux_pmd::mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::net::{ParseOptions, Parsed, classify};
use pollux_pmd::stream::{SequenceCounts, SequenceTracker, Verdict};
use pollux_pmd::{
    Cause, Clock, LatencyHistogram, LatencyView, RxQueue, Tally, TallyView, TscClock,
};
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::payload::{Content, HEADER, Header};
use crate::stolen_time::StolenTime;
use crate::ticker::Ticker;

const BURST: usize = 32;

/// Longest plausible distance between the arrival of a frame and its time of making. Beyond it, the
/// time is of another machine's clock, or the frame was recorded. The arrival may precede the time
/// of making: it is the beginning of the poll that found the frame, and the loop may be interrupted
/// in between.
const FARTHEST: Ns = Ns(10_000_000_000);

/// Conditions for the loop to end by itself.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    /// This number of frames has arrived, without duplicates.
    pub(crate) count: Option<u64>,
    /// No frame of the generator has arrived for this long, from the start on.
    pub(crate) wait: Option<Ns>,
    /// No frame has arrived for this long, after the first.
    pub(crate) idle: Option<Ns>,
}

/// Classification of the received frames.
#[derive(Default)]
pub(crate) struct Counts {
    /// Frames of the generator that arrived unchanged, and their bytes.
    pub(crate) received: u64,
    pub(crate) bytes: u64,
    /// Frames with a wrong checksum or wrong content.
    pub(crate) corrupt: u64,
    /// Frames of other origin.
    pub(crate) foreign: u64,
    /// Duplicates among [`received`](Self::received).
    duplicate: u64,
    /// From the making of a frame to its arrival.
    pub(crate) latency: LatencyHistogram,
    /// Frames without a latency: stamped by another clock.
    pub(crate) not_comparable: u64,
    /// Arrival of the first and the last frame.
    pub(crate) span: Option<(Tsc, Tsc)>,
}

/// Poll loop, with the resources that it owns.
pub(crate) struct Checker {
    queues: Vec<RxQueue>,
    cache: PoolCache,
    content: Arc<Content>,
    options: ParseOptions,
    until: Until,
    stop: StopFlag,
    /// Number of the first flow, and the sequence tracker of each flow.
    first: u16,
    trackers: Box<[SequenceTracker]>,
    tally: Tally,
    counts: Counts,
    /// [`FARTHEST`] in cycles.
    farthest: u64,
    clock: TscClock,
}

/// Result of an ended loop.
pub(crate) struct Checked {
    pub(crate) queues: Vec<RxQueue>,
    pub(crate) tally: Tally,
    pub(crate) counts: Counts,
    /// Set if the loop ended since no frame arrived for this long.
    pub(crate) waited: Option<Ns>,
    /// Stolen time of the loop in seconds.
    pub(crate) taken_s: f64,
    /// The sum over all flows, and the number of flows.
    pub(crate) sequence: SequenceCounts,
    pub(crate) flows: usize,
}

impl Checker {
    /// A checker for these flows. Frames of other flows belong to another run.
    pub(crate) fn new(
        queues: Vec<RxQueue>,
        cache: PoolCache,
        content: Arc<Content>,
        options: ParseOptions,
        flows: RangeInclusive<u16>,
        until: Until,
        stop: StopFlag,
    ) -> Self {
        let clock = TscClock::get();
        Self {
            queues,
            cache,
            content,
            options,
            until,
            stop,
            first: *flows.start(),
            trackers: flows.map(|_| SequenceTracker::new()).collect(),
            tally: Tally::new(),
            counts: Counts::default(),
            farthest: clock.to_cycles(FARTHEST),
            clock,
        }
    }

    /// Continues the counts of an earlier run.
    pub(crate) fn adding_to(mut self, tally: Tally, latency: LatencyHistogram) -> Self {
        self.tally = tally;
        self.counts.latency = latency;
        self
    }

    pub(crate) fn tally(&self) -> TallyView {
        self.tally.view()
    }

    pub(super) fn latency(&self) -> LatencyView {
        self.counts.latency.view()
    }

    /// Polls until the stop flag is set, an end condition holds, or all queues have ended.
    pub(crate) fn run(mut self) -> Checked {
        let mut queues = std::mem::take(&mut self.queues);
        let (stolen, waited) = self.work(&mut queues);
        let (sequence, flows) = self.sequence();
        Checked {
            queues,
            tally: self.tally,
            counts: self.counts,
            waited: self.until.wait.filter(|_| waited),
            taken_s: stolen.seconds(),
            sequence,
            flows,
        }
    }

    /// Returns the stolen time, and whether the loop ended because the first frame never arrived.
    fn work(&mut self, queues: &mut [RxQueue]) -> (StolenTime, bool) {
        let mut burst = Burst::<BURST>::new();
        let mut ticker = Ticker::for_counters(self.clock);
        let cycles = |limit: Option<Ns>| limit.map(|limit| self.clock.to_cycles(limit));
        let (wait, idle) = (cycles(self.until.wait), cycles(self.until.idle));
        let mut stolen = StolenTime::new(self.clock);
        let begin = self.clock.now();
        let (mut live, mut waited) = (true, false);
        while live && !waited && !self.stop.is_set() && !self.has_all() {
            let now = stolen.round();
            live = false;
            let mut received = 0;
            for queue in &mut *queues {
                let n = queue.rx(&mut self.cache, &mut burst);
                received += n;
                live |= n > 0 || !queue.state().is_final();
                for mbuf in burst.iter() {
                    match self.check(mbuf) {
                        Ok(()) => self.tally.count_delivered(1),
                        Err(cause) => self.tally.count_dropped(cause, 1),
                    }
                }
                self.cache.free_burst(&mut burst);
            }
            // Foreign frames may arrive for ever.
            match self.counts.span {
                None => waited = live && wait.is_some_and(|wait| now.since(begin) >= wait),
                Some((_, last)) => live &= idle.is_none_or(|idle| now.since(last) < idle),
            }
            if received == 0 {
                self.clock.relax();
            }
            if ticker.is_due() {
                queues.iter_mut().for_each(RxQueue::sync_counters);
            }
        }
        queues.iter_mut().for_each(RxQueue::sync_counters);
        (stolen, waited)
    }

    /// Whether all expected frames have arrived. A corrupt one is not sent again.
    fn has_all(&self) -> bool {
        let counts = &self.counts;
        let came = counts.received - counts.duplicate + counts.corrupt;
        self.until.count.is_some_and(|count| came >= count)
    }

    /// Checks a frame. Returns the drop cause, unless it is a new frame of the generator.
    #[inline]
    fn check(&mut self, mbuf: &Mbuf) -> Result<(), Cause> {
        let udp = match classify(mbuf, &self.options) {
            Ok(Parsed::Udp(udp)) => udp,
            Ok(Parsed::Arp | Parsed::IcmpEcho | Parsed::Other) => {
                self.counts.foreign += 1;
                return Err(Cause::NotForUs);
            }
            Err(cause) => {
                let corrupt = matches!(cause, Cause::BadChecksum | Cause::Malformed);
                self.counts.corrupt += u64::from(corrupt);
                self.counts.foreign += u64::from(!corrupt);
                return Err(cause);
            }
        };
        let (offset, len) = (udp.payload_offset.into(), usize::from(udp.payload_len));
        // A header may span two segments, where they are short.
        let mut bytes = [0; HEADER];
        let header = (len >= HEADER && mbuf.copy_to(offset, &mut bytes) == HEADER)
            .then(|| Header::read(&bytes));
        let Some(header) = header.flatten() else {
            self.counts.foreign += 1;
            return Err(Cause::DemuxMiss);
        };
        if !self.content.is_right(header, mbuf.segments(), offset, len) {
            self.counts.corrupt += 1;
            return Err(Cause::Malformed);
        }
        let counts = &mut self.counts;
        let flow = header.flow.checked_sub(self.first).map(usize::from);
        let Some(tracker) = flow.and_then(|flow| self.trackers.get_mut(flow)) else {
            counts.foreign += 1;
            return Err(Cause::Late);
        };
        counts.received += 1;
        counts.bytes += mbuf.total_len() as u64;
        let arrival = mbuf.arrival();
        counts.span = Some((counts.span.map_or(arrival, |(first, _)| first), arrival));
        if arrival.0.abs_diff(header.sent.0) <= self.farthest {
            let latency = arrival.since(header.sent);
            counts.latency.record(self.clock.to_ns(latency).0);
        } else {
            counts.not_comparable += 1;
        }
        match tracker.observe(header.sequence) {
            Verdict::Duplicate => {
                counts.duplicate += 1;
                Err(Cause::Duplicate)
            }
            _ => Ok(()),
        }
    }

    fn sequence(&self) -> (SequenceCounts, usize) {
        let (mut sum, mut flows) = (SequenceCounts::default(), 0);
        for counts in self.trackers.iter().map(SequenceTracker::counts) {
            flows += usize::from(counts.unique > 0);
            sum.unique += counts.unique;
            sum.missing += counts.missing;
            sum.gaps += counts.gaps;
            sum.reordered += counts.reordered;
            sum.duplicates += counts.duplicates;
            sum.late += counts.late;
            sum.resyncs += counts.resyncs;
        }
        (sum, flows)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::payload::Pattern;
    use pollux_pmd::mempool::{Mempool, PoolConfig};
    use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
    use pollux_pmd::{PortConfig, Registry, StartedPort};

    #[test]
    fn the_loop_does_nothing_but_work() {
        const FRAMES: u32 = 1000;
        let pool = Mempool::new(PoolConfig {
            buffers: 2048,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let port = Registry::builtin().open("loopback").unwrap();
        let port = port.configure(PortConfig::new(pool.clone()));
        let StartedPort { rx, mut tx, .. } = port.unwrap().start().unwrap();
        let content = Content::new(Pattern::Random, 1, 100);
        let end = UdpEndpoint {
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            socket: std::net::SocketAddrV4::new([10, 0, 0, 1].into(), 9000),
        };
        let template = UdpTemplate::new(end, end);
        let (mut cache, mut burst) = (pool.cache(64).unwrap(), Burst::<1>::new());
        for sequence in 0..FRAMES {
            let mut mbuf = cache.alloc().unwrap();
            let frame = mbuf.append(UDP_HEADERS + 100).unwrap();
            let header = Header {
                flow: 7,
                sequence,
                sent: Tsc(0),
            };
            content.write(header, &mut frame[UDP_HEADERS..]);
            template.write(frame, 100).unwrap();
            burst.push(mbuf).unwrap();
            tx[0].tx(&mut cache, &mut burst);
        }
        let until = Until {
            count: Some(FRAMES.into()),
            wait: None,
            idle: None,
        };
        let (options, stop) = (ParseOptions::default(), StopFlag::new());
        let content = Arc::new(content);
        let mut checker = Checker::new(rx, cache, content, options, 0..=7, until, stop);
        let (checker, noise) = pollux_pmd_testkit::guard::listen(move |ear| {
            let mut queues = std::mem::take(&mut checker.queues);
            ear.during(|| checker.work(&mut queues));
            checker
        });
        noise.assert_none();
        assert_eq!(checker.counts.received, u64::from(FRAMES));
        assert_eq!(checker.sequence().0.unique, u64::from(FRAMES));
    }
}
