//! The PCI bus of a feeder, 64 bits at 66 MHz, on which its DMA engine writes to its adapter.

use crate::time::Time;

/// A clock of the bus.
const CLOCK: u64 = 15_000;
/// Clocks until the bus is granted to the DMA engine (thesis, V.F and figure IV-16).
const GRANT: u64 = 8;
/// Clocks of a burst beside its data: address phase and set-up of the target (thesis, figure IV-3).
const SETUP: u64 = 1 + 6;
/// Clocks of a transaction that the adapter refuses.
const REFUSED: u64 = 5;
/// Bytes of a burst: the adapter disconnects after it (thesis, V.F).
const BURST: u32 = 128;

/// Regular times in which the driver of the adapter has the bus (thesis, figure IV-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// Between the beginnings of two of them.
    pub every: Time,
    /// How long one lasts.
    pub length: Time,
}

/// A bus and the transfer on it.
#[derive(Debug)]
pub(super) struct Bus {
    gaps: Option<Gaps>,
    /// Bytes that have not been written.
    left: u32,
    burst: u32,
    busy: Time,
    retries: u64,
}

/// What the DMA engine does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A burst ends after this time.
    Burst(Time),
    /// The adapter has refused it; another attempt after this time.
    Retry(Time),
}

impl Bus {
    pub(super) fn new(gaps: Option<Gaps>) -> Self {
        Self {
            gaps,
            left: 0,
            burst: 0,
            busy: Time::ZERO,
            retries: 0,
        }
    }

    /// Bursts of a transfer.
    pub(super) fn bursts(bytes: u32) -> u32 {
        bytes.div_ceil(BURST).max(1)
    }

    /// Begins a transfer.
    pub(super) fn begin(&mut self, bytes: u32) {
        self.left = bytes.max(1);
    }

    /// Whether the driver has the bus.
    pub(super) fn is_taken(&self, now: Time) -> bool {
        let gap = |gaps: Gaps| now.ps() % gaps.every.ps() < gaps.length.ps();
        self.gaps.is_some_and(gap)
    }

    /// Begins a burst, if the adapter takes it.
    pub(super) fn attempt(&mut self, accepted: bool, now: Time) -> Next {
        if !accepted {
            self.retries += u64::from(!self.is_taken(now));
            self.busy = self.busy + Time::from_ps(REFUSED * CLOCK);
            return Next::Retry(Time::from_ps((GRANT + REFUSED) * CLOCK));
        }
        self.burst = self.left.min(BURST);
        let clocks = SETUP + u64::from(self.burst).div_ceil(8);
        self.busy = self.busy + Time::from_ps(clocks * CLOCK);
        Next::Burst(Time::from_ps((GRANT + clocks) * CLOCK))
    }

    /// A burst is over. False: another one follows.
    pub(super) fn end_burst(&mut self) -> bool {
        self.left -= self.burst;
        self.left == 0
    }

    /// How long it was in use.
    pub(super) fn busy(&self) -> Time {
        self.busy
    }

    /// Bursts that the adapter refused because it was full.
    pub(super) fn retries(&self) -> u64 {
        self.retries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 465 ns (thesis, V.F).
    #[test]
    fn a_burst_of_128_bytes() {
        let mut bus = Bus::new(None);
        bus.begin(128);
        assert_eq!(
            bus.attempt(true, Time::ZERO),
            Next::Burst(Time::from_ns(465))
        );
        assert!(bus.end_burst());
        assert_eq!(bus.busy(), Time::from_ns(345));
        assert_eq!([0, 1, 128, 129, 256].map(Bus::bursts), [1, 1, 1, 2, 2]);
    }

    #[test]
    fn refused_bursts_are_repeated() {
        let mut bus = Bus::new(Some(Gaps {
            every: Time::from_ns(100_000),
            length: Time::from_ns(10_000),
        }));
        assert!(bus.is_taken(Time::from_ns(109_999)));
        assert!(!bus.is_taken(Time::from_ns(110_000)));
        bus.begin(200);
        let retry = Next::Retry(Time::from_ns(195));
        assert_eq!(bus.attempt(false, Time::from_ns(20_000)), retry);
        assert_eq!(bus.attempt(false, Time::from_ns(100_000)), retry);
        assert_eq!(bus.retries(), 1);
        bus.attempt(true, Time::from_ns(20_000));
        assert!(!bus.end_burst());
        assert_eq!(
            bus.attempt(true, Time::ZERO),
            Next::Burst(Time::from_ns(15 * (8 + 7 + 9)))
        );
        assert!(bus.end_burst());
    }
}
