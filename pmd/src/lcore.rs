//! Pinned poll loops: launch them, check isolation, measure jitter, stop them in order.

pub mod idle;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pollux_mempool::time::Tsc;

use crate::clock::{Clock, TscClock};
use crate::histogram::{LatencyHistogram, LatencyView};
use crate::port::{RxQueue, TxQueue};

/// Stop flag of poll loops. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests all loops to stop.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the loops should stop. One load, cheap enough for every iteration of a loop.
    #[must_use]
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, which a signal handler can set.
    #[must_use]
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Error: a poll loop could not be launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LcoreError {
    /// This process may not run on the CPU.
    #[error(
        "cpu {cpu} is not among the CPUs of this process ({allowed}); see taskset(1) and cpusets"
    )]
    NoSuchCpu {
        /// The requested CPU.
        cpu: usize,
        /// CPUs that the process may run on.
        allowed: String,
    },
    /// Pinning to the CPU failed.
    #[error("the loop `{name}` could not be pinned to cpu {cpu}")]
    Pin {
        /// The loop.
        name: String,
        /// The CPU.
        cpu: usize,
    },
    /// The thread could not be created.
    #[error("the thread of loop `{name}` could not be made: {source}")]
    Spawn {
        /// The loop.
        name: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The queues of one loop are configured for several CPUs.
    #[error("queues of one loop are configured for cpu {first} and for cpu {other}: give them one")]
    SeveralCpus {
        /// One of them.
        first: usize,
        /// Another.
        other: usize,
    },
    /// The loop panicked.
    #[error("the loop `{name}` panicked")]
    Panicked {
        /// The loop.
        name: String,
    },
}

/// A running poll loop.
pub struct Lcore<T> {
    name: String,
    thread: JoinHandle<Result<T, LcoreError>>,
}

/// CPUs that this process may run on, in order.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    let mut cpus: Vec<_> = core_affinity::get_core_ids()
        .unwrap_or_default()
        .iter()
        .map(|core| core.id)
        .collect();
    cpus.sort_unstable();
    cpus
}

/// Refuses a CPU that this process may not run on.
///
/// # Errors
/// [`LcoreError::NoSuchCpu`], which lists the permitted CPUs.
pub fn expect_allowed(cpu: usize) -> Result<(), LcoreError> {
    let allowed = allowed_cpus();
    if allowed.contains(&cpu) {
        return Ok(());
    }
    let allowed: Vec<_> = allowed.iter().map(usize::to_string).collect();
    Err(LcoreError::NoSuchCpu {
        cpu,
        allowed: allowed.join(","),
    })
}

/// CPU on which to [launch](launch()) the poll loop of these queues: the one that they are
/// [configured](crate::QueueConfig::core) for, or `default` where none is configured.
///
/// # Errors
/// [`LcoreError::SeveralCpus`] if they are configured for different ones.
pub fn core_of<'a>(
    rx: impl IntoIterator<Item = &'a RxQueue>,
    tx: impl IntoIterator<Item = &'a TxQueue>,
    default: Option<usize>,
) -> Result<Option<usize>, LcoreError> {
    let rx = rx.into_iter().filter_map(RxQueue::core);
    let mut cores = rx.chain(tx.into_iter().filter_map(TxQueue::core));
    let Some(first) = cores.next() else {
        return Ok(default);
    };
    match cores.find(|&core| core != first) {
        None => Ok(Some(first)),
        Some(other) => Err(LcoreError::SeveralCpus { first, other }),
    }
}

/// Pins the calling thread to a CPU.
///
/// # Errors
/// The process may not run on the CPU, or the system refused.
pub fn pin(name: &str, cpu: usize) -> Result<(), LcoreError> {
    expect_allowed(cpu)?;
    if core_affinity::set_for_current(core_affinity::CoreId { id: cpu }) {
        Ok(())
    } else {
        Err(LcoreError::Pin {
            name: name.into(),
            cpu,
        })
    }
}

/// Keeps the calling thread off the given CPUs, where poll loops run; for housekeeping threads. If
/// no other CPU is left, the thread runs on the CPUs of the last loops, so list the most critical
/// loops first. With a single CPU it stays there.
pub fn keep_off(loops: &[usize]) {
    let allowed = allowed_cpus();
    let free = |n: usize| -> Vec<usize> {
        let (kept, allowed) = (&loops[..n], allowed.iter().copied());
        allowed.filter(|cpu| !kept.contains(cpu)).collect()
    };
    let mut free = (0..=loops.len()).rev().map(free);
    let free = free.find(|free| !free.is_empty()).unwrap_or_default();
    let mut set = rustix::thread::CpuSet::new();
    for cpu in free
        .into_iter()
        .filter(|&cpu| cpu < rustix::thread::CpuSet::MAX_CPU)
    {
        set.set(cpu);
    }
    if set.count() > 0
        && let Err(error) = rustix::thread::sched_setaffinity(None, &set)
    {
        tracing::warn!("housekeeping could not be kept off the poll loops' cpus: {error}");
    }
}

/// Starts a poll loop on a thread of its own, pinned to `cpu` if one is given.
///
/// # Errors
/// The process may not run on the CPU, or the thread cannot be created. A failure of the pinning
/// itself is reported by [`Lcore::join`].
pub fn launch<T: Send + 'static>(
    name: &str,
    cpu: Option<usize>,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<Lcore<T>, LcoreError> {
    cpu.map_or(Ok(()), expect_allowed)?;
    // A loop starts when its memory is allocated, so every shortage is known by now.
    pollux_mempool::region::tell_shortage();
    let thread_name = name.to_owned();
    let thread = std::thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            if let Some(cpu) = cpu {
                pin(&thread_name, cpu)?;
            }
            Ok(body())
        })
        .map_err(|source| LcoreError::Spawn {
            name: name.into(),
            source,
        })?;
    Ok(Lcore {
        name: name.into(),
        thread,
    })
}

