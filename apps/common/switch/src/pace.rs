//! Pace of an output: when the last bit of each frame has left, by the clock of the switch alone.

use pollux_pmd::Clock;
use pollux_pmd::mempool::time::{Ns, Tsc};

/// Fractional bits of a time in cycles, so that a rate is kept over any number of frames.
const FRACTION: u32 = 32;

/// Serial link of an output.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// Time of a byte, in 2^-32 cycles; zero without a rate.
    byte: u128,
    /// When the last frame has left, in 2^-32 cycles.
    idle_at: u128,
}

impl Pace {
    /// A link with a rate in bit/s, or one that takes no time.
    pub(crate) fn new(rate: Option<u64>, clock: &impl Clock) -> Self {
        let cycles_per_second = u128::from(clock.to_cycles(Ns(1_000_000_000)));
        Self {
            byte: rate.map_or(0, |rate| {
                ((cycles_per_second * 8) << FRACTION) / u128::from(rate.max(1))
            }),
            idle_at: 0,
        }
    }

    /// When the last bit of a frame leaves that is queued now.
    pub(crate) fn leave(&mut self, now: Tsc, bytes: usize) -> Tsc {
        let begin = self.idle_at.max(u128::from(now.0) << FRACTION);
        self.idle_at = begin + self.byte * bytes as u128;
        let whole = self.idle_at.div_ceil(1 << FRACTION);
        Tsc(u64::try_from(whole).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pollux_pmd::ManualClock;

    #[test]
    fn a_rate_is_kept_over_many_frames() {
        // 60 bytes at 7 Gbit/s: 68.571... ns.
        let mut pace = Pace::new(Some(7_000_000_000), &ManualClock::new());
        let mut last = Tsc(0);
        for _ in 0..7_000_000 {
            last = pace.leave(Tsc(0), 60);
        }
        assert!(last.0.abs_diff(480_000_000) <= 1, "{last:?}");
        // Behind a pause, the next frame takes its own time.
        assert_eq!(pace.leave(Tsc(1_000_000_000), 70), Tsc(1_000_000_080));
    }

    #[test]
    fn without_a_rate_a_frame_leaves_at_once() {
        let mut pace = Pace::new(None, &ManualClock::new());
        assert_eq!(pace.leave(Tsc(5), 1500), Tsc(5));
        assert_eq!(pace.leave(Tsc(5), 1500), Tsc(5));
    }
}
