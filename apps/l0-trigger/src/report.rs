//! The report of a run: as JSON for machines, as text for people.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use pollux_emulator::rings::RingReport;
use pollux_emulator::run::EmulatorReport;
use pollux_pmd::{LatencyView, Percentiles};
use pollux_program::LedgerReport;
use serde::Serialize;

use crate::boards;
use crate::groups::GroupReport;

/// Version of the report's layout; grows with every change that a reader could notice.
pub const SCHEMA: u32 = 1;

/// A run, as others read it: keep names and meanings.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub schema: u32,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReport>,
    /// Why the run ended: `complete` (the demonstration's events are all decided), `exhausted`
    /// (the recordings have ended), `enough` (as many events as asked for), `stopped`, or `gone` (the
    /// device of a port).
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<RingReport>,
    /// Why no answer has reached anybody, where somebody was to be told; the summary says it, and the
    /// error at the end. Machines see it from `answers`: none is `sent`.
    #[serde(skip)]
    pub unheard: Option<String>,
}

/// Of a run with a number.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// Its number.
    pub run: u32,
    /// Bursts that it saw: one, and one more each time that most boards began anew.
    pub bursts: u64,
}

/// What the loops have counted so far.
#[derive(Debug, Default, Serialize)]
pub struct Counted {
    pub ports: Vec<PortReport>,
    /// One for each port that has joined multicast groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupReport>,
    pub ledger: LedgerReport,
    /// Frames that sequence numbers say never arrived.
    pub missing: u64,
    pub streams: Vec<StreamReport>,
    pub events: EventsReport,
    /// One for each set of rules of the run, in order.
    pub rules: Vec<RuleSetReport>,
    pub answers: AnswersReport,
    /// `total` is from the arrival of an event's first frame to its decision's departure; a
    /// stage's is the time that it spent on one batch.
    pub latency_ns: BTreeMap<String, Quantiles>,
    pub deadline: DeadlineReport,
    /// The trigger core's gaps between two looks at the clock, with at most one event's work in
    /// between: the machine's share in the latencies.
    pub jitter_ns: JitterReport,
    /// Those that take work off the trigger core.
    pub workers: Vec<WorkerReport>,
}

#[derive(Debug, Serialize)]
pub struct PortReport {
    pub spec: String,
    /// Frames that reached the port, those that it dropped itself included.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that the trigger sent.
    pub tx_packets: u64,
    /// Where the arrival of its frames comes from, from which latencies count: `hardware`,
    /// `kernel`, `poll` or `read`; null for a port that does not receive.
    pub arrival_time: Option<&'static str>,
    /// Receive queues of its device whose frames nobody gets, by the device's numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpolled_queues: Vec<u16>,
}

#[derive(Debug, Serialize)]
pub struct CoreReport {
    pub role: String,
    pub cpu: Option<usize>,
    pub isolated: bool,
}

/// What a worker did.
#[derive(Debug, Serialize)]
pub struct WorkerReport {
    /// Its role among the cores.
    pub core: String,
    /// The time that each of its jobs took: up to sixteen events.
    pub job_ns: Quantiles,
    /// Gaps between two looks for a job, its own work included.
    pub jitter_ns: JitterReport,
    /// Events that it did not bring back in time, or ended with.
    pub undecided: u64,
    /// Times that the trigger's loop stopped waiting for it.
    pub stalls: u64,
    /// `running` (or ended in order), `stalled` (the loop waits for it no longer, and has had
    /// nothing from it since), or `gone` (its loop has ended before the trigger's).
    pub state: &'static str,
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
    /// Frames that were refused, for what their time stamps and their board numbers are.
    pub clock_skew: u64,
    pub out_of_window: u64,
    pub misrouted: u64,
    /// Frames on the ports of other boards that have its number.
    pub elsewhere: u64,
    /// Times that its time stamps were found to be far from those of most others, or came back from
    /// there.
    pub strays: u64,
    /// Events of most other boards without this one.
    pub missed_events: u64,
    /// Events in which it had more hits than rings explain, and was passed over.
    pub hot_events: u64,
    /// Its time stamps differ from those of most others at this moment.
    pub clock_off: bool,
    /// What is wrong with it, in words.
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
    /// Events with more rings on a disk than are looked for.
    pub rings_cut: u64,
    /// Built events that no decision was made about, as a worker did not bring them back.
    pub undecided: u64,
}

