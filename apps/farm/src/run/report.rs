//! The report of a run (docs/farm.md).

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use pollux_app::LedgerReport;
use pollux_farm::scheduler::{self, Stall};
use pollux_pmd::Percentiles;
use pollux_switch::{SwitchReport, SwitchView};
use serde::Serialize;

use super::config::FarmConfig;
use super::counters::Shown;
use super::outcome::{Outcome, SchedulerOutcome};
use super::plan::Plan;

/// A run without a decision for so long does not end by itself.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How a run ended.
#[derive(Clone, Copy)]
pub struct Ended {
    /// `complete`, `stopped` by a signal, `stalled` or `failed`.
    pub end: &'static str,
    pub duration: Duration,
    /// Frames that were sent and not taken.
    pub left: u64,
}

/// The report.
#[derive(Serialize)]
pub struct Report<'a> {
    end: &'static str,
    duration_s: f64,
    seed: u64,
    settings: &'a FarmConfig,
    loops: usize,
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
    #[serde(skip)]
    stall: Option<&'static str>,
}

/// Events.
#[derive(Clone, Copy, Serialize)]
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
struct Flow {
    sent: u64,
    returned: u64,
    errors: u64,
    loops: u64,
    timeouts: u64,
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

#[derive(Serialize)]
struct Latency {
    mean: f64,
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// Messages and their frames.
#[derive(Serialize)]
struct Messages {
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
    pub fn new(
        plan: &'a Plan,
        shown: &Shown,
        outcomes: &[Outcome],
        ended: Ended,
        switch: Option<&SwitchView>,
    ) -> Self {
        let scheduler = outcomes
            .iter()
            .find_map(|outcome| outcome.scheduler.as_ref());
        let results = outcomes.iter().find_map(|outcome| outcome.results.as_ref());
        let counters = scheduler.map_or_else(scheduler::Counters::default, |s| s.counters);
        let handed = results.map(|results| results.0.clone()).unwrap_or_default();
        let counted = results.map(|results| results.1).unwrap_or_default();
        let triggered = counters.triggers.taken;
        let events = Events {
            triggered,
            refused: counters.triggers.pending_full + counters.triggers.in_flight_full,
            built: counted.events,
            complete: handed.decided - handed.incomplete,
            incomplete: handed.incomplete,
            decided: handed.decided,
            accepted: handed.accepted,
            lost: triggered.saturating_sub(handed.decided - handed.twice),
            twice: handed.twice,
            resent: counters.flow.resent,
            in_order: handed.out_of_order == 0 && counted.gaps == 0,
        };
        let seconds = scheduler.map_or(0.0, |s| s.duration.ps() as f64 / 1e12);
        let nodes = outcomes.iter().flat_map(|outcome| &outcome.nodes);
        let feeders = outcomes.iter().flat_map(|outcome| &outcome.feeders);
        let traffic = shown
            .books
            .ports
            .iter()
            .map(pollux_app::ports::PortView::traffic);
        let (frames, bytes) = traffic.fold((0, 0), |(frames, bytes), traffic| {
            (frames + traffic.tx_packets, bytes + traffic.tx_bytes)
        });
        let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum();
        Self {
            end: ended.end,
            duration_s: ended.duration.as_secs_f64(),
            seed: plan.options.seed,
            settings: &plan.config,
            loops: plan.shares.len(),
            events,
            rate_hz: if seconds > 0.0 {
                handed.decided as f64 / seconds
            } else {
                0.0
            },
            flow: Flow {
                sent: counters.flow.sent,
                returned: counters.flow.returned,
                errors: counters.flow.errors,
                loops: counters.flow.loops,
                timeouts: counters.flow.timeouts,
            },
            columns: Columns {
                repeated: counters.columns_repeated,
            },
            nodes: node_reports(plan, outcomes, scheduler),
            feeders: feeders
                .enumerate()
                .map(|(id, feeder)| {
                    let missing = handed.missing.get(id).copied().unwrap_or_default();
                    FeederReport {
                        id,
                        fragments: handed.decided - missing,
                        missing,
                        transfers: feeder.counters.transfers,
                        dead: feeder.is_dead,
                    }
                })
                .collect(),
            payload: Payload {
                checked: nodes.clone().map(|node| node.checked).sum(),
                wrong: nodes.map(|node| node.wrong).sum(),
            },
            latency_us: Latency::new(shown.latency.percentiles(), shown.latency.sum()),
            messages: Messages {
                frames,
                bytes,
                left: ended.left,
                damaged: sum(|outcome| outcome.damaged),
                unsent: sum(|outcome| {
                    let unsent = outcome.unsent;
                    unsent.no_buffer + unsent.oversize + unsent.queue_full + unsent.no_member
                }),
                misrouted: sum(|outcome| outcome.misrouted),
            },
            ledger: shown.books.ledger.balance().into(),
            switch: switch.map(SwitchView::report),
            stall: scheduler.and_then(|s| s.stall).map(text),
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
        expect_complete(self.end, decided, self.stall)?;
        ensure!(
            lost == 0 && twice == 0 && in_order,
            "of {triggered} events {lost} were lost and {twice} decided twice{}",
            if in_order { "" } else { ", not in order" }
        );
        ensure!(
            built == triggered && decided == triggered,
            "{triggered} events were triggered, {built} built, {decided} decided"
        );
        let Payload { checked, wrong } = self.payload;
        ensure!(
            wrong == 0,
            "{wrong} of {checked} fragments differ from the mock-up words"
        );
        let left = self.messages.left;
        ensure!(left == 0, "{left} frames were sent and not taken");
        let expected = plan.options.events.filter(|_| self.end == "complete");
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
            "messages     {} frames, {} B; {} left, {} damaged, {} unsent",
            messages.frames, messages.bytes, messages.left, messages.damaged, messages.unsent
        )?;
        write!(
            out,
            "ledger       {} from the wire = {} delivered",
            self.ledger.from_wire, self.ledger.delivered
        )?;
        for (cause, frames) in &self.ledger.dropped {
            write!(out, " + {frames} {cause}")?;
        }
        writeln!(
            out,
            "{}",
            if self.ledger.balanced {
                ""
            } else {
                ": NOT BALANCED"
            }
        )
    }
}

fn node_reports(
    plan: &Plan,
    outcomes: &[Outcome],
    scheduler: Option<&SchedulerOutcome>,
) -> Vec<NodeReport> {
    let is_excluded = |id| scheduler.is_some_and(|s| s.excluded.get(id) == Some(&true));
    let nodes = outcomes.iter().flat_map(|outcome| &outcome.nodes);
    nodes
        .enumerate()
        .map(|(id, node)| NodeReport {
            id,
            column: plan.topology.column_of(id as u16).unwrap_or_default(),
            events: node.counters.events,
            excluded: is_excluded(id),
            dead: node.is_dead,
            suspended: node.suspended,
        })
        .collect()
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

/// Why no event leaves the scheduler.
fn text(stall: Stall) -> &'static str {
    match stall {
        Stall::Disabled => "the scheduler is disabled",
        Stall::NoFeeder => "all feeders are excluded",
        Stall::NoNode => "all nodes are excluded",
        Stall::Busy => "no receive buffer that may be next is free",
    }
}

/// What is wrong with a run that did not end as asked.
fn expect_complete(end: &str, decided: u64, stall: Option<&str>) -> Result<()> {
    if end == "stalled" {
        bail!(
            "no event was decided for {} s or longer after {decided}: {}",
            PATIENCE.as_secs(),
            stall.unwrap_or("a member does not answer")
        );
    }
    Ok(())
}
