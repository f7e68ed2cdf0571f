//! The clock of the poll loops: calibrated TSC, kernel clock or a manual clock.

mod interface;
mod source;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pollux_mempool::time::{Ns, Tsc};
use rustix::time::{ClockId, clock_gettime};

pub use self::interface::{Clock, Timeout};
pub use self::source::{BadClockChoice, ClockChoice, ClockSource, TscFacts};

/// The time stamp counter (TSC) of the CPU, calibrated once per process against the kernel's
/// monotonic clock. A reading costs some 8 to 20 ns and never enters the kernel.
///
/// Where neither the CPU nor the kernel trusts the counter, the clock reads the kernel's clock
/// instead, with a warning: see [`TscFacts`]. [`select`](Self::select) overrides the choice.
#[derive(Clone, Copy, Debug)]
pub struct TscClock {
    hz: u64,
    /// Nanoseconds a cycle, times 2^32.
    ns_per_cycle: u64,
    /// Cycles a nanosecond, times 2^32.
    cycles_per_ns: u64,
    source: ClockSource,
}

/// The clock of this process, set at its first use.
static CLOCK: OnceLock<TscClock> = OnceLock::new();

/// The selected source.
static CHOICE: Mutex<Choice> = Mutex::new(Choice {
    choice: ClockChoice::Auto,
    is_taken: false,
});

struct Choice {
    choice: ClockChoice,
    /// The clock has been created from the choice.
    is_taken: bool,
}

/// Error: a clock was selected after another was in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clock `{wanted}` was selected too late: `{used}` is in use")]
pub struct ClockInUse {
    /// The requested clock.
    pub wanted: ClockChoice,
    /// The clock that the process reads.
    pub used: ClockSource,
}

impl TscClock {
    /// The clock of this process. The first call selects the source and calibrates it, which takes
    /// some 20 ms.
    #[must_use]
    pub fn get() -> Self {
        *CLOCK.get_or_init(|| {
            let mut choice = CHOICE.lock().unwrap_or_else(PoisonError::into_inner);
            choice.is_taken = true;
            Self::from_choice(choice.choice)
        })
    }

    /// Selects the source of this process's clock. Call it before the first use of the clock.
    ///
    /// # Errors
    /// The process already reads another clock.
    pub fn select(wanted: ClockChoice) -> Result<(), ClockInUse> {
        let mut choice = CHOICE.lock().unwrap_or_else(PoisonError::into_inner);
        if !choice.is_taken {
            choice.choice = wanted;
            return Ok(());
        }
        drop(choice);
        let used = Self::get().source;
        match (wanted, used) {
            (ClockChoice::Auto, _)
            | (ClockChoice::Tsc, ClockSource::Tsc)
            | (ClockChoice::Raw, ClockSource::Raw) => Ok(()),
            _ => Err(ClockInUse { wanted, used }),
        }
    }

    fn from_choice(choice: ClockChoice) -> Self {
        match TscFacts::read().choose(choice) {
            ClockSource::Tsc => Self::from_hz(measure_hz(Duration::from_millis(20))),
            ClockSource::Raw => Self::raw(),
        }
    }

    fn from_hz(hz: u64) -> Self {
        let hz = hz.max(1);
        // Rounded to the nearest: the error is half of 2^-32, or a quarter of a second in 70 years.
        let ratio = |a: u64, b: u64| {
            let (a, b) = (u128::from(a) << 32, u128::from(b));
            u64::try_from((a + b / 2) / b).unwrap_or(u64::MAX)
        };
        Self {
            hz,
            ns_per_cycle: ratio(1_000_000_000, hz),
            cycles_per_ns: ratio(hz, 1_000_000_000),
            source: ClockSource::Tsc,
        }
    }

    /// The kernel's clock, whose cycle is a nanosecond.
    fn raw() -> Self {
        Self {
            source: ClockSource::Raw,
            ..Self::from_hz(1_000_000_000)
        }
    }

    /// Cycles per second.
    #[must_use]
    pub fn hz(&self) -> u64 {
        self.hz
    }

    /// The source that the clock reads.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        self.source
    }
}

fn scale(n: u64, factor: u64) -> u64 {
    u64::try_from((u128::from(n) * u128::from(factor)) >> 32).unwrap_or(u64::MAX)
}

impl Clock for TscClock {
    #[inline]
    fn now(&self) -> Tsc {
        match self.source {
            ClockSource::Tsc => Tsc(read_counter()),
            ClockSource::Raw => raw_now(),
        }
    }

