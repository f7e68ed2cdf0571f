//! JSON and text report of `pollux bench` (docs/formats/bench.md).

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::args::Args;
use super::search::Critical;
use super::trial::Tried;
use crate::scale::scaled;
use crate::supervisor::{Base, Quantiles};

/// Content of `--report`.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    base: Base,
    tx: String,
    rx: String,
    queues: u16,
    flows: u16,
    trial_s: f64,
    trials: u32,
    rate_min_pps: f64,
    rate_max_pps: f64,
    tolerance: f64,
    loss_tolerance: f64,
    /// Whether all searches were completed.
    complete: bool,
    pub(super) sizes: Vec<SizeReport>,
}

impl Report {
    pub(super) fn new(base: Base, args: &Args, complete: bool, sizes: Vec<SizeReport>) -> Self {
        let ports = args.ports();
        let spec = |port: Option<&(&str, u16, u16)>| port.map(|port| port.0.to_owned());
        Self {
            base,
            tx: spec(ports.first()).unwrap_or_default(),
            rx: spec(ports.last()).unwrap_or_default(),
            queues: args.queues,
            flows: args.flows(),
            trial_s: args.trial.as_secs_f64(),
            trials: args.trials,
            rate_min_pps: args.rate_min,
            rate_max_pps: args.rate_max,
            tolerance: args.tolerance,
            loss_tolerance: args.loss_tolerance,
            complete,
            sizes,
        }
    }
}

/// A rate and its 95 % interval.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Interval {
    pub(super) pps: f64,
    pub(super) low_pps: f64,
    pub(super) high_pps: f64,
}

/// Result for a frame size.
#[derive(Serialize)]
pub(super) struct SizeReport {
    pub(super) size: u16,
    /// `within`, `below-min`, `above-max`, `disturbed` or `unknown`.
    pub(super) critical_is: &'static str,
    pub(super) critical: Option<Interval>,
    loss_free_pps: Option<f64>,
    /// Results by rate.
    pub(super) rates: Vec<RateReport>,
}

/// Trials at one rate.
#[derive(Serialize)]
pub(super) struct RateReport {
    pub(super) rate_pps: f64,
    pub(super) trials: u32,
    pub(super) loss_free: u32,
    lossy: u32,
    not_reached: u32,
    disturbed: u32,
    sent: u64,
    received: u64,
    lost: u64,
    dropped: BTreeMap<&'static str, u64>,
    unseen: u64,
    corrupt: u64,
    latency_ns: Quantiles,
}

impl RateReport {
    /// Share of loss-free trials among the conclusive ones.
    pub(super) fn share(&self) -> f64 {
        let judged = self.trials - self.disturbed;
        f64::from(self.loss_free) / f64::from(judged.max(1))
    }
}

impl SizeReport {
    pub(super) fn new(size: u16, critical: Critical, mut tried: Vec<Tried>) -> Self {
        tried.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let (critical_is, critical) = match critical {
            Critical::Unknown => ("unknown", None),
            Critical::Disturbed => ("disturbed", None),
            Critical::BelowMin => ("below-min", None),
            Critical::AboveMax => ("above-max", None),
            Critical::Within { rate, low, high } => {
                let interval = Interval {
                    pps: rate,
                    low_pps: low,
                    high_pps: high,
                };
                ("within", Some(interval))
            }
        };
        // Throughput as in RFC 2544, section 26.1.
        let clean = tried
            .iter()
            .filter(|at| at.sum.loss_free > 0 && at.sum.loss_free == at.sum.judged());
        let loss_free_pps = clean.map(|at| at.rate).reduce(f64::max);
        Self {
            size,
            critical_is,
            critical,
            loss_free_pps,
            rates: tried.into_iter().map(RateReport::from).collect(),
        }
    }
}

impl From<Tried> for RateReport {
    fn from(Tried { rate, sum, latency }: Tried) -> Self {
        Self {
            rate_pps: rate,
            trials: sum.trials(),
            loss_free: sum.loss_free,
            lossy: sum.lossy,
            not_reached: sum.not_reached,
            disturbed: sum.disturbed,
            sent: sum.sent,
            received: sum.received,
            lost: sum.lost,
            dropped: sum
                .dropped
                .iter()
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
            unseen: sum.unseen(),
            corrupt: sum.corrupt,
            latency_ns: latency.view().percentiles().into(),
        }
    }
}

/// Text form.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        for size in &self.sizes {
            write!(f, "{size}")?;
        }
        if !self.complete {
            writeln!(f, "stopped   before all rates were tried")?;
        }
        Ok(())
    }
}

impl fmt::Display for SizeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{} bytes: critical rate ", self.size)?;
        match self.critical {
            Some(Interval {
                pps,
                low_pps,
                high_pps,
            }) => write!(
                f,
                "{}pps ({}pps to {}pps by 95 %)",
                scaled(pps),
                scaled(low_pps),
                scaled(high_pps)
            )?,
            None if self.critical_is == "disturbed" => write!(
                f,
                "not found: CPUs were taken from the loops in every trial at a rate (see pollux doctor)"
            )?,
            None => write!(f, "{}", self.critical_is)?,
        }
        match self.loss_free_pps {
            Some(rate) => writeln!(f, "; no loss up to {}pps", scaled(rate))?,
            None => writeln!(f, "; no rate without loss")?,
        }
        for rate in &self.rates {
            writeln!(f, "{rate}")?;
        }
        Ok(())
    }
}

impl fmt::Display for RateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9}pps  {}/{} loss-free",
            scaled(self.rate_pps),
            self.loss_free,
            self.trials
        )?;
        if self.not_reached > 0 {
            write!(f, ", {} not reached", self.not_reached)?;
        }
        if self.disturbed > 0 {
            write!(f, ", {} disturbed", self.disturbed)?;
        }
        if self.lost > 0 {
            write!(f, ", {} of {} lost", self.lost, self.sent)?;
            for (cause, n) in &self.dropped {
                write!(f, ", {n} {cause}")?;
            }
        }
        write!(f, "; latency {}", self.latency_ns)
    }
}
