//! Writer thread of a capture. Only this thread blocks on the disk; the poll loops never do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pollux_pmd::drivers::pcap::Statistics;
use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::mempool::time::{Ns, Tsc, WireTime};
use pollux_pmd::mempool::{Burst, Mbuf, MbufConsumer, PoolCache};
use pollux_pmd::{Cause, Clock, Tally, TallyView, TscClock};

use super::files::Files;
use super::receiver::Counts;

const BURST: usize = 64;

/// Sleep of the thread when the rings are empty.
const NAP: Duration = Duration::from_micros(500);

/// Longest delay until frames are written to the file when none follow.
const STALE: Duration = Duration::from_millis(100);

/// Counters that the statistics block is made of.
pub(super) struct Sources {
    pub(super) start: WireTime,
    /// Tallies of the port's queues.
    pub(super) queues: Vec<TallyView>,
    pub(super) loops: Vec<Arc<Counts>>,
}

/// Writer thread, with the resources that it owns.
pub(super) struct Disk {
    pub(super) rings: Vec<MbufConsumer>,
    pub(super) cache: PoolCache,
    pub(super) files: Files,
    pub(super) sources: Sources,
    pub(super) tally: Tally,
    /// Cause of frames whose write has failed.
    pub(super) cause: Cause,
    /// Set when no further frames will arrive.
    pub(super) done: Arc<AtomicBool>,
    pub(super) stop: StopFlag,
    /// CPUs of poll loops.
    pub(super) keep_off: Vec<usize>,
}

/// Totals of the written files.
pub(super) struct Written {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) lost: u64,
    pub(super) files: Vec<PathBuf>,
    pub(super) error: Option<anyhow::Error>,
}

impl Disk {
    /// Writes until no further frames will arrive. A disk error ends the run, and the frames still
    /// in flight are counted as lost.
    pub(super) fn run(mut self) -> Written {
        lcore::keep_off(&self.keep_off);
        let mut burst = Burst::<BURST>::new();
        let mut wall = Wall::new(TscClock::get());
        let (mut idle_since, mut counted) = (Instant::now(), (0, 0));
        loop {
            // Acquire pairs with the Release of `run`: all frames that the loops put into the rings
            // before it are visible afterwards.
            let done = self.done.load(Ordering::Acquire);
            let mut n = 0;
            for ring in &mut self.rings {
                n += ring.pop(&mut burst.as_mut());
                for frame in burst.iter() {
                    let time = wall.time_of(frame);
                    let sources = &self.sources;
                    self.files
                        .packet(time, frame, |written| sources.statistics(written));
                }
                self.cache.free_burst(&mut burst);
            }
            if n > 0 {
                idle_since = Instant::now();
            } else if done {
                break;
            } else if idle_since.elapsed() >= STALE {
                self.files.flush();
            }
            settle(&self.files, (&mut self.tally, self.cause), &mut counted);
            if self.files.has_failed() {
                self.stop.stop();
            }
            if n == 0 {
                std::thread::sleep(NAP);
            }
        }
        let sources = &self.sources;
        self.files.complete(|written| sources.statistics(written));
        settle(&self.files, (&mut self.tally, self.cause), &mut counted);
        let (frames, bytes, lost) = (
            self.files.written(),
            self.files.written_bytes(),
            self.files.lost(),
        );
        let (files, error) = self.files.into_parts();
        Written {
            frames,
            bytes,
            lost,
            files,
            error,
        }
    }
}

/// Frames count as delivered when a file has accepted them.
fn settle(files: &Files, (tally, cause): (&mut Tally, Cause), counted: &mut (u64, u64)) {
    let now = (files.written(), files.lost());
    tally.count_delivered(now.0 - counted.0);
    tally.count_dropped(cause, now.1 - counted.1);
    *counted = now;
}

/// Converts the time of a poll to wall-clock time.
struct Wall {
    clock: TscClock,
    /// One moment on both clocks.
    polled: Tsc,
    outside: WireTime,
}

impl Wall {
    fn new(clock: TscClock) -> Self {
        Self {
            clock,
            polled: clock.now(),
            outside: WireTime::now(),
        }
    }

    /// Time stamp of a frame; for a frame without one, the time when its queue was polled.
    fn time_of(&mut self, frame: &Mbuf) -> WireTime {
        if let Some(time) = frame.wire_time() {
            return time;
        }
        let arrival = frame.arrival();
        // Read again every second, since the wall clock is adjusted now and then.
        if self.clock.to_ns(arrival.since(self.polled)) > Ns(1_000_000_000) {
            *self = Self::new(self.clock);
        }
        let after = self.clock.to_ns(arrival.since(self.polled)).0;
        let before = self.clock.to_ns(self.polled.since(arrival)).0;
        WireTime((self.outside.0 + after).saturating_sub(before))
    }
}

impl Sources {
    /// Statistics of the frames so far, of which `written` are in files.
    fn statistics(&self, written: u64) -> Statistics {
        let mut port = pollux_pmd::Balance::default();
        for queue in &self.queues {
            port.add(&queue.balance());
        }
        let sum =
            |count: fn(&Counts) -> u64| self.loops.iter().map(|loops| count(loops)).sum::<u64>();
        let (accepted, filtered) = (
            sum(|counts| counts.accepted.get()),
            sum(|counts| counts.filtered.get()),
        );
        let lost = sum(|counts| counts.lost.get());
        let system_drops = port.dropped_for(Cause::KernelDrop);
        let by_cause: Vec<_> = port
            .drops()
            .map(|(cause, n)| format!("{} {n}", cause.name()))
            .collect();
        let by_cause = if by_cause.is_empty() {
            "none".into()
        } else {
            by_cause.join(", ")
        };
        Statistics {
            start: self.start,
            end: WireTime::now(),
            received: port.from_wire,
            interface_drops: port.dropped_total() - system_drops,
            system_drops,
            accepted,
            written,
            comment: format!(
                "dropped by the port: {by_cause}; left out by the filter: {filtered}; lost in front \
                 of the disk: {lost}"
            ),
        }
    }
}
