//! The `Clock` trait, and waits that end even if the clock stands still.

use pollux_mempool::time::{Ns, Tsc};

/// Time source of poll loops and drivers. The hardware's is [`TscClock`](super::TscClock). A
/// simulation supplies its own, so that a driver that spins on a flag advances simulated time.
pub trait Clock: Clone + Send {
    /// Now, in cycles of this clock.
    fn now(&self) -> Tsc;

    /// Cycles as nanoseconds.
    fn to_ns(&self, cycles: u64) -> Ns;

    /// Nanoseconds as cycles.
    fn to_cycles(&self, ns: Ns) -> u64;

    /// Called by a spin loop in each iteration.
    fn relax(&self);

    /// Maximum number of iterations of a wait of this length, since the clock may stand still. Each
    /// iteration takes a nanosecond at least, by this clock or on the machine (reading the time
    /// stamp counter takes some 8 ns, and `pause` 3 ns), so that the limit ends no wait early.
    fn rounds(&self, patience: Ns) -> u64 {
        patience.0.saturating_add(1000)
    }

    /// Waits until `done` returns true, for `patience` at most; returns the last result. Ends even
    /// if the clock stands still: see [`Timeout`].
    fn wait(&self, patience: Ns, mut done: impl FnMut() -> bool) -> bool {
        let mut timeout = Timeout::new(self, patience);
        while !done() {
            if timeout.is_over(self) {
                return false;
            }
            self.relax();
        }
        true
    }

    /// Waits for a time.
    fn pause(&self, time: Ns) {
        self.wait(time, || false);
    }
}

/// Time-out of a wait loop.
///
/// It expires when the clock has advanced by the given time in total. A step backwards does not
/// reduce the elapsed time, and all advance after the step counts, also over times that the clock
/// has shown before. For a clock that stands still, it expires after [`Clock::rounds`] iterations.
///
/// ```
/// use pollux_pmd::mempool::time::Ns;
/// use pollux_pmd::{Clock, ManualClock, Timeout};
///
/// let clock = ManualClock::new();
/// let mut timeout = Timeout::new(&clock, Ns(1000));
/// while !timeout.is_over(&clock) {
///     clock.relax();
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Timeout {
    /// The last reading of the clock.
    last: Tsc,
    /// Remaining cycles.
    cycles: u64,
    /// Remaining iterations.
    rounds: u64,
}

impl Timeout {
    /// A time-out that starts now.
    #[must_use]
    pub fn new(clock: &impl Clock, patience: Ns) -> Self {
        Self {
            last: clock.now(),
            cycles: clock.to_cycles(patience),
            rounds: clock.rounds(patience),
        }
    }

    /// Whether the time has elapsed. Call it once per iteration of the wait, which takes a
    /// nanosecond at least.
    pub fn is_over(&mut self, clock: &impl Clock) -> bool {
        let now = clock.now();
        let passed = now.since(self.last);
        self.last = now;
        match (self.cycles.checked_sub(passed), self.rounds.checked_sub(1)) {
            (Some(cycles), Some(rounds)) => {
                (self.cycles, self.rounds) = (cycles, rounds);
                false
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::ManualClock;

    /// Each reading takes so many nanoseconds. The reading of that number finds the clock at zero
    /// again.
    #[derive(Clone)]
    struct Faulty {
        now: ManualClock,
        looks: Arc<AtomicU64>,
        step: u64,
        back_at: u64,
    }

    impl Faulty {
        fn new(step: u64, back_at: u64) -> Self {
            let now = ManualClock::new();
            // An hour after the start.
            now.advance(Ns(3_600_000_000_000));
            Self {
                now,
                looks: Arc::default(),
                step,
                back_at,
            }
        }

        fn looks(&self) -> u64 {
            self.looks.load(Ordering::Relaxed)
        }
    }

    impl Clock for Faulty {
        fn now(&self) -> Tsc {
            let look = self.looks.fetch_add(1, Ordering::Relaxed);
            assert!(look < 10_000_000, "the wait does not end");
            self.now.advance(Ns(self.step));
            if look == self.back_at {
                self.now.set(Tsc(0));
            }
            self.now.now()
        }

        fn to_ns(&self, cycles: u64) -> Ns {
            Ns(cycles)
        }

        fn to_cycles(&self, ns: Ns) -> u64 {
            ns.0
        }

        fn relax(&self) {}
    }

    #[test]
    fn a_clock_that_steps_back_ends_no_wait_late() {
        for back_at in [1, 500, 999] {
            let clock = Faulty::new(100, back_at);
            assert!(!clock.wait(Ns(100_000), || false));
            assert!((1001..=1003).contains(&clock.looks()), "{}", clock.looks());
        }
    }

    #[test]
    fn a_clock_that_stands_still_does_not_make_a_wait_endless() {
        let clock = Faulty::new(0, u64::MAX);
        assert!(!clock.wait(Ns(100_000), || false));
        // Still not before so many iterations of a nanosecond have passed.
        assert!((100_000..110_000).contains(&clock.looks()));
        clock.pause(Ns(1000));
    }

    #[test]
    fn a_wait_takes_as_long_as_the_clock_says() {
        let clock = ManualClock::new();
        clock.pause(Ns(5_000_000));
        assert_eq!(clock.now(), Tsc(5_000_001));
        assert!(clock.wait(Ns(0), || true));
        assert!(!clock.wait(Ns(0), || false));
    }
}
