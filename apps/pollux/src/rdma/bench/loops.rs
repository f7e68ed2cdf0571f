//! The two loops of a measurement: one posts requests, the other answers them.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow, bail};
use pollux_pmd::LatencyView;
use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::mempool::time::Ns;

use super::ends::{Ends, Pair};
use super::plan::Plan;
use super::side::Side;

/// Result of a measurement.
pub(super) struct Outcome {
    /// Requests that were done in the part that counts, and its duration.
    pub(super) count: u64,
    pub(super) elapsed: Ns,
    /// Time of each, of a latency.
    pub(super) latencies: LatencyView,
    pub(super) pair: Pair,
}

/// What the loops know of each other.
#[derive(Default)]
pub(super) struct Shared {
    /// The requester posts no more.
    is_over: AtomicBool,
    /// Loops that wait for nothing.
    idle: AtomicU32,
    has_failed: AtomicBool,
    /// Loops that have failed and why, in the order of time.
    failures: Mutex<Vec<String>>,
}

impl Shared {
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn wait_for_nothing(&self) {
        self.idle.fetch_add(1, Ordering::Release);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire) == 2
    }

    /// Whether one of the loops has failed.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn fail(&self, role: &str, error: &anyhow::Error) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(format!("{role}: {error:#}"));
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// All failures: that of one end is mostly the cause of the other's.
    fn check(&self) -> Result<()> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.is_empty() {
            return Ok(());
        }
        Err(anyhow!(failures.join("; ")))
    }
}

/// Runs both loops, each on its CPU. `None` if a signal came before a request was measured.
pub(super) fn run(
    plan: Plan,
    ends: &mut Ends,
    pair: Pair,
    cores: &[Option<usize>],
    stop: &StopFlag,
) -> Result<Option<Outcome>> {
    let Some([first, second]) = ends.pollers.take() else {
        bail!("an end of the bench is missing");
    };
    let core = |n: usize| cores.get(n).copied().flatten();
    let shared = Arc::new(Shared::default());
    let [requester, responder] = pair.0;
    let of = |poller, end| Side::new(plan, poller, end, Arc::clone(&shared), stop.clone());
    let (mut requester, mut responder) = (of(first, requester), of(second, responder));
    let failing = Arc::clone(&shared);
    let answering = lcore::launch("responder", core(1), move || {
        let answered = responder.respond();
        let _ = answered.inspect_err(|error| failing.fail("responder", error));
        responder
    })?;
    let failing = Arc::clone(&shared);
    let requesting = lcore::launch("requester", core(0), move || {
        let measured = requester.request();
        let measured = measured.inspect_err(|error| failing.fail("requester", error));
        (measured.ok().flatten(), requester)
    })?;
    let (measured, first) = requesting.join()?;
    let second = answering.join()?;
    ends.pollers = Some([first.poller, second.poller]);
    shared.check()?;
    Ok(measured.map(|(count, elapsed)| Outcome {
        count,
        elapsed,
        latencies: first.latencies.view(),
        pair: Pair([first.end, second.end]),
    }))
}
