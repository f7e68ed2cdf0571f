//! What a clock is, and waits that end, whatever it does.

use pollux_mempool::time::{Ns, Tsc};

/// Time as poll loops and drivers read it. The hardware's is [`TscClock`](super::TscClock); a simulation supplies
/// its own, so that a driver which spins on a flag lets simulated time pass.
pub trait Clock: Clone + Send {
    /// Now, in cycles of this clock.
    fn now(&self) -> Tsc;

    /// Cycles as nanoseconds.
    fn to_ns(&self, cycles: u64) -> Ns;

    /// Nanoseconds as cycles.
    fn to_cycles(&self, ns: Ns) -> u64;

    /// What a spin loop calls in each round.
    fn relax(&self);

    /// Rounds after which a wait of this length ends in any case: the clock may stand still. Each
    /// round takes a nanosecond at least, by this clock or on the machine (a look at the time stamp
    /// counter takes some 8 ns, and `pause` 3 ns), so that no wait ends early by this.
    fn rounds(&self, patience: Ns) -> u64 {
        patience.0.saturating_add(1000)
    }

    /// Waits until `done`, for `patience` at most; whether it is. Ends whatever the clock does: see
    /// [`Timeout`].
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

    /// Lets so much time pass.
    fn pause(&self, time: Ns) {
        self.wait(time, || false);
    }
}

/// The end of a wait that is made in rounds.
///
/// It comes when the clock has gone on for so long in all: a step backwards takes nothing away from
/// the time that has passed. (What the clock goes on after one counts, also where it has been there
/// before.) And it comes after [`Clock::rounds`] at the latest,
/// for a clock that stands still.
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
    /// The last look at the clock.
    last: Tsc,
    /// Cycles that are left.
    cycles: u64,
    /// Rounds that are left.
    rounds: u64,
}

impl Timeout {
    /// A wait of this length, from now on.
    #[must_use]
    pub fn new(clock: &impl Clock, patience: Ns) -> Self {
        Self {
            last: clock.now(),
            cycles: clock.to_cycles(patience),
            rounds: clock.rounds(patience),
        }
    }

    /// Whether more time than that has passed. For each round of the wait, which takes a nanosecond
    /// at least.
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

    /// Each look takes so many nanoseconds. The look of that number finds the clock at zero again.
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
            // An hour after it has begun.
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
        // Not before so many rounds of a nanosecond have passed, all the same.
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
