//! What the benchmarks measure: time, with the cycles of an element beside each rate.

use std::time::{Duration, Instant};

use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use pollux_mempool::time::Ns;
use pollux_pmd::lcore::JitterMeter;
use pollux_pmd::{Clock, TscClock};

/// Time as Criterion has it.
#[derive(Clone, Copy, Debug)]
pub struct Time;

impl Measurement for Time {
    type Intermediate = Instant;
    type Value = Duration;

    fn start(&self) -> Instant {
        WallTime.start()
    }

    fn end(&self, start: Instant) -> Duration {
        WallTime.end(start)
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        WallTime.add(a, b)
    }

    fn zero(&self) -> Duration {
        WallTime.zero()
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        WallTime.to_f64(value)
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

impl ValueFormatter for Time {
    fn format_throughput(&self, throughput: &Throughput, ns: f64) -> String {
        let rate = WallTime.formatter().format_throughput(throughput, ns);
        let Throughput::Elements(elements) = *throughput else {
            return rate;
        };
        // Of a millisecond, so that nothing is lost to whole cycles.
        let per_ns = TscClock::get().to_cycles(Ns(1_000_000)) as f64 / 1e6;
        format!("{rate}, {:.1} cycles", ns * per_ns / elements as f64)
    }

    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        WallTime.formatter().scale_values(typical, values)
    }

    fn scale_throughputs(
        &self,
        typical: f64,
        throughput: &Throughput,
        values: &mut [f64],
    ) -> &'static str {
        let wall = WallTime.formatter();
        wall.scale_throughputs(typical, throughput, values)
    }

    fn scale_for_machines(&self, values: &mut [f64]) -> &'static str {
        WallTime.formatter().scale_for_machines(values)
    }
}

/// For how long the machine is watched: many ticks of a kernel.
const WATCHED: Duration = Duration::from_millis(200);

/// What the machine does to a loop that does nothing else than look at the clock, in words: no figure
/// is better than this.
pub(crate) fn jitter() -> String {
    let mut meter = JitterMeter::new(TscClock::get());
    let start = Instant::now();
    while start.elapsed() < WATCHED {
        for _ in 0..1000 {
            meter.tick();
        }
    }
    let gaps = meter.gaps().percentiles();
    let [usual, most] = [gaps.p9999, gaps.max].map(|ns| ns as f64 / 1e3);
    format!(
        "machine: within {} ms a loop stood still for {most:.1} us at most, 99.99 % below {usual:.1} us",
        WATCHED.as_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_says_how_many_cycles_an_element_takes() {
        let text = Time.format_throughput(&Throughput::Elements(1000), 1e5);
        let cycles = TscClock::get().to_cycles(Ns(100_000)) as f64 / 1000.0;
        assert_eq!(text, format!("10.000 Melem/s, {cycles:.1} cycles"));
        let bytes = Time.format_throughput(&Throughput::Bytes(1000), 1e5);
        assert!(!bytes.contains("cycles"), "{bytes}");
    }

    #[test]
    fn the_machine_is_watched() {
        assert!(jitter().contains(" us at most"));
    }
}
