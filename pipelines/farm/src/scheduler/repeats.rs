//! Time-outs of the scheduler, and how many MEPs are sent again.

use super::config::{Config, Timeouts};
use crate::rtt::Rtt;
use crate::time::Time;

/// MEPs that are sent again at a time after a time-out, until answers come.
pub(super) const FIRST: usize = 4;

/// Time-outs, and the MEPs that are sent again.
#[derive(Debug)]
pub(super) struct Again {
    /// Return of a flow control message.
    pub(super) ring: Rtt,
    /// A node, until it has finished an event and its decision is known.
    pub(super) event: Rtt,
    /// MEPs that were sent again and not answered.
    pub(super) out: usize,
    /// Most of them.
    pub(super) window: usize,
    /// The last look at the time-outs.
    pub(super) polled: Time,
    /// No time is over before.
    pub(super) not_before: Time,
}

impl Again {
    pub(super) fn new(config: &Config, now: Time) -> Self {
        let rtt = |least| match config.timeouts {
            Timeouts::Observed => Rtt::new(least),
            Timeouts::Constant => Rtt::constant(least),
        };
        Self {
            ring: rtt(config.ring_timeout),
            event: rtt(config.event_timeout),
            out: 0,
            window: FIRST,
            polled: now,
            not_before: Time::ZERO,
        }
    }

    /// Durations of the timers.
    pub(super) fn durations(&self) -> [Time; 2] {
        [self.ring.timeout(), self.event.timeout()]
    }
}
