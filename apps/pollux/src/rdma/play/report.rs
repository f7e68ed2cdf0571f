//! Report of a conversation.

use std::fmt;

use pollux_app::LedgerReport;
use pollux_pmd::Balance;
use pollux_rdma::{Done, Failed, Received};
use serde::Serialize;

use super::super::counts::Counts;

/// Content of `--report`.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) schema: u32,
    pub(super) command: &'static str,
    pub(super) end: &'static str,
    pub(super) ledger: LedgerReport,
    pub(super) rdma: Counts,
    pub(super) completions: Vec<Completion>,
    pub(super) failed: Vec<FailedQp>,
    #[serde(skip)]
    pub(super) balance: Balance,
}

/// A request that is done, or a receive that is used up.
#[derive(Serialize)]
pub(super) struct Completion {
    qp: u32,
    side: &'static str,
    op: &'static str,
    status: &'static str,
    bytes: u32,
    immediate: Option<u32>,
    crc32: Option<u32>,
}

impl From<Done> for Completion {
    fn from(done: Done) -> Self {
        Self {
            qp: done.qp.get(),
            side: "posted",
            op: done.operation.name(),
            status: done.status.name(),
            bytes: done.bytes,
            immediate: None,
            crc32: None,
        }
    }
}

impl Completion {
    /// `crc32` is that of the data in the receive's buffer.
    pub(super) fn received(received: &Received, crc32: Option<u32>) -> Self {
        Self {
            qp: received.qp.get(),
            side: "received",
            op: if received.is_put { "put" } else { "send" },
            status: received.status.name(),
            bytes: received.bytes,
            immediate: received.immediate,
            crc32,
        }
    }
}

/// A queue pair that has failed.
#[derive(Serialize)]
pub(super) struct FailedQp {
    qp: u32,
    status: &'static str,
    psn: u32,
}

impl From<Failed> for FailedQp {
    fn from(failed: Failed) -> Self {
        Self {
            qp: failed.qp.get(),
            status: failed.status.name(),
            psn: failed.psn.get(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ledger    {}", self.balance)?;
        writeln!(f, "packets   {}", self.rdma)?;
        for done in &self.completions {
            let Completion {
                qp,
                side,
                op,
                status,
                bytes,
                ..
            } = done;
            writeln!(f, "{side:9} {qp:06x} {op}, {bytes} B: {status}")?;
        }
        for FailedQp { qp, status, psn } in &self.failed {
            writeln!(f, "failed    {qp:06x} at packet {psn}: {status}")?;
        }
        Ok(())
    }
}
