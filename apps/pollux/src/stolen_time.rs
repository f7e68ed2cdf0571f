//! Stolen time: time that other programs, the kernel or the hypervisor take from a poll loop.

use pollux_pmd::mempool::time::{Ns, Tsc};
use pollux_pmd::{Clock, TscClock};

/// Longest round that counts as the loop's own work: a round handles 64 frames at most, for which
/// the slowest port needs a tenth of this. It is below a time slice of the kernel's fair scheduler,
/// about 3 ms (`base_slice_ns`).
const LONGEST_ROUND: Ns = Ns(1_000_000);

/// Adds up the rounds in which a loop was interrupted: by another program, an interrupt, the
/// kernel, or the hypervisor.
pub(crate) struct StolenTime {
    clock: TscClock,
    longest: u64,
    last: Tsc,
    cycles: u64,
}

impl StolenTime {
    /// For a loop that begins now.
    pub(crate) fn new(clock: TscClock) -> Self {
        Self {
            clock,
            longest: clock.to_cycles(LONGEST_ROUND),
            last: clock.now(),
            cycles: 0,
        }
    }

    /// Ends a round; returns the time.
    #[inline]
    pub(crate) fn round(&mut self) -> Tsc {
        let now = self.clock.now();
        self.end(now);
        now
    }

    #[inline]
    fn end(&mut self, now: Tsc) {
        let round = now.since(self.last);
        if round > self.longest {
            self.cycles += round;
        }
        self.last = now;
    }

    /// Total stolen time.
    pub(crate) fn seconds(&self) -> f64 {
        self.clock.to_ns(self.cycles).0 as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_rounds_are_taken_for_the_machine_s() {
        let clock = TscClock::get();
        let mut stolen = StolenTime::new(clock);
        let start = stolen.last;
        let at = |us: u64| Tsc(start.0 + clock.to_cycles(Ns(us * 1000)));
        for us in [10_u64, 900, 3900, 3910, 5910] {
            stolen.end(at(us));
        }
        assert!(
            (stolen.seconds() - 0.005).abs() < 1e-6,
            "{}",
            stolen.seconds()
        );
    }
}
