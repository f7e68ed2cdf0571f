//! Fields that the reports of all sub-commands share.

use std::fmt;
use std::time::Duration;

use pollux_app::LedgerReport;
use pollux_app::ports::{PortView, Traffic};
use pollux_pmd::{Ledger, Percentiles};
use serde::Serialize;

use crate::scale::scaled;

/// Version of the reports' layout; grows with every change that a reader could notice.
pub(crate) const SCHEMA: u32 = 1;

/// CPU of a loop.
#[derive(Serialize)]
pub(super) struct Core {
    pub(super) role: &'static str,
    pub(super) cpu: usize,
    pub(super) isolated: bool,
}

/// The fields that every report begins with.
#[derive(Serialize)]
pub(crate) struct Base {
    schema: u32,
    command: &'static str,
    pub(crate) duration_s: f64,
    pub(crate) ports: Vec<Traffic>,
    cores: Vec<Core>,
    pub(crate) ledger: LedgerReport,
    #[serde(skip)]
    balance: pollux_pmd::Balance,
}

impl Base {
    pub(super) fn new(
        command: &'static str,
        elapsed: Duration,
        ports: &[PortView],
        cores: Vec<Core>,
        ledger: &Ledger,
    ) -> Self {
        let balance = ledger.balance();
        Self {
            schema: SCHEMA,
            command,
            duration_s: elapsed.as_secs_f64(),
            ports: ports.iter().map(PortView::traffic).collect(),
            cores,
            ledger: balance.into(),
            balance,
        }
    }
}

/// Text form.
impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "run       {:.3} s", self.duration_s)?;
        for port in &self.ports {
            let rate = |n: u64| scaled(n as f64 / self.duration_s.max(1e-9));
            write!(
                f,
                "port      {}: {} frames received ({}pps), {} sent ({}pps)",
                port.spec,
                port.rx_packets,
                rate(port.rx_packets),
                port.tx_packets,
                rate(port.tx_packets)
            )?;
            if port.tx_errors > 0 {
                write!(f, ", {} refused by the device", port.tx_errors)?;
            }
            writeln!(f)?;
            if let Some(unseen) = port.unseen() {
                writeln!(f, "unseen    {unseen}")?;
            }
        }
        writeln!(f, "ledger    {}", self.balance)
    }
}

/// A histogram in a report, in nanoseconds.
#[derive(Serialize)]
pub(crate) struct Quantiles {
    p50: u64,
    p99: u64,
    p999: u64,
    p9999: u64,
    max: u64,
    count: u64,
}

impl From<Percentiles> for Quantiles {
    fn from(p: Percentiles) -> Self {
        Self {
            p50: p.p50,
            p99: p.p99,
            p999: p.p999,
            p9999: p.p9999,
            max: p.max,
            count: p.count,
        }
    }
}

/// Text form, in microseconds.
impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: u64| ns as f64 / 1000.0;
        write!(
            f,
            "{:.1} us (median), {:.1} (99 %), {:.1} (99.9 %), {:.1} (99.99 %), {:.1} (longest)",
            us(self.p50),
            us(self.p99),
            us(self.p999),
            us(self.p9999),
            us(self.max)
        )
    }
}
