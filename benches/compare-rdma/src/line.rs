//! A cache line to and fro: the least that a round trip between two cores can take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use pollux_pmd::lcore;
use pollux_pmd::{Clock as _, LatencyHistogram, LatencyView, TscClock};

/// Value that ends the other side.
const END: u64 = u64::MAX;
/// Round trips between two looks at the time.
const ROUNDS: u64 = 1024;

/// A word alone in its cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// Means of round trips: this side writes an even number, the other one the next.
pub(super) fn measure((core, other): (usize, usize), time: Duration) -> Result<LatencyView> {
    let line = Arc::new(Line::default());
    let there = Arc::clone(&line);
    let echo = lcore::launch("echo", Some(other), move || {
        loop {
            match there.0.load(Ordering::Acquire) {
                END => return,
                n if n % 2 == 1 => there.0.store(n + 1, Ordering::Release),
                _ => {}
            }
        }
    })?;
    let measured = lcore::launch("line", Some(core), move || {
        let (clock, mut trips, mut next) = (TscClock::get(), LatencyHistogram::new(), 1);
        // Nothing but the line: a clock that is read for each would take as long.
        let mut exchange = |trips: &mut LatencyHistogram| {
            let begin = clock.now();
            for _ in 0..ROUNDS {
                line.0.store(next, Ordering::Release);
                while line.0.load(Ordering::Acquire) == next {}
                next += 2;
            }
            trips.record(clock.to_ns(clock.now().since(begin)).0 / ROUNDS);
        };
        exchange(&mut LatencyHistogram::new());
        let begin = Instant::now();
        while begin.elapsed() < time {
            exchange(&mut trips);
        }
        line.0.store(END, Ordering::Release);
        trips.view()
    })?;
    let trips = measured.join()?;
    echo.join()?;
    Ok(trips)
}
