//! Counters of an endpoint in a report.

use std::fmt;

use pollux_rdma::roce::RoceCounts;
use serde::Serialize;

/// Counters of an endpoint.
#[derive(Serialize)]
pub(super) struct Counts {
    sent: u64,
    requests: u64,
    retransmitted: u64,
    not_ready: u64,
    timeouts: u64,
    marked: u64,
    notified: u64,
    missed: u64,
}

impl From<RoceCounts> for Counts {
    fn from(counts: RoceCounts) -> Self {
        Self {
            sent: counts.sent,
            requests: counts.requests,
            retransmitted: counts.retransmitted,
            not_ready: counts.not_ready,
            timeouts: counts.timeouts,
            marked: counts.marked,
            notified: counts.notified,
            missed: counts.missed,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sent,
            requests,
            retransmitted,
            missed,
            ..
        } = self;
        write!(
            f,
            "{sent} sent, {requests} of them of requests, {retransmitted} of those again; {missed} \
             missed"
        )
    }
}
