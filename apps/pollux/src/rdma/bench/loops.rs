//! The two loops of a measurement: one posts requests, the other answers them.

use std::sync::Arc;

use anyhow::{Result, bail};
use pollux_pmd::LatencyView;
use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::mempool::time::Ns;

use super::ends::{Ends, Pair};
use super::plan::Plan;
use super::shared::Shared;
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
