//! Report of a run: JSON (docs/formats/report.md), and text.

mod text;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use pollux_app::LedgerReport;
use pollux_emulator::rings::RingReport;
use pollux_emulator::run::EmulatorReport;
use pollux_output::OutputReport;
use pollux_pmd::{LatencyView, Percentiles};
use serde::Serialize;

use crate::groups::GroupReport;

/// Version of the report's layout; incremented with every change that readers can notice.
pub const SCHEMA: u32 = 1;

/// A run, as other programs read it: names and meanings must not change.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub schema: u32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReport>,
    /// Why the run ended: `complete` (all events of the demonstration are decided), `exhausted`
    /// (the recordings have ended), `enough` (the requested number of events), `stopped`, or `gone`
    /// (the device of a port).
    pub end: &'static str,
    pub duration_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorReport>,
    pub cores: Vec<CoreReport>,
    #[serde(flatten)]
    pub counted: Counted,
    /// Of event records.
    pub recording: RecordingReport,
    /// Of events with their hits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordingReport>,
    /// One for each output, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<RingReport>,
    /// Why no event was built although frames were dropped, or why no answer was delivered although there is a
    /// destination; the summary and the error at the end include it. Programs see it from `events` and `ledger`, and
    /// from `answers`: none is `sent`.
    #[serde(skip)]
    pub wrong: Option<String>,
}

/// Of a run with a number.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// Its number.
    pub run: u32,
    /// Number of bursts: one, and one more whenever the time stamps of most boards restarted.
    pub bursts: u64,
}

/// Counts of the loops so far.
#[derive(Debug, Default, Serialize)]
pub struct Counted {
    pub ports: Vec<PortReport>,
    /// One for each port that has joined multicast groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupReport>,
    pub ledger: LedgerReport,
    /// Frames missing by sequence number.
    pub missing: u64,
    pub streams: Vec<StreamReport>,
    pub events: EventsReport,
    /// One for each rule set of the run, in order.
    pub rules: Vec<RuleSetReport>,
    pub answers: AnswersReport,
    /// `total` is from the arrival of an event's first frame to the transmission of its decision; a
    /// stage's is the time that it spent on one batch.
    pub latency_ns: BTreeMap<String, Quantiles>,
    pub deadline: DeadlineReport,
    /// The trigger core's gaps between two readings of the clock, with at most one event's work in
    /// between: the machine's share in the latencies.
    pub jitter_ns: JitterReport,
    pub back_pressure: BackPressureReport,
    /// The workers of the trigger core.
    pub workers: Vec<WorkerReport>,
    /// Those that receive for the trigger core.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub receivers: Vec<ReceiverReport>,
}

#[derive(Debug, Serialize)]
pub struct PortReport {
    pub spec: String,
    /// Frames that reached the port, including those that it dropped itself.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that the trigger sent.
    pub tx_packets: u64,
    /// Frames that the port accepted and its device refused.
    pub tx_errors: u64,
    /// Source of the arrival times of its frames, from which latencies are measured: `hardware`,
    /// `kernel`, `poll` or `read`; null for a port that does not receive.
    pub arrival_time: Option<&'static str>,
    /// Receive queues of its device that no port polls, by the device's numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpolled_queues: Vec<u16>,
}

#[derive(Debug, Serialize)]
pub struct CoreReport {
    pub role: String,
    pub cpu: Option<usize>,
    pub isolated: bool,
}

/// Rounds of the trigger's loop in which it took no frames, by what was full.
#[derive(Debug, Default, Serialize)]
pub struct BackPressureReport {
    pub stages: u64,
    /// Files and other consumers of events, for which a recording waits.
    pub outputs: u64,
}

/// Counts of a worker.
#[derive(Debug, Serialize)]
pub struct WorkerReport {
    /// Its role among the cores.
    pub core: String,
    /// Time of each of its jobs: up to sixteen events.
    pub job_ns: Quantiles,
    /// Gaps between two polls for a job, including its own work.
    pub jitter_ns: JitterReport,
    /// Events that it did not return in time, or ended with.
    pub undecided: u64,
    /// Times that the trigger's loop stopped waiting for it.
    pub stalls: u64,
    /// `running` (or ended in order), `stalled` (the loop no longer waits for it, and has received
    /// nothing from it since), or `gone` (its loop has ended before the trigger's).
    pub state: &'static str,
}

/// What a receive loop did.
#[derive(Debug, Serialize)]
pub struct ReceiverReport {
    /// Its role among the cores.
    pub core: String,
    /// Frames that it passed on, and those that it dropped.
    pub frames: u64,
    pub dropped: u64,
    /// Polls of a queue that it left out, as the trigger's loop was behind.
    pub stops: u64,
    /// Gaps between two rounds, its own work included.
    pub jitter_ns: JitterReport,
}

