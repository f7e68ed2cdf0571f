//! Arrival times of frames: time stamps of the device or the kernel, or an estimate after a gap
//! between polls.
//!
//! A driver stamps a frame when a poll takes it out of its queue. That equals the arrival time as
//! long as the loop polls all the time. After a gap it does not: frames that waited in the queue
//! look fresh. Where the device or the kernel stamps frames, `Line` therefore converts their time
//! stamps to the loop's clock. Elsewhere `Waited` charges the time since the last poll
//! ([`RxQueue::rx_at`](crate::RxQueue::rx_at)), which is the longest that a frame can have waited.

use std::fmt;

use pollux_mempool::Mbuf;
use pollux_mempool::time::{Ns, Tsc, WireTime};

use crate::clock::{Clock, TscClock};

/// Source of the [arrival time](Mbuf::arrival) of a queue's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArrivalTime {
    /// The device, which stamps each frame; on a link inside the process, the sender.
    Hardware,
    /// The kernel, which stamps each frame when it takes it from the device.
    Kernel,
    /// The poll that took the frame; after a gap between polls, the last poll before the gap.
    #[default]
    Poll,
    /// The poll that read or generated the frame, which did not exist before: captures, and devices
    /// without a wire.
    Read,
}

impl ArrivalTime {
    /// Name for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Kernel => "kernel",
            Self::Poll => "poll",
            Self::Read => "read",
        }
    }
}

impl fmt::Display for ArrivalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Maximum age of a frame at which its time stamp is accepted. A queue holds frames for as long as
/// its loop stands still; a clock that is set may jump by any time.
const OLDEST: Ns = Ns(10_000_000_000);

/// Period for which the lowest reading of a device's clock stays valid, so that the clock's drift
/// (some 10 us in a second) stays small.
const PERIOD: Ns = Ns(1_000_000_000);

/// The clock is compared anew after this time without frames.
const FORGET: Ns = Ns(60_000_000_000);

/// Converts external time stamps to the loop's clock.
///
/// Time stamps of the kernel belong to the clock that [`WireTime::now`] reads. A device has a clock
/// of its own, which need not agree with it: the frame whose time stamp is the least behind that
/// clock counts as fresh, and the age of the others is their distance from it.
#[derive(Clone, Debug)]
pub(crate) struct Line<C = TscClock> {
    clock: C,
    /// Cycles, and the external time, of the current poll.
    now: (Tsc, WireTime),
    /// For a device's clock: the smallest distance of time stamps in this period and in the last
    /// one, in nanoseconds, and the start of this period.
    own: Option<Lowest>,
}

#[derive(Clone, Copy, Debug)]
struct Lowest {
    present: i64,
    last: i64,
    begun: Option<Tsc>,
}

impl<C: Clock> Line<C> {
    /// A converter for time stamps of the kernel.
    pub(crate) fn of_kernel(clock: C) -> Self {
        Self {
            clock,
            now: Default::default(),
            own: None,
        }
    }

    /// A converter for time stamps of a device's clock.
    pub(crate) fn of_device(clock: C) -> Self {
        Self {
            own: Some(Lowest {
                present: i64::MAX,
                last: i64::MAX,
                begun: None,
            }),
            ..Self::of_kernel(clock)
        }
    }

    /// Call it when a poll has found frames.
    #[inline]
    pub(crate) fn begin_now(&mut self) {
        self.begin(self.clock.now(), WireTime::now());
    }

    /// As [`begin_now`](Self::begin_now), with both times given.
    #[inline]
    pub(crate) fn begin(&mut self, now: Tsc, outside: WireTime) {
        self.now = (now, outside);
        if let Some(own) = &mut self.own {
            let age = |begun| self.clock.to_ns(now.since(begun));
            match own.begun.map(age) {
                Some(age) if age < PERIOD => {}
                Some(age) if age < FORGET => {
                    // Readings from before a gap tell how long the gap was.
                    own.last = own.present;
                    (own.present, own.begun) = (i64::MAX, Some(now));
                }
                _ => (own.present, own.last, own.begun) = (i64::MAX, i64::MAX, Some(now)),
            }
        }
    }

