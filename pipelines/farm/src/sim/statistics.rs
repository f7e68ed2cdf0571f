//! Measurements of a simulation.

use pollux_pmd::LatencyHistogram;

use super::network::Link;
use crate::time::Time;

/// How far a simulation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Events that have ended.
    pub events: u64,
    /// Events in all.
    pub of: u64,
    /// Simulated time.
    pub simulated: Time,
}

impl Progress {
    /// Events of the engine between two looks at the progress.
    pub(super) const EVERY: u64 = 1 << 16;
}

/// What a simulation has found. Where something does not apply it is `None`.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Events built, all or part of their fragments.
    pub built: u64,
    /// Of these, events that lack fragments.
    pub incomplete: u64,
    /// Events that had not ended when the simulation ended.
    pub unfinished: u64,
    /// Events a second.
    pub rate_hz: f64,
    /// Share of its capacity that a link carried.
    pub utilisation: f64,
    /// Data that the nodes received, in Gb/s.
    pub gbps: f64,
    /// Events refused for lack of room at the sources, and fragments lost in the network.
    pub lost: u64,
    /// Transfers that were refused and repeated.
    pub retries: Option<u64>,
    /// Mean time that a fragment or customer waited for others, in ns.
    pub wait_mean_ns: Option<f64>,
    /// From the trigger of an event to its last fragment.
    pub latency_us: Latency,
    /// From the message of an event to the feedback of its node.
    pub system_us: Option<f64>,
    /// Share of time in which a feeder's bus was idle.
    pub bus_idle: Option<f64>,
    /// Mean number of busy servers or CPUs.
    pub busy_mean: Option<f64>,
    /// Highest fill level of a queue in the network.
    pub queue_peak_bytes: Option<u64>,
    /// Digest of all that happened.
    pub hash: u64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// Whether the simulated time exceeded what 64 bits of picoseconds hold.
    pub over_time: bool,
}

/// Times in microseconds; quantiles are exact to one per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99 % quantile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Sum and distribution of times.
#[derive(Debug, Default)]
pub struct Times {
    histogram: LatencyHistogram,
    sum_ps: u128,
    count: u64,
}

impl Times {
    /// Adds a time.
    pub fn record(&mut self, time: Time) {
        self.histogram.record(time.ps() / 1000);
        self.sum_ps += u128::from(time.ps());
        self.count += 1;
    }

    /// Mean in nanoseconds; 0 without times.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.sum_ps as f64 / 1e3 / self.count.max(1) as f64
    }

    /// The summary.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let found = self.histogram.view().percentiles();
        let us = |ns: u64| ns as f64 / 1e3;
        Latency {
            mean: self.mean_ns() / 1e3,
            p50: us(found.p50),
            p99: us(found.p99),
            max: us(found.max),
        }
    }
}

/// What an event builder measures. Rates are those between the start, when the first events have been
/// built, and the last trigger or, without triggers, the end.
#[derive(Debug, Default)]
pub(super) struct Measures {
    /// Events that are built before the measurement of rates begins.
    start_after: u64,
    start: Time,
    /// Since the start.
    carried: Carried,
    /// At the last trigger.
    last: Option<(Time, Carried)>,
    built: u64,
    incomplete: u64,
    lost: u64,
    latency: Times,
    wait_ps: u128,
    waits: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    bytes: u64,
    fragments: u64,
}

impl Measures {
    pub(super) fn new(start_after: u32) -> Self {
        Self {
            start_after: start_after.into(),
            ..Self::default()
        }
    }

    pub(super) fn arrived(&mut self, now: Time, bytes: u32, wait: Time) {
        // What ends with the start was carried before it.
        if now > self.start {
            self.carried.bytes += u64::from(bytes);
            self.carried.fragments += 1;
        }
        self.wait_ps += u128::from(wait.ps());
        self.waits += 1;
    }

    /// An event was refused, or a fragment dropped.
    pub(super) fn lost(&mut self) {
        self.lost += 1;
    }

    pub(super) fn built(&mut self, now: Time, latency: Time, complete: bool) {
        self.built += 1;
        self.incomplete += u64::from(!complete);
        self.latency.record(latency);
        if self.built == self.start_after {
            self.start = now;
            self.carried = Carried::default();
        }
    }

    /// There are no more triggers. What follows is not steady.
    pub(super) fn last_trigger(&mut self, now: Time) {
        if self.built >= self.start_after {
            self.last = Some((now, self.carried));
        }
    }

    pub(super) fn results(&self, now: Time, links: u16, fragments: u16, link: Link) -> Results {
        let (end, carried) = self.last.unwrap_or((now, self.carried));
        let seconds = ((end - self.start).ps() as f64 / 1e12).max(1e-12);
        let gbps = carried.bytes as f64 * 8e-9 / seconds;
        Results {
            built: self.built,
            incomplete: self.incomplete,
            rate_hz: carried.fragments as f64 / f64::from(fragments.max(1)) / seconds,
            utilisation: gbps / (f64::from(links) * link.gbps()),
            gbps,
            lost: self.lost,
            wait_mean_ns: Some(self.wait_ps as f64 / 1e3 / self.waits.max(1) as f64),
            latency_us: self.latency.latency(),
            ..Results::default()
        }
    }
}
