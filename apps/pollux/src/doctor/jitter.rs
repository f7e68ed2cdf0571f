//! Jitter measurement: the longest interruptions of each core.

use std::time::Duration;

use anyhow::Context as _;
use pollux_pmd::lcore::{JitterMeter, Lcore, StopFlag, launch};
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::{Clock, LatencyView, TscClock};

use super::finding::{Check, Finding};
use super::machine::Machine;
use pollux_machine::cpu_list;

const JITTER: Check = Check {
    name: "jitter",
    why: "While the machine has taken the core away, no loop on it sees a frame: a gap here is latency there.",
};

/// Gaps that cost nothing: one or two interrupts.
const SHORT: u64 = 20_000;
/// Half of a deadline of 1 ms: a whole burst of events is at risk.
const LONG: u64 = 500_000;

/// Reads the clock continuously on all the CPUs at once, as poll loops would, for the given time or
/// until it is stopped.
///
/// # Errors
/// A CPU that may not be used.
pub(super) fn measure(
    machine: &Machine,
    span: Duration,
    stop: &StopFlag,
) -> anyhow::Result<Vec<Finding>> {
    let span = Ns(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    let loops: Vec<(usize, Lcore<LatencyView>)> = machine
        .cores
        .iter()
        .map(|&cpu| {
            let stop = stop.clone();
            let meter = launch("jitter", Some(cpu), move || watch(span, &stop))?;
            Ok((cpu, meter))
        })
        .collect::<anyhow::Result<_>>()
        .context("the jitter cannot be measured")?;
    loops
        .into_iter()
        .map(|(cpu, meter)| Ok(judge(machine, cpu, &meter.join()?)))
        .collect()
}

fn watch(span: Ns, stop: &StopFlag) -> LatencyView {
    let clock = TscClock::get();
    let end = clock.now().0.saturating_add(clock.to_cycles(span));
    let mut meter = JitterMeter::new(clock);
    while meter.tick().0 < end && !stop.is_set() {}
    meter.gaps()
}

fn judge(machine: &Machine, cpu: usize, gaps: &LatencyView) -> Finding {
    let max = gaps.percentiles().max;
    let found = format!(
        "longest gap {}; {} longer than {}",
        us(max),
        gaps.count_above(SHORT),
        us(SHORT)
    );
    let finding = match max {
        0..SHORT => JITTER.ok(found),
        SHORT..LONG => JITTER.warn(found),
        LONG.. => JITTER.bad(found),
    };
    let spare = machine.spare();
    let finding = if max < SHORT {
        finding
    } else if spare.contains(&cpu) {
        finding.boot(format!("isolcpus={cpu} nohz_full={cpu} rcu_nocbs={cpu}"))
    } else if spare.is_empty() {
        finding.look("cat /proc/interrupts")
    } else {
        // The first core runs the kernel's own work: loops belong on others.
        finding.option(format!("--cores {}", cpu_list(&spare)))
    };
    finding.of(format!("cpu {cpu}"))
}

fn us(ns: u64) -> String {
    format!("{:.1} us", ns as f64 * 1e-3)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::finding::{Level, Remedy};
    use super::*;
    use pollux_machine::Sys;

    #[test]
    fn gaps_are_judged_by_the_longest() {
        let machine = Machine::new(Sys::new("/none"), Some(vec![2]));
        let of = |ns: &[u64]| {
            let mut gaps = pollux_pmd::LatencyHistogram::new();
            for &ns in ns {
                gaps.record(ns);
            }
            judge(&machine, 2, &gaps.view())
        };
        assert_eq!(of(&[100, 1900]).level, Level::Ok);
        assert_eq!(of(&[100, 100_000]).level, Level::Warn);
        let bad = of(&[100, 30_000, 5_000_000]);
        assert_eq!(bad.level, Level::Bad);
        assert!(
            bad.found.ends_with("2 longer than 20.0 us"),
            "{}",
            bad.found
        );
        assert_eq!(of(&[]).level, Level::Ok);
        assert!(bad.remedy.is_some());
        let first = judge(&Machine::new(Sys::new("/none"), None), 0, &{
            let mut gaps = pollux_pmd::LatencyHistogram::new();
            gaps.record(5_000_000);
            gaps.view()
        });
        assert_eq!(
            first.remedy,
            Some(Remedy::Look("cat /proc/interrupts".into()))
        );
    }

    #[test]
    fn every_cpu_is_measured_and_others_are_refused() {
        let machine = |cores| Machine::new(Sys::new("/"), cores);
        let here = machine(None);
        let stop = StopFlag::new();
        let found = measure(&here, Duration::from_millis(5), &stop).unwrap();
        assert_eq!(found.len(), here.cores.len());
        let error = measure(
            &machine(Some(vec![99_999])),
            Duration::from_millis(5),
            &stop,
        );
        let error = format!("{:#}", error.unwrap_err());
        assert!(error.contains("cpu 99999"), "{error}");
        stop.stop();
        measure(&here, Duration::from_hours(1), &stop).unwrap();
    }
}