    /// Arrival time of a frame with this time stamp: not later than now, and not older than the
    /// maximum age.
    #[inline]
    pub(crate) fn arrival(&mut self, stamp: WireTime) -> Tsc {
        match u64::try_from(self.age(stamp)) {
            Ok(age) if age <= OLDEST.0 => self.before_now(Ns(age)),
            _ => self.now.0,
        }
    }

    /// As above, where the frame is known not to have arrived before `earliest`. `None` if the time
    /// stamp contradicts that: the device's clock has then been set, and later time stamps are
    /// compared with this one.
    #[inline]
    pub(crate) fn arrival_since(&mut self, earliest: Tsc, stamp: WireTime) -> Option<Tsc> {
        let (now, outside) = self.now;
        let age = u64::try_from(self.age(stamp)).unwrap_or(0);
        if age <= self.clock.to_ns(now.since(earliest)).0 {
            return Some(self.before_now(Ns(age)));
        }
        self.own = self.own.map(|_| Lowest {
            present: behind(outside, stamp),
            last: i64::MAX,
            begun: Some(now),
        });
        None
    }

    /// Age of a frame with this time stamp, in nanoseconds.
    #[inline]
    fn age(&mut self, stamp: WireTime) -> i64 {
        let behind = behind(self.now.1, stamp);
        match &mut self.own {
            None => behind,
            Some(own) => {
                own.present = own.present.min(behind);
                behind.saturating_sub(own.present.min(own.last))
            }
        }
    }

    #[inline]
    fn before_now(&self, age: Ns) -> Tsc {
        Tsc(self.now.0.0.saturating_sub(self.clock.to_cycles(age)))
    }
}

/// Distance of a time stamp from the external time.
#[inline]
fn behind(outside: WireTime, stamp: WireTime) -> i64 {
    outside.0.wrapping_sub(stamp.0) as i64
}

/// Shortest gap between polls that is charged to frames: longer than an iteration of a loop that
/// works or pauses, and short against a budget.
const GAP: Ns = Ns(50_000);

/// Charges frames for the time in which their queue was not polled. It does not charge the wait of
/// frames that arrive faster than the loop takes them, which cannot be observed here.
#[derive(Clone, Debug)]
pub(crate) struct Waited {
    gap: u64,
    /// Capacity of the queue in frames.
    ring: usize,
    polled: Tsc,
    /// Start of the gap in which the queued frames may have arrived.
    since: Tsc,
    /// Maximum number of frames from that gap that are still in the queue.
    left: usize,
}

impl Waited {
    /// For a queue of so many frames, which receives from now on.
    pub(crate) fn new(clock: &impl Clock, ring: usize) -> Self {
        Self {
            gap: clock.to_cycles(GAP),
            ring,
            polled: clock.now(),
            since: Tsc::default(),
            left: 0,
        }
    }

    /// Charges the frames that a poll has taken, where `asked` is the number that it requested;
    /// `now` is not later than the poll.
    #[inline]
    pub(crate) fn charge(&mut self, now: Tsc, asked: usize, frames: &mut [Mbuf]) {
        // The driver's time stamp may be closer to the poll.
        let at = frames.last().map_or(now, |frame| frame.arrival().max(now));
        if at.since(self.polled) > self.gap {
            self.begin();
        }
        self.polled = at;
        if self.left > 0 {
            self.charge_all(asked, frames);
        }
    }

    #[cold]
    fn begin(&mut self) {
        // The rest of an earlier gap is at the front of the queue.
        if self.left == 0 {
            self.since = self.polled;
        }
        self.left = self.ring;
    }

    #[cold]
    fn charge_all(&mut self, asked: usize, frames: &mut [Mbuf]) {
        for frame in &mut *frames {
            frame.set_arrival(frame.arrival().min(self.since));
        }
        self.left = if frames.len() < asked {
            0 // The queue is empty: later frames arrive after this poll.
        } else {
            self.left.saturating_sub(frames.len())
        };
    }
}

#[cfg(test)]
mod tests;