#[derive(Debug, Serialize)]
pub struct StreamReport {
    pub id: u16,
    pub udp_port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Ipv4Addr>,
    pub packets: u64,
    pub bytes: u64,
    pub gaps: u64,
    pub duplicates: u64,
    pub late: u64,
    pub missing: u64,
    pub reordered: u64,
    pub resyncs: u64,
    pub late_fragments: u64,
    pub absent_events: u64,
    /// Its number in the frames of this stream.
    pub board: u8,
    /// Frames that were refused, for their time stamps and their board numbers.
    pub clock_skew: u64,
    pub out_of_window: u64,
    pub misrouted: u64,
    /// Frames on its port that could not be read, or are of no configured board.
    pub unreadable: u64,
    /// Its refused fragments, by cause.
    pub refused_fragments: BTreeMap<&'static str, u64>,
    /// Frames on the ports of other boards that have its number.
    pub elsewhere: u64,
    /// Times that its time stamps moved far from those of most others, or back.
    pub strays: u64,
    /// Events of most other boards without this one.
    pub missed_events: u64,
    /// Events in which it had more hits than rings explain, so that they were masked.
    pub hot_events: u64,
    /// Its time stamps differ from those of most others at this moment.
    pub clock_off: bool,
    /// Names of its faults.
    pub faults: Vec<&'static str>,
}

#[derive(Debug, Default, Serialize)]
pub struct EventsReport {
    pub built: u64,
    pub complete: u64,
    pub incomplete: u64,
    pub accepted: u64,
    pub rejected: u64,
    pub rings: u64,
    pub hits: u64,
    pub forced: u64,
    pub overfull: u64,
    pub no_buffer: u64,
    pub resyncs: u64,
    pub truncated: u64,
    pub disputed: u64,
    /// Hits that `merge` refused, by cause.
    pub refused_hits: BTreeMap<&'static str, u64>,
    /// Events with more rings on a disk than the limit.
    pub rings_cut: u64,
    /// Built events without a decision, since a worker did not return them.
    pub undecided: u64,
}

/// Counts of a rule set.
#[derive(Debug, Serialize)]
pub struct RuleSetReport {
    pub set: u16,
    /// Events that it decided.
    pub events: u64,
    pub accepted: u64,
    /// Rejected events that are kept for monitoring.
    pub monitored: u64,
    pub rules: Vec<RuleReport>,
}

#[derive(Debug, Serialize)]
pub struct RuleReport {
    pub name: String,
    /// Its criteria as text.
    pub asks: String,
    pub prescale: u32,
    /// Events that it holds for.
    pub held: u64,
    /// Events that it accepted.
    pub accepted: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct AnswersReport {
    pub sent: u64,
    /// Decisions without a destination: no address, or a port that cannot send.
    #[serde(rename = "untold")]
    pub no_destination: u64,
    pub packets: u64,
    pub no_room: u64,
    /// Decisions that the port took and could not send or write.
    pub refused: u64,
    pub unresolved: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct RecordingReport {
    pub written: u64,
    pub lost: u64,
    /// The files that exist at the end, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl RecordingReport {
    /// Its files as text.
    fn file_names(&self) -> String {
        match self.files.as_slice() {
            [] => String::new(),
            [one] => format!(": {one}"),
            [first, .., last] => format!(": {} files, {first} to {last}", self.files.len()),
        }
    }
}

#[derive(Debug, Default, Serialize)]
pub struct Quantiles {
    pub p50: u64,
    pub p99: u64,
    pub p999: u64,
    pub p9999: u64,
    pub max: u64,
    pub count: u64,
}

impl From<Percentiles> for Quantiles {
    fn from(p: Percentiles) -> Self {
        let Percentiles {
            count,
            p50,
            p99,
            p999,
            p9999,
            max,
        } = p;
        Self {
            p50,
            p99,
            p999,
            p9999,
            max,
            count,
        }
    }
}

#[derive(Debug, Default, Serialize)]
pub struct DeadlineReport {
    pub budget_ns: u64,
    /// Budget misses: late decisions within one budget count as one miss.
    pub missed: u64,
    /// Decisions sent after their budget.
    pub late_decisions: u64,
    /// Those of them that are not marked as late.
    pub unmarked: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct JitterReport {
    #[serde(flatten)]
    pub gaps: Quantiles,
    /// Gaps longer than half the budget.
    pub over_half_budget: u64,
}

impl JitterReport {
    pub fn new(gaps: &LatencyView, budget_ns: u64) -> Self {
        Self {
            gaps: gaps.percentiles().into(),
            over_half_budget: gaps.count_above(budget_ns / 2),
        }
    }
}