/// What a set of rules did.
#[derive(Debug, Serialize)]
pub struct RuleSetReport {
    pub set: u16,
    /// Events that it decided.
    pub events: u64,
    pub accepted: u64,
    /// Rejected ones that are kept for monitoring.
    pub monitored: u64,
    pub rules: Vec<RuleReport>,
}

#[derive(Debug, Serialize)]
pub struct RuleReport {
    pub name: String,
    /// What it asks for, in words.
    pub asks: String,
    pub prescale: u32,
    /// Events that it holds for.
    pub held: u64,
    /// Those that it accepted.
    pub accepted: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct AnswersReport {
    pub sent: u64,
    /// Decisions that nobody was to be told: no address, or a port that cannot send.
    pub untold: u64,
    pub packets: u64,
    pub no_room: u64,
    pub unresolved: u64,
}

#[derive(Debug, Default, Serialize)]
pub struct RecordingReport {
    pub written: u64,
    pub lost: u64,
    /// The files that are there at the end, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

impl RecordingReport {
    /// Its files in words.
    fn named(&self) -> String {
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
    /// Times that the budget was missed: late decisions within one budget are one miss.
    pub missed: u64,
    /// Decisions that departed after their budget.
    pub late_decisions: u64,
    /// Those of them that do not say so.
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

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{:.2} %", ratio * 100.0))
}

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1000.0)
}

impl Report {
    /// The report for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self
            .write_frames(&mut text)
            .and_then(|()| self.write_events(&mut text))
            .and_then(|()| self.write_verdict(&mut text));
        text
    }

    fn write_frames(&self, out: &mut String) -> std::fmt::Result {
        write!(out, "run        ")?;
        if let Some(RunReport { run, bursts }) = self.run {
            write!(out, "{run}: {bursts} bursts, ")?;
        }
        writeln!(out, "{:.2} s, {}", self.duration_s, self.end)?;
        for core in &self.cores {
            let cpu = core
                .cpu
                .map_or("any cpu".into(), |cpu| format!("cpu {cpu}"));
            let isolated = if core.isolated {
                "isolated"
            } else {
                "not isolated"
            };
            writeln!(out, "core       {:<9} {cpu}, {isolated}", core.role)?;
        }
        for worker in &self.counted.workers {
            let (jobs, gaps) = (&worker.job_ns, &worker.jitter_ns.gaps);
            writeln!(
                out,
                "{:<10} {} jobs, p99 {} us, max {} us; longest gap {} us",
                worker.core,
                jobs.count,
                micros(jobs.p99),
                micros(jobs.max),
                micros(gaps.max)
            )?;
            if worker.undecided > 0 || worker.state != "running" {
                writeln!(
                    out,
                    "           {}: {} events undecided, {} stalls",
                    worker.state, worker.undecided, worker.stalls
                )?;
            }
        }
        for port in &self.counted.ports {
            write!(
                out,
                "port       {}: {} frames, {} bytes received, {} frames sent",
                port.spec, port.rx_packets, port.rx_bytes, port.tx_packets
            )?;
            if let Some(arrival) = port.arrival_time {
                write!(out, "; arrival by {arrival}")?;
            }
            writeln!(out)?;
        }
        for groups in &self.counted.groups {
            writeln!(out, "{groups}")?;
        }
        writeln!(
            out,
            "stream     udp port     frames      bytes       gaps  missing  duplicate       late"
        )?;
        for s in &self.counted.streams {
            writeln!(
                out,
                "{:>6} {:>12} {:>10} {:>10} {:>10} {:>8} {:>10} {:>10}",
                s.id, s.udp_port, s.packets, s.bytes, s.gaps, s.missing, s.duplicates, s.late
            )?;
        }
        for s in &self.counted.streams {
            for fault in &s.faults {
                let (id, board, why) = (s.id, s.board, boards::explain(fault));
                writeln!(
                    out,
                    "WRONG      stream {id} (board {board}): {fault}: {why}"
                )?;
            }
        }
        Ok(())
    }

