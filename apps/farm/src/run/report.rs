//! The report of a run (docs/farm.md).

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use pollux_app::LedgerReport;
use pollux_switch::{SwitchReport, SwitchView};
use serde::Serialize;

use super::config::FarmConfig;
use super::fate::ProcessReport;
use super::outcome::{Flow, Left};
use super::part::{Latency, Part};
use super::plan::Plan;

/// A run without a decision for so long does not end by itself.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How a run ended.
#[derive(Clone, Copy)]
pub struct Ended {
    /// `complete`, `stopped` by a signal, `stalled` or `failed`.
    pub end: &'static str,
    /// No more triggers were wanted: by a signal, or after a time.
    pub is_asked: bool,
    pub duration: Duration,
    /// Frames that were sent and not taken.
    pub left: u64,
}

/// Format of the report.
const SCHEMA: u32 = 1;

/// The report.
#[derive(Serialize)]
pub struct Report<'a> {
    schema: u32,
    end: &'static str,
    duration_s: f64,
    seed: u64,
    settings: &'a FarmConfig,
    loops: usize,
    /// The processes, if there were several.
    processes: Option<Vec<ProcessReport>>,
    events: Events,
    /// Decided events a second, from the first trigger to the last decision.
    rate_hz: f64,
    flow: Flow,
    columns: Columns,
    nodes: Vec<NodeReport>,
    feeders: Vec<FeederReport>,
    payload: Payload,
    /// From a trigger until all events up to it are decided.
    latency_us: Latency,
    messages: Messages,
    ledger: LedgerReport,
    /// The switch, if there was one.
    switch: Option<SwitchReport>,
    /// No event was decided for long, and all were in the end.
    #[serde(skip)]
    was_late: bool,
    /// What it is made of.
    #[serde(skip)]
    part: Part,
}

/// Events.
#[derive(Clone, Copy, Debug, Serialize)]
struct Events {
    triggered: u64,
    /// Triggers that found too many events waiting.
    refused: u64,
    built: u64,
    complete: u64,
    incomplete: u64,
    decided: u64,
    accepted: u64,
    lost: u64,
    twice: u64,
    /// Transfers of a pack that were asked for again.
    resent: u64,
    in_order: bool,
}

#[derive(Serialize)]
struct Columns {
    repeated: u64,
}

#[derive(Serialize)]
struct NodeReport {
    id: usize,
    column: u8,
    events: u64,
    excluded: bool,
    dead: bool,
    suspended: u64,
}

#[derive(Serialize)]
struct FeederReport {
    id: usize,
    /// Decided events that have its fragment.
    fragments: u64,
    /// Decided events that lack it.
    missing: u64,
    /// Transfers that it made, those that were asked for again included.
    transfers: u64,
    dead: bool,
}

#[derive(Serialize)]
struct Payload {
    checked: u64,
    wrong: u64,
}

/// Messages and their frames.
#[derive(Serialize)]
struct Messages {
    /// Messages between members of one loop, which had no frame.
    handed_over: u64,
    /// Frames that were sent.
    frames: u64,
    bytes: u64,
    /// Frames that were sent and not taken.
    left: u64,
    /// Messages that were damaged on purpose.
    damaged: u64,
    /// Frames that could not be sent.
    unsent: u64,
    misrouted: u64,
}

impl<'a> Report<'a> {
    /// Of what all processes contribute.
    pub fn new(
        plan: &'a Plan,
        part: Part,
        processes: Option<Vec<ProcessReport>>,
        ended: Ended,
        switch: Option<&SwitchView>,
    ) -> Self {
        let Left {
            scheduler, results, ..
        } = &part.left;
        let results = results.as_ref();
        let handed = results.map(|results| results.handed.clone());
        let handed = handed.unwrap_or_default();
        let scheduler = scheduler.as_ref();
        let triggered = scheduler.map_or(0, |s| s.triggered);
        let events = Events {
            triggered,
            refused: scheduler.map_or(0, |s| s.refused),
            built: results.map_or(0, |results| results.built),
            complete: handed.decided - handed.incomplete,
            incomplete: handed.incomplete,
            decided: handed.decided,
            accepted: handed.accepted,
            lost: triggered.saturating_sub(handed.decided - handed.twice),
            twice: handed.twice,
            resent: scheduler.map_or(0, |s| s.resent),
            in_order: handed.out_of_order == 0 && results.is_none_or(|results| results.gaps == 0),
        };
        let end = events.end(ended, plan.asked.events);
        let seconds = scheduler.map_or(0.0, |s| s.duration_s);
        let (checked, wrong) = part.compared();
        Self {
            schema: SCHEMA,
            end,
            duration_s: ended.duration.as_secs_f64(),
            seed: plan.asked.seed,
            settings: &plan.config,
            loops: plan.shares.len(),
            processes,
            events,
            rate_hz: if seconds > 0.0 {
                handed.decided as f64 / seconds
            } else {
                0.0
            },
            flow: scheduler.map(|s| s.flow).unwrap_or_default(),
            columns: Columns {
                repeated: scheduler.map_or(0, |s| s.columns_repeated),
            },
            nodes: node_reports(plan, &part.left),
            feeders: feeder_reports(plan, &part.left),
            payload: Payload { checked, wrong },
            latency_us: part.latency_us.unwrap_or_default(),
            messages: Messages {
                handed_over: part.left.handed_over,
                frames: part.frames,
                bytes: part.bytes,
                left: ended.left,
                damaged: part.left.damaged,
                unsent: part.left.unsent,
                misrouted: part.left.misrouted,
            },
            ledger: part.ledger.clone(),
            switch: switch.map(SwitchView::report),
            was_late: end != ended.end,
            part,
        }
    }

