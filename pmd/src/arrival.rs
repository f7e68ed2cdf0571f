//! When frames arrived: what a device or the kernel says, or what a loop that stood still has to
//! assume.
//!
//! A driver stamps a frame when a poll takes it out of its queue. That is when it arrived as long as
//! the loop polls all the time. After a standstill it is not: frames that waited in the queue look
//! fresh. So where the device or the kernel stamps frames, `Line` takes their stamps to the line of
//! the loop's clock; elsewhere `Waited` charges the time since the last poll
//! ([`RxQueue::rx_at`](crate::RxQueue::rx_at)), which is the longest that a frame can have waited.

use std::fmt;

use pollux_mempool::Mbuf;
use pollux_mempool::time::{Ns, Tsc, WireTime};

use crate::clock::{Clock, TscClock};

/// Where the [arrival](Mbuf::arrival) of a queue's frames comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrivalTime {
    /// From the device, which stamps each frame; or, on a wire inside the process, from the sender.
    Hardware,
    /// From the kernel, which stamps each frame when it takes it from the device.
    Kernel,
    /// From the poll that took the frame; after a gap between polls, from the last one before it.
    #[default]
    Poll,
    /// From the poll that read or made the frame, which was nowhere before: captures, and devices
    /// without a wire.
    Read,
}

impl ArrivalTime {
    /// The word for reports.
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

/// Longest age of a frame that a stamp is believed. A queue holds frames for as long as its loop
/// stands still; a clock that is set may jump by any time.
const OLDEST: Ns = Ns(10_000_000_000);

/// How long the lowest reading of a device's clock is believed to be still true, so that the clock's
/// drift (some 10 us in a second) stays small.
const PERIOD: Ns = Ns(1_000_000_000);

/// After so long without frames the clock is compared anew.
const FORGET: Ns = Ns(60_000_000_000);

/// Takes stamps of the outside world to the line of the loop's clock.
///
/// Stamps of the kernel are of the clock that [`WireTime::now`] reads. A device has a clock of its
/// own, which need not agree with it: there the frame whose stamp is the least behind that clock
/// counts as fresh, and others are as old as they are further behind.
#[derive(Clone, Debug)]
pub(crate) struct Line<C = TscClock> {
    clock: C,
    /// Cycles, and the time outside, of the present poll.
    now: (Tsc, WireTime),
    /// Of a device's clock: the least that stamps were behind in this period and in the last one,
    /// in nanoseconds, and when this period began.
    own: Option<Lowest>,
}

#[derive(Clone, Copy, Debug)]
struct Lowest {
    present: i64,
    last: i64,
    begun: Option<Tsc>,
}

impl<C: Clock> Line<C> {
    /// For stamps of the kernel.
    pub(crate) fn of_kernel(clock: C) -> Self {
        Self {
            clock,
            now: Default::default(),
            own: None,
        }
    }

    /// For stamps of a device's clock.
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

    /// A poll has found frames.
    #[inline]
    pub(crate) fn begin_now(&mut self) {
        self.begin(self.clock.now(), WireTime::now());
    }

    /// The same, with the time here and outside.
    #[inline]
    pub(crate) fn begin(&mut self, now: Tsc, outside: WireTime) {
        self.now = (now, outside);
        if let Some(own) = &mut self.own {
            let age = |begun| self.clock.to_ns(now.since(begun));
            match own.begun.map(age) {
                Some(age) if age < PERIOD => {}
                Some(age) if age < FORGET => {
                    // What was read before a standstill is what tells how long it was.
                    own.last = own.present;
                    (own.present, own.begun) = (i64::MAX, Some(now));
                }
                _ => (own.present, own.last, own.begun) = (i64::MAX, i64::MAX, Some(now)),
            }
        }
    }

    /// When a frame with this stamp arrived: not later than now, and no longer ago than can be.
    #[inline]
    pub(crate) fn arrival(&mut self, stamp: WireTime) -> Tsc {
        match u64::try_from(self.age(stamp)) {
            Ok(age) if age <= OLDEST.0 => self.before_now(Ns(age)),
            _ => self.now.0,
        }
    }

    /// The same, where it is known that it was not before `earliest`. `None` if the stamp says so:
    /// then the device's clock has been set, and stamps are compared with this one from now on.
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

    /// How old a frame with this stamp is, in nanoseconds.
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

/// How far a stamp is behind the time outside.
#[inline]
fn behind(outside: WireTime, stamp: WireTime) -> i64 {
    outside.0.wrapping_sub(stamp.0) as i64
}

/// Gaps between polls from which on frames are charged: longer than a round of a loop that works,
/// or rests for a moment, and short against a budget.
const GAP: Ns = Ns(50_000);

/// Charges frames for the time in which their queue was not polled. Time that they wait because
/// more come than the loop takes, poll by poll, is not charged: nothing here tells it.
#[derive(Clone, Debug)]
pub(crate) struct Waited {
    gap: u64,
    /// Frames that the queue holds at most.
    ring: usize,
    polled: Tsc,
    /// When the gap began that present frames may have come in.
    since: Tsc,
    /// Frames that may have come in it and are still in the queue, at most.
    left: usize,
}

impl Waited {
    /// For a queue of so many frames, which gathers them from now on.
    pub(crate) fn new(clock: &impl Clock, ring: usize) -> Self {
        Self {
            gap: clock.to_cycles(GAP),
            ring,
            polled: clock.now(),
            since: Tsc::default(),
            left: 0,
        }
    }

    /// Charges the frames that a poll has taken, where `asked` for so many; `now` is not later than
    /// the poll.
    #[inline]
    pub(crate) fn charge(&mut self, now: Tsc, asked: usize, frames: &mut [Mbuf]) {
        // The driver's stamp may tell better when the poll was.
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
        // What is left of an earlier gap stands in front.
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
            0 // The queue is empty: what comes now comes after this poll.
        } else {
            self.left.saturating_sub(frames.len())
        };
    }
}

#[cfg(test)]
mod tests;
