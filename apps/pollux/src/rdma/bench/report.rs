//! Report of `pollux rdma bench`.

use std::fmt;

use pollux_app::LedgerReport;
use serde::Serialize;

use super::super::counts::Counts;
use super::loops::Outcome;
use super::plan::Plan;
use crate::supervisor::Quantiles;

/// Content of `--report`.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) schema: u32,
    pub(super) command: &'static str,
    /// `shm` or `roce`.
    pub(super) back_end: &'static str,
    pub(super) ports: Vec<String>,
    /// CPUs of the requester and of the responder.
    pub(super) cores: Vec<Option<usize>>,
    pub(super) mtu: usize,
    pub(super) depth: u32,
    /// Whether all was measured.
    pub(super) complete: bool,
    pub(super) rows: Vec<Row>,
    pub(super) ledger: LedgerReport,
    /// Of RoCEv2: packets of both ends.
    pub(super) rdma: Option<Counts>,
}

/// A measurement.
#[derive(Serialize)]
pub(super) struct Row {
    operation: &'static str,
    measure: &'static str,
    bytes: u32,
    count: u64,
    seconds: f64,
    requests_per_second: f64,
    gigabytes_per_second: f64,
    /// Mean and distribution of the time of a request, of a latency.
    mean_ns: Option<f64>,
    latency_ns: Option<Quantiles>,
}

impl Row {
    pub(super) fn new(plan: Plan, outcome: &Outcome) -> Self {
        let seconds = outcome.elapsed.0 as f64 * 1e-9;
        let rate = outcome.count as f64 / seconds.max(1e-9);
        let percentiles = outcome.latencies.percentiles();
        let has_latency = !plan.is_rate && percentiles.count > 0;
        let mean = outcome.latencies.sum() as f64 / percentiles.count as f64;
        Self {
            operation: plan.operation.name(),
            measure: plan.measure(),
            bytes: plan.bytes,
            count: outcome.count,
            seconds,
            requests_per_second: rate,
            gigabytes_per_second: rate * f64::from(plan.bytes) * 1e-9,
            mean_ns: has_latency.then_some(mean),
            latency_ns: has_latency.then(|| percentiles.into()),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<5}{:<8}{:>9} B  ",
            self.operation, self.measure, self.bytes
        )?;
        match &self.latency_ns {
            Some(latency) => write!(f, "{latency}"),
            None => write!(
                f,
                "{:>9.3} GB/s {:>9.2} Gb/s {:>12.0} requests/s",
                self.gigabytes_per_second,
                self.gigabytes_per_second * 8.0,
                self.requests_per_second
            ),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows.len();
        let end = if self.complete {
            "all was measured"
        } else {
            "ended before all was measured"
        };
        writeln!(f, "{rows} rows over {}: {end}", self.back_end)?;
        if let Some(counts) = &self.rdma {
            writeln!(f, "packets   {counts}")?;
        }
        Ok(())
    }
}