    fn write_events(&self, out: &mut String) -> std::fmt::Result {
        let seconds = self.duration_s.max(1e-9);
        let e = &self.counted.events;
        writeln!(
            out,
            "events     {} built ({:.0}/s): {} complete, {} incomplete",
            e.built,
            e.built as f64 / seconds,
            e.complete,
            e.incomplete
        )?;
        if e.undecided > 0 {
            writeln!(
                out,
                "           {} undecided: workers did not bring them back",
                e.undecided
            )?;
        }
        if e.truncated + e.disputed > 0 {
            let (truncated, disputed) = (e.truncated, e.disputed);
            writeln!(
                out,
                "           {truncated} with hits left out, {disputed} while boards disagreed on the time"
            )?;
        }
        writeln!(out, "rings      {} in {} hits", e.rings, e.hits)?;
        let a = &self.counted.answers;
        writeln!(
            out,
            "decisions  {} accepted, {} rejected; {} sent in {} packets",
            e.accepted, e.rejected, a.sent, a.packets
        )?;
        for set in &self.counted.rules {
            let RuleSetReport {
                events, monitored, ..
            } = set;
            write!(out, "rules      set {}: {events} events", set.set)?;
            for rule in &set.rules {
                write!(out, ", {} {} of {}", rule.name, rule.accepted, rule.held)?;
            }
            if *monitored > 0 {
                write!(out, "; {monitored} rejected ones kept")?;
            }
            writeln!(out)?;
        }
        let fates = [
            (a.untold, "not to be sent"),
            (a.no_room, "lost for want of room to send"),
            (a.unresolved, "lost before the address was resolved"),
        ];
        for (n, fate) in fates.into_iter().filter(|&(n, _)| n > 0) {
            writeln!(out, "           {n} {fate}")?;
        }
        if let Some(why) = &self.unheard {
            writeln!(out, "WRONG      {why}")?;
        }
        let records = Some(&self.recording).filter(|r| r.written + r.lost > 0);
        for (what, report) in [("recording", records), ("recorded", self.record.as_ref())] {
            if let Some(report) = report {
                let RecordingReport { written, lost, .. } = report;
                let files = report.named();
                writeln!(
                    out,
                    "{what:<10} {written} events written, {lost} lost{files}"
                )?;
            }
        }
        Ok(())
    }

    fn write_verdict(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "latency us        p50      p99    p99.9   p99.99      max"
        )?;
        let jitter = ("(jitter)", &self.counted.jitter_ns.gaps);
        let stages = self
            .counted
            .latency_ns
            .iter()
            .map(|(name, q)| (name.as_str(), q));
        for (name, q) in stages.chain([jitter]) {
            write!(out, "  {name:<12}")?;
            for value in [q.p50, q.p99, q.p999, q.p9999, q.max] {
                write!(out, " {:>8}", micros(value))?;
            }
            writeln!(out)?;
        }
        let d = &self.counted.deadline;
        writeln!(
            out,
            "deadline   {} us missed {} times ({} of {} decisions); the core stood still for more than half of it {} times",
            micros(d.budget_ns),
            d.missed,
            d.late_decisions,
            self.counted.events.built,
            self.counted.jitter_ns.over_half_budget
        )?;
        if d.unmarked > 0 {
            writeln!(out, "           {} of them do not say so", d.unmarked)?;
        }
        let l = &self.counted.ledger;
        write!(
            out,
            "ledger     {} from wire = {} delivered",
            l.from_wire, l.delivered
        )?;
        for (cause, n) in &l.dropped {
            write!(out, " + {n} {cause}")?;
        }
        writeln!(
            out,
            "{}",
            if l.balanced { "" } else { "  DOES NOT BALANCE" }
        )?;
        writeln!(
            out,
            "missing    {} frames never arrived",
            self.counted.missing
        )?;
        if let Some(t) = &self.truth {
            writeln!(
                out,
                "truth      efficiency {} ({} of {} rings), fake rate {}; single rings: {}, {}",
                percent(t.efficiency),
                t.found,
                t.findable,
                percent(t.fake_rate),
                percent(t.single_ring_efficiency),
                percent(t.single_ring_fake_rate),
            )?;
        }
        Ok(())
    }
}