    /// Whether the run ended as it should.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, plan: &Plan) -> Result<()> {
        let Events {
            triggered,
            built,
            decided,
            lost,
            twice,
            in_order,
            ..
        } = self.events;
        let scheduler = self.part.left.scheduler.as_ref();
        let stall = scheduler.and_then(|scheduler| scheduler.stall.as_deref());
        expect_complete(self.end, decided, stall)?;
        if self.was_late {
            tracing::warn!(
                "no event was decided for {} s or longer, but all {decided} were in the end: the machine or a \
                 member stood still",
                PATIENCE.as_secs()
            );
        }
        ensure!(
            lost == 0 && twice == 0 && in_order,
            "of {triggered} events {lost} were lost and {twice} decided twice{}",
            if in_order { "" } else { ", not in order" }
        );
        ensure!(
            built == triggered && decided == triggered,
            "{triggered} events were triggered, {built} built, {decided} decided"
        );
        self.part.check()?;
        let left = self.messages.left;
        ensure!(left == 0, "{left} frames were sent and not taken");
        let expected = plan.asked.events.filter(|_| self.end == "complete");
        if let Some(expected) = expected {
            ensure!(
                triggered == expected,
                "{triggered} events of {expected} were triggered"
            );
        }
        Ok(())
    }

    /// The report as text.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let events = &self.events;
        writeln!(
            out,
            "farm, seed {}: {}, {:.2} s",
            self.seed, self.end, self.duration_s
        )?;
        writeln!(
            out,
            "events       {} triggered, {} built, {} decided, {} accepted, {:.0} a second",
            events.triggered, events.built, events.decided, events.accepted, self.rate_hz
        )?;
        let order = if events.in_order {
            "in order"
        } else {
            "NOT IN ORDER"
        };
        writeln!(
            out,
            "             {} incomplete, {} lost, {} twice, {order}; {} refused, {} sent again",
            events.incomplete, events.lost, events.twice, events.refused, events.resent
        )?;
        writeln!(
            out,
            "flow         {} sent, {} returned, {} errors, {} loops; {} columns repeated",
            self.flow.sent,
            self.flow.returned,
            self.flow.errors,
            self.flow.loops,
            self.columns.repeated
        )?;
        let numbers = self.nodes.iter().map(|node| node.events);
        let excluded = self.nodes.iter().filter(|node| node.excluded).count();
        writeln!(
            out,
            "nodes        {}, {} to {} events each; {excluded} excluded",
            self.nodes.len(),
            numbers.clone().min().unwrap_or_default(),
            numbers.max().unwrap_or_default(),
        )?;
        let fragments = self.feeders.iter().map(|feeder| feeder.fragments);
        writeln!(
            out,
            "feeders      {}, {} to {} fragments each",
            self.feeders.len(),
            fragments.clone().min().unwrap_or_default(),
            fragments.max().unwrap_or_default(),
        )?;
        writeln!(
            out,
            "payload      {} fragments checked, {} wrong",
            self.payload.checked, self.payload.wrong
        )?;
        let latency = &self.latency_us;
        writeln!(
            out,
            "latency      mean {:.1} us, median {:.1}, 99 % {:.1}, max {:.1}",
            latency.mean, latency.p50, latency.p99, latency.max
        )?;
        let messages = &self.messages;
        writeln!(
            out,
            "messages     {} handed over; {} frames, {} B; {} left, {} damaged, {} unsent",
            messages.handed_over,
            messages.frames,
            messages.bytes,
            messages.left,
            messages.damaged,
            messages.unsent
        )?;
        for (number, process) in self.processes.iter().flatten().enumerate() {
            let ProcessReport {
                pid, members, end, ..
            } = process;
            writeln!(out, "process {number}    {members}, pid {pid}: {end}")?;
        }
        self.part.write_ledger(out)
    }
}