    #[inline]
    fn to_ns(&self, cycles: u64) -> Ns {
        Ns(scale(cycles, self.ns_per_cycle))
    }

    #[inline]
    fn to_cycles(&self, ns: Ns) -> u64 {
        scale(ns.0, self.cycles_per_ns)
    }

    #[inline]
    fn relax(&self) {
        core::hint::spin_loop();
    }
}

#[inline]
fn read_counter() -> u64 {
    // SAFETY: every x86_64 CPU has the instruction, and Linux lets user space execute it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Nanoseconds of CLOCK_MONOTONIC_RAW, which is never adjusted and never steps.
#[cold]
#[inline(never)]
fn raw_now() -> Tsc {
    let now = clock_gettime(ClockId::MonotonicRaw);
    let (seconds, ns) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    Tsc(seconds.wrapping_mul(1_000_000_000).wrapping_add(ns))
}

/// Counts cycles over `span` of the monotonic clock. Each end is the tightest of several pairs of
/// readings, so that a preemption between two readings does not corrupt the result.
fn measure_hz(span: Duration) -> u64 {
    let reading = || {
        (0..16)
            .map(|_| {
                let before = read_counter();
                let at = Instant::now();
                let after = read_counter();
                (
                    after.wrapping_sub(before),
                    before.wrapping_add(after.wrapping_sub(before) / 2),
                    at,
                )
            })
            .min_by_key(|&(width, ..)| width)
            .map_or_else(
                || (read_counter(), Instant::now()),
                |(_, cycles, at)| (cycles, at),
            )
    };
    let (cycles0, at0) = reading();
    std::thread::sleep(span);
    let (cycles1, at1) = reading();
    let ns = at1.duration_since(at0).as_nanos().max(1);
    u64::try_from(u128::from(cycles1.wrapping_sub(cycles0)) * 1_000_000_000 / ns)
        .unwrap_or(1_000_000_000)
}

/// A clock that advances only by calls, for tests and simulations. One cycle is one nanosecond.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets all clones to a time, which may be earlier than now.
    pub fn set(&self, now: Tsc) {
        self.0.store(now.0, Ordering::Relaxed);
    }

    /// Advances all clones.
    pub fn advance(&self, ns: Ns) {
        self.0.fetch_add(ns.0, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Tsc {
        Tsc(self.0.load(Ordering::Relaxed))
    }

    fn to_ns(&self, cycles: u64) -> Ns {
        Ns(cycles)
    }

    fn to_cycles(&self, ns: Ns) -> u64 {
        ns.0
    }

    /// One iteration of a spin loop takes one nanosecond.
    fn relax(&self) {
        self.advance(Ns(1));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn conversion_is_its_own_inverse() {
        let clock = TscClock::from_hz(2_600_000_000);
        assert!(clock.to_cycles(Ns(1_000_000_000)).abs_diff(2_600_000_000) <= 1);
        for ns in [1_000, 1_000_000, 86_400_000_000_000] {
            let back = clock.to_ns(clock.to_cycles(Ns(ns))).0;
            assert!(
                ns - back <= 1 + ns / 1_000_000_000,
                "{ns} came back as {back}"
            );
        }
    }

    #[test]
    fn one_process_reads_one_clock() {
        let clock = TscClock::get();
        assert!(TscClock::select(ClockChoice::Auto).is_ok());
        let (own, other) = match clock.source() {
            ClockSource::Tsc => (ClockChoice::Tsc, ClockChoice::Raw),
            ClockSource::Raw => (ClockChoice::Raw, ClockChoice::Tsc),
        };
        assert!(TscClock::select(own).is_ok());
        let error = TscClock::select(other).unwrap_err();
        assert_eq!((error.wanted, error.used), (other, clock.source()));
    }

    #[test]
    fn both_sources_agree_with_the_kernel() {
        agrees_with_the_kernel(TscClock::get());
        agrees_with_the_kernel(TscClock::raw());
        assert_eq!(TscClock::raw().to_ns(12_345), Ns(12_345));
        assert_eq!(TscClock::raw().to_cycles(Ns(12_345)), 12_345);
    }

    fn agrees_with_the_kernel(clock: TscClock) {
        let (t0, i0) = (clock.now(), Instant::now());
        std::thread::sleep(Duration::from_millis(50));
        let (t1, i1) = (clock.now(), Instant::now());
        let ours = clock.to_ns(t1.since(t0)).0 as f64;
        let theirs = (i1 - i0).as_nanos() as f64;
        assert!(
            (ours / theirs - 1.0).abs() < 0.2,
            "{ours} ns against {theirs} ns"
        );
    }
}
