//! Congestion control: DCQCN (Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM
//! 2015, section 3), with the parameters of that paper.
//!
//! A receiver of marked packets sends congestion notification packets, one in 50 us at most. A sender
//! that gets one cuts its rate, by a factor that grows with the share of such times; without them the rate
//! comes back: by half of the distance to the old rate five times, then beyond it in steps.

use pollux_mempool::time::Ns;

/// Least time between two notifications of a queue pair (N).
const NOTIFY_INTERVAL: u64 = 50_000;
/// Time after which the estimate falls without a notification, and the rate rises (K, and T at the value
/// of the paper's section 5.2).
const UPDATE_INTERVAL: u64 = 55_000;
/// Bytes after which the rate rises (B).
const INCREASE_BYTES: u64 = 10_000_000;
/// Weight of a new sample in the estimate (g), as a divisor.
const GAIN: f64 = 256.0;
/// Increases by half before those by steps (F).
const FAST_RECOVERY: u32 = 5;
/// Step of an additive increase, and of a hyper increase, in bit/s.
const ADDITIVE: f64 = 40e6;
const HYPER: f64 = 400e6;
/// Rate of a queue pair that was never notified, in bit/s.
const LINE_RATE: f64 = 100e9;
/// Least rate, in bit/s.
const MIN_RATE: f64 = 10e6;

/// Congestion state of a queue pair, of both directions.
#[derive(Default)]
pub(super) struct Congestion {
    /// When the last notification was sent, and whether one is due.
    notified: Option<Ns>,
    is_due: bool,
    /// The sender's rate, if it was cut.
    pace: Option<Pace>,
}

/// A rate that was cut.
struct Pace {
    current: f64,
    target: f64,
    /// Estimate of the share of notifications (alpha).
    alpha: f64,
    estimated_at: Ns,
    increased_at: Ns,
    by_time: u32,
    by_bytes: u32,
    bytes: u64,
    /// When the next packet may leave.
    free_at: Ns,
}

impl Congestion {
    /// A marked packet came.
    pub(super) fn mark(&mut self, now: Ns) {
        let is_early = |at: Ns| now.0.saturating_sub(at.0) < NOTIFY_INTERVAL;
        self.is_due |= !self.notified.is_some_and(is_early);
    }

    /// Whether a notification is due.
    #[inline]
    pub(super) fn is_notification_due(&self) -> bool {
        self.is_due
    }

    /// The notification was sent.
    pub(super) fn notification_sent(&mut self, now: Ns) {
        self.is_due = false;
        self.notified = Some(now);
    }

    /// A notification came: cuts the rate.
    pub(super) fn cut(&mut self, now: Ns) {
        let pace = self.pace.get_or_insert(Pace {
            current: LINE_RATE,
            target: LINE_RATE,
            alpha: 1.0,
            estimated_at: now,
            increased_at: now,
            by_time: 0,
            by_bytes: 0,
            bytes: 0,
            free_at: now,
        });
        pace.target = pace.current;
        pace.current = (pace.current * (1.0 - pace.alpha / 2.0)).max(MIN_RATE);
        pace.alpha += (1.0 - pace.alpha) / GAIN;
        (pace.estimated_at, pace.increased_at) = (now, now);
        (pace.by_time, pace.by_bytes, pace.bytes) = (0, 0, 0);
    }

    /// Whether the next packet may leave.
    #[inline]
    pub(super) fn may_send(&mut self, now: Ns) -> bool {
        match &mut self.pace {
            None => true,
            Some(pace) => {
                pace.update(now);
                let is_free = pace.free_at <= now;
                if pace.current >= LINE_RATE {
                    self.pace = None;
                }
                is_free
            }
        }
    }

    /// Bytes were sent.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u64, now: Ns) {
        if let Some(pace) = &mut self.pace {
            pace.sent(bytes, now);
        }
    }

    /// Whether the rate is cut.
    #[inline]
    pub(super) fn is_cut(&self) -> bool {
        self.pace.is_some()
    }

    /// The rate in bit/s, if it is cut.
    pub(super) fn rate(&self) -> Option<f64> {
        self.pace.as_ref().map(|pace| pace.current)
    }
}

impl Pace {
    fn update(&mut self, now: Ns) {
        // A pause of a second brings all of it back.
        for _ in 0..20_000 {
            let estimate_at = self.estimated_at.0.saturating_add(UPDATE_INTERVAL);
            let increase_at = self.increased_at.0.saturating_add(UPDATE_INTERVAL);
            if estimate_at.min(increase_at) > now.0 {
                return;
            }
            if estimate_at <= now.0 {
                self.estimated_at = Ns(estimate_at);
                self.alpha -= self.alpha / GAIN;
            }
            if increase_at <= now.0 {
                self.increased_at = Ns(increase_at);
                self.by_time += 1;
                self.increase();
            }
        }
        (self.estimated_at, self.increased_at) = (now, now);
    }

    fn sent(&mut self, bytes: u64, now: Ns) {
        let time = (bytes * 8) as f64 / self.current * 1e9;
        self.free_at = Ns(self.free_at.max(now).0.saturating_add(time as u64));
        self.bytes += bytes;
        if self.bytes >= INCREASE_BYTES {
            self.bytes = 0;
            self.by_bytes += 1;
            self.increase();
        }
    }

    fn increase(&mut self) {
        if self.by_time.min(self.by_bytes) > FAST_RECOVERY {
            let steps = self.by_time.min(self.by_bytes) - FAST_RECOVERY;
            self.target += f64::from(steps) * HYPER;
        } else if self.by_time.max(self.by_bytes) > FAST_RECOVERY {
            self.target += ADDITIVE;
        }
        self.target = self.target.min(LINE_RATE);
        self.current = (self.current + self.target) / 2.0;
        if LINE_RATE - self.current < ADDITIVE {
            self.current = LINE_RATE;
        }
    }
}