/// The nodes, with their events that were handed on. One that a lost process had is dead.
fn node_reports(plan: &Plan, left: &Left) -> Vec<NodeReport> {
    let excluded = left.scheduler.as_ref().map(|s| &s.excluded[..]);
    let excluded = excluded.unwrap_or_default();
    let built = left
        .results
        .as_ref()
        .map(|results| &results.handed.built_by);
    let of = |id: usize| {
        let node = left.nodes.iter().find(|node| node.id == id);
        NodeReport {
            id,
            column: plan.topology.column_of(id as u16).unwrap_or_default(),
            events: built.and_then(|built| built.get(id).copied()).unwrap_or(0),
            excluded: excluded.contains(&(id as u16)),
            dead: node.is_none_or(|node| node.dead),
            suspended: node.map_or(0, |node| node.suspended),
        }
    };
    (0..plan.topology.nodes()).map(of).collect()
}

/// The feeders. One that a lost process had is dead.
fn feeder_reports(plan: &Plan, left: &Left) -> Vec<FeederReport> {
    let handed = left.results.as_ref().map(|results| &results.handed);
    let of = |id: usize| {
        let missing = handed.and_then(|handed| handed.missing.get(id));
        let missing = missing.copied().unwrap_or_default();
        let feeder = left.feeders.iter().find(|feeder| feeder.id == id);
        FeederReport {
            id,
            fragments: handed.map_or(0, |handed| handed.decided) - missing,
            missing,
            transfers: feeder.map_or(0, |feeder| feeder.transfers),
            dead: feeder.is_none_or(|feeder| feeder.dead),
        }
    };
    (0..plan.topology.feeders()).map(of).collect()
}

impl Events {
    /// How a run ended that has these events, of so many: one that was given up as late, and has decided all that
    /// were asked for, is complete.
    fn end(&self, ended: Ended, of: Option<u64>) -> &'static str {
        let all = [self.built, self.decided];
        let is_decided = self.lost == 0 && all.iter().all(|&events| events == self.triggered);
        judge(ended.end, is_decided, ended.is_asked, self.triggered, of)
    }
}

/// How a run ended that triggered so many events, of those asked for. One that was given up as late is not
/// stalled if all of them are decided, and it had no more to trigger.
pub fn judge(
    end: &'static str,
    is_decided: bool,
    is_asked: bool,
    triggered: u64,
    of: Option<u64>,
) -> &'static str {
    let is_cut = of.is_some_and(|events| triggered < events);
    let is_asked = is_asked || of.is_some_and(|events| triggered == events);
    match end {
        "stalled" if is_decided && is_asked && is_cut => "stopped",
        "stalled" if is_decided && is_asked => "complete",
        end => end,
    }
}

/// What is wrong with a run that did not end as asked.
///
/// # Errors
/// It stalled.
pub fn expect_complete(end: &str, decided: u64, stall: Option<&str>) -> Result<()> {
    if end == "stalled" {
        bail!(
            "no event was decided for {} s or longer after {decided}: {}",
            PATIENCE.as_secs(),
            stall.unwrap_or("a member does not answer")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_run_is_judged_by_what_is_undecided() {
        let all = Events {
            triggered: 5,
            refused: 0,
            built: 5,
            complete: 5,
            incomplete: 0,
            decided: 5,
            accepted: 0,
            lost: 0,
            twice: 0,
            resent: 0,
            in_order: true,
        };
        let end = |end, is_asked, events: Events, of| {
            let ended = Ended {
                end,
                is_asked,
                duration: Duration::ZERO,
                left: 0,
            };
            events.end(ended, of)
        };
        assert_eq!(end("stalled", false, all, Some(5)), "complete");
        assert_eq!(end("stalled", true, all, None), "complete");
        assert_eq!(end("stalled", true, all, Some(6)), "stopped");
        // Not asked to end before the sixth one, or at all.
        assert_eq!(end("stalled", false, all, Some(6)), "stalled");
        assert_eq!(end("stalled", false, all, None), "stalled");
        for undecided in [
            Events {
                decided: 4,
                lost: 1,
                ..all
            },
            Events { decided: 4, ..all },
            Events { built: 4, ..all },
        ] {
            assert_eq!(end("stalled", true, undecided, Some(5)), "stalled");
        }
        assert_eq!(end("failed", true, all, Some(5)), "failed");
    }
}