impl<T> Lcore<T> {
    /// Whether the loop has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the loop and returns its result.
    ///
    /// # Errors
    /// The loop could not be pinned, or it panicked.
    pub fn join(self) -> Result<T, LcoreError> {
        self.thread
            .join()
            .unwrap_or(Err(LcoreError::Panicked { name: self.name }))
    }
}

/// Whether the kernel keeps other work off a CPU: the CPU is in `isolcpus=` or in an isolated
/// cpuset partition.
#[must_use]
pub fn is_isolated(cpu: usize) -> bool {
    std::fs::read_to_string("/sys/devices/system/cpu/isolated")
        .is_ok_and(|list| parse_cpu_list(&list).contains(&cpu))
}

/// Logs each missing isolation property of a CPU, with the remedy; returns whether the CPU is
/// isolated.
pub fn check_isolation(role: &str, cpu: usize) -> bool {
    let isolated = is_isolated(cpu);
    if !isolated {
        tracing::warn!(
            "cpu {cpu} ({role}) is not isolated: other tasks may delay the loop; boot with \
             isolcpus={cpu} nohz_full={cpu} rcu_nocbs={cpu}, or choose isolated CPUs with --cores"
        );
    }
    isolated
}

/// Parses CPU numbers in the kernel's list format: `0-3,8,10-11`. Skips parts that cannot be
/// parsed.
#[must_use]
pub fn parse_cpu_list(list: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        match part.split_once('-') {
            Some((first, last)) => {
                if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
                    cpus.extend((first..=last).take(4096));
                }
            }
            None => cpus.extend(part.parse::<usize>()),
        }
    }
    cpus
}

/// Jitter meter: measures for how long a poll loop is kept from reading the clock.
///
/// The loop calls [`tick`](Self::tick) in every iteration and between bounded pieces of work. A gap
/// far longer than such a piece is therefore stolen time: interrupts, other tasks, the hypervisor.
/// Tail latencies are judged against this baseline.
#[derive(Debug)]
pub struct JitterMeter<C = TscClock> {
    clock: C,
    last: Tsc,
    gaps: LatencyHistogram,
}

impl<C: Clock> JitterMeter<C> {
    /// A meter whose first gap starts now.
    #[must_use]
    pub fn new(clock: C) -> Self {
        Self {
            last: clock.now(),
            clock,
            gaps: LatencyHistogram::new(),
        }
    }

    /// Records the time since the last tick, and returns the present.
    #[inline]
    pub fn tick(&mut self) -> Tsc {
        let now = self.clock.now();
        self.gaps.record(self.clock.to_ns(now.since(self.last)).0);
        self.last = now;
        now
    }

    /// Excludes the time since the last tick: the loop slept, as it was idle.
    pub fn skip(&mut self) {
        self.last = self.clock.now();
    }

    /// The gaps so far, in nanoseconds.
    #[must_use]
    pub fn gaps(&self) -> LatencyView {
        self.gaps.view()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpu_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_cpu_list("\n"), [0; 0]);
        assert_eq!(parse_cpu_list("x,3-,2"), [2]);
    }

    #[test]
    fn a_loop_runs_where_it_was_put() {
        let cpu = *allowed_cpus().last().unwrap();
        let status = launch("test-loop", Some(cpu), || {
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let status = status.unwrap().join().unwrap();
        let list = status
            .lines()
            .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))
            .unwrap();
        assert_eq!(parse_cpu_list(list), [cpu]);
        assert!(status.starts_with("Name:\ttest-loop"));
    }

    #[test]
    fn house_is_kept_where_no_loop_runs_or_the_last_of_them() {
        let all = allowed_cpus();
        let (&last, others) = all.split_last().unwrap();
        let kept_off = |loops: Vec<usize>| {
            let body = move || {
                keep_off(&loops);
                allowed_cpus()
            };
            std::thread::spawn(body).join().unwrap()
        };
        assert_eq!(kept_off(vec![]), all);
        assert_eq!(kept_off(others.to_vec()), [last]);
        assert_eq!(kept_off(all.clone()), [last]);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        let error = launch("l", Some(99_999), || ()).err().unwrap().to_string();
        assert!(
            error.starts_with("cpu 99999 is not among the CPUs of this process (0"),
            "{error}"
        );
    }

    #[test]
    fn a_panic_is_an_error_of_join() {
        let lcore = launch("doomed", None, || {
            if true {
                std::panic::resume_unwind(Box::new(()))
            }
        });
        assert_eq!(
            lcore.unwrap().join().err().unwrap().to_string(),
            "the loop `doomed` panicked"
        );
    }

    #[test]
    fn the_meter_sees_a_pause() {
        let mut meter = JitterMeter::new(TscClock::get());
        for _ in 0..1000 {
            meter.tick();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        meter.tick();
        assert!(meter.gaps().percentiles().max >= 19_000_000);
        assert!(meter.gaps().count_above(10_000_000) >= 1);
        // A sleep is not counted as a gap.
        let ticks = meter.gaps().count_above(0);
        meter.skip();
        assert_eq!(meter.gaps().count_above(0), ticks);
    }
}
