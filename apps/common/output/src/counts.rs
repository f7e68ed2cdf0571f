//! Counters of an output, in events, and their report.

use std::sync::Arc;

use pollux_pmd::Count;
use serde::Serialize;

/// What the loop counts for one queue. The loop is the only writer.
#[derive(Debug, Default)]
pub struct QueueCounts {
    /// Events in the queue, and those that have left it.
    pub handed: Count,
    /// Events that the loop dropped because the queue was full.
    pub missed: Count,
}

/// Outcomes of the events for an output. Of an event that the loop has handed over, exactly one of
/// `delivered`, `refused`, `unsent` and `repeated` is counted once its outcome is known, by the output's thread.
#[derive(Debug, Default)]
pub struct OutputCounts {
    /// Of the loop.
    pub queue: Arc<QueueCounts>,
    /// Events that have arrived, as far as the protocol says so: acknowledged, or sent by one that
    /// does not acknowledge.
    pub delivered: Count,
    /// Events that the other side has refused.
    pub refused: Count,
    /// Events that were given up: not sent, or not acknowledged, until the end.
    pub unsent: Count,
    /// Events with the number of an earlier one, where a receiver could not tell them apart.
    pub repeated: Count,
    /// Messages or datagrams with events that were sent.
    pub messages: Count,
    /// Their bytes, without the headers of the transport.
    pub bytes: Count,
}

/// Events that were lost, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LostReport {
    /// The output was slower than the run, and its queue was full.
    pub queue_full: u64,
    /// The other side has refused them.
    pub refused: u64,
    /// They were given up.
    pub unsent: u64,
    /// They have the number of an earlier event.
    pub repeated: u64,
}

impl LostReport {
    /// Their sum.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.queue_full + self.refused + self.unsent + self.repeated
    }
}

/// An output in the report of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutputReport {
    /// Its spec.
    pub spec: String,
    /// Events that were meant for it.
    pub handed: u64,
    /// Events that have arrived (EJFAT: were sent; Kafka: were acknowledged).
    pub delivered: u64,
    /// All others.
    pub lost: LostReport,
    /// Messages or datagrams.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether each event was delivered or lost: `handed` is the sum.
    pub balanced: bool,
}

impl OutputCounts {
    /// Events that the loop has handed over, and whose outcome is not known yet.
    #[must_use]
    pub fn pending(&self) -> u64 {
        let lost = self.refused.get() + self.unsent.get() + self.repeated.get();
        let known = self.delivered.get() + lost;
        self.queue.handed.get().saturating_sub(known)
    }

    /// The counts so far, or at the end.
    #[must_use]
    pub fn report(&self, spec: &str) -> OutputReport {
        let lost = LostReport {
            queue_full: self.queue.missed.get(),
            refused: self.refused.get(),
            unsent: self.unsent.get(),
            repeated: self.repeated.get(),
        };
        let delivered = self.delivered.get();
        let handed = self.queue.handed.get() + lost.queue_full;
        OutputReport {
            spec: spec.into(),
            handed,
            delivered,
            lost,
            messages: self.messages.get(),
            bytes: self.bytes.get(),
            balanced: handed == delivered + lost.all(),
        }
    }
}
