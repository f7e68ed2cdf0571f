//! What a process contributes to the report of a run.

use std::io::{self, Write};

use anyhow::{Result, ensure};
use pollux_app::LedgerReport;
use pollux_app::ports::PortView;
use pollux_pmd::Percentiles;
use serde::{Deserialize, Serialize};

use super::counters::Shown;
use super::outcome::Left;

/// What a process contributes to the report.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Part {
    #[serde(flatten)]
    pub left: Left,
    /// Frames and bytes that its ports sent.
    pub frames: u64,
    pub bytes: u64,
    /// From a trigger until all events up to it are decided; of the scheduler's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    pub ledger: LedgerReport,
}

/// Latencies by pack, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Latency {
    fn new(times: Percentiles, sum_ns: u64) -> Self {
        let us = |ns: u64| ns as f64 / 1000.0;
        Self {
            mean: us(sum_ns) / (times.count.max(1) as f64),
            p50: us(times.p50),
            p99: us(times.p99),
            p999: us(times.p999),
            max: us(times.max),
        }
    }
}

impl Part {
    /// Of what loops left behind.
    pub fn new(left: Left, shown: &Shown) -> Self {
        let traffic = shown.books.ports.iter().map(PortView::traffic);
        let (frames, bytes) = traffic.fold((0, 0), |(frames, bytes), traffic| {
            (frames + traffic.tx_packets, bytes + traffic.tx_bytes)
        });
        let latency = &shown.latency;
        let latency_us = left.scheduler.as_ref();
        Self {
            latency_us: latency_us.map(|_| Latency::new(latency.percentiles(), latency.sum())),
            left,
            frames,
            bytes,
            ledger: shown.books.ledger.balance().into(),
        }
    }

    /// Adds that of another process.
    pub fn add(&mut self, other: Self) {
        self.left.add(other.left);
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.latency_us = self.latency_us.or(other.latency_us);
        self.ledger.add(&other.ledger);
    }

    /// Fragments of single events that the nodes compared with the mock-up words, and those that
    /// differ.
    pub fn compared(&self) -> (u64, u64) {
        let nodes = self.left.nodes.iter();
        nodes.fold((0, 0), |(checked, wrong), node| {
            (checked + node.checked, wrong + node.wrong)
        })
    }

    /// Whether no payload was wrong.
    ///
    /// # Errors
    /// How many were.
    pub fn check(&self) -> Result<()> {
        let (checked, wrong) = self.compared();
        ensure!(
            wrong == 0,
            "{wrong} of {checked} fragments differ from the mock-up words: does a feeder have another \
             `fragment` in its configuration?"
        );
        Ok(())
    }

    /// The ledger as a line of text.
    pub fn write_ledger(&self, out: &mut dyn Write) -> io::Result<()> {
        let ledger = &self.ledger;
        write!(
            out,
            "ledger       {} from the wire = {} delivered",
            ledger.from_wire, ledger.delivered
        )?;
        for (cause, frames) in &ledger.dropped {
            write!(out, " + {frames} {cause}")?;
        }
        let balance = if ledger.balanced {
            ""
        } else {
            ": NOT BALANCED"
        };
        writeln!(out, "{balance}")
    }
}
