//! What is measured.

use std::fmt;
use std::time::Duration;

use pollux_rdma::Operation;

/// A measurement.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) operation: Operation,
    /// The rate, or the latency.
    pub(super) is_rate: bool,
    pub(super) bytes: u32,
    pub(super) depth: u32,
    pub(super) trial: Duration,
}

impl Plan {
    /// Whether the responder's memory has the data at the start.
    pub(super) fn is_from_responder(self) -> bool {
        self.operation == Operation::Get
    }

    /// What is measured, in reports.
    pub(super) fn measure(self) -> &'static str {
        if self.is_rate { "rate" } else { "latency" }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, measure) = (self.operation.name(), self.measure());
        write!(f, "{measure} of {name}, {} B", self.bytes)
    }
}
