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
/// Least rate, in bit/s.
const MIN_RATE: f64 = 10e6;
/// Time that a sender may be late, for which it sends more at once: a poll may take as long.
const CREDIT: u64 = 10_000;

/// Congestion state of a queue pair, of both directions.
pub(super) struct Congestion {
    /// Rate of a queue pair that was never notified, in bit/s.
    line_rate: f64,
    /// When the last notification was sent, and whether one is due.
    notified: Option<Ns>,
    is_due: bool,
    /// The sender's rate, if it was cut.
    pace: Option<Pace>,
    /// Packets wait for their time.
    is_held: bool,
}

/// A rate that was cut.
struct Pace {
    line_rate: f64,
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
    /// Of a queue pair on a link of this rate, in bit/s.
    pub(super) fn new(line_rate: f64) -> Self {
        Self {
            line_rate: line_rate.max(MIN_RATE),
            notified: None,
            is_due: false,
            pace: None,
            is_held: false,
        }
    }

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
        let line_rate = self.line_rate;
        let pace = self.pace.get_or_insert(Pace {
            line_rate,
            current: line_rate,
            target: line_rate,
            alpha: 1.0,
            estimated_at: now,
            increased_at: now,
            by_time: 0,
            by_bytes: 0,
            bytes: 0,
            free_at: now,
        });
        // What was due before.
        pace.update(now);
        pace.free_at = pace.free_at.max(now);
        pace.target = pace.current;
        pace.current = (pace.current * (1.0 - pace.alpha / 2.0)).max(MIN_RATE);
        pace.alpha += (1.0 - pace.alpha) / GAIN;
        (pace.estimated_at, pace.increased_at) = (now, now);
        (pace.by_time, pace.by_bytes, pace.bytes) = (0, 0, 0);
    }

    /// How many of `most` packets may be sent now: all, or at a rate that is cut one or none.
    #[inline]
    pub(super) fn allowance(&mut self, now: Ns, most: u32) -> u32 {
        self.is_held = false;
        let Some(pace) = &mut self.pace else {
            return most;
        };
        pace.update(now);
        if pace.current >= self.line_rate {
            self.pace = None;
            return most;
        }
        self.is_held = pace.free_at > now;
        u32::from(!self.is_held)
    }

    /// When packets that wait for their time may leave.
    pub(super) fn held_until(&self) -> Option<Ns> {
        let pace = self.pace.as_ref().filter(|_| self.is_held);
        pace.map(|pace| pace.free_at)
    }

    /// Nothing is sent any more.
    pub(super) fn stop(&mut self) {
        self.pace = None;
    }

    /// Bytes of packets were sent.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u64, now: Ns) {
        if let Some(pace) = &mut self.pace {
            pace.sent(bytes, now);
        }
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
        let start = self.free_at.0.max(now.0.saturating_sub(CREDIT));
        self.free_at = Ns(start.saturating_add(time as u64));
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
        self.target = self.target.min(self.line_rate);
        self.current = f64::midpoint(self.current, self.target);
        if self.line_rate - self.current < ADDITIVE {
            self.current = self.line_rate;
        }
    }
}
