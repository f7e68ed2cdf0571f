//! A process with some members of a farm: one that a user starts, or a part of `farm run`.

use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use pollux_app::http::Listeners;
use pollux_app::{Failure, user_message};
use pollux_pmd::lcore::StopFlag;
use pollux_switch::SwitchReport;
use serde::Serialize;

use super::asked::Asked;
use super::children::Children;
use super::config::FarmConfig;
use super::figures::Answered;
use super::layout::Layout;
use super::link::{self, Ports};
use super::member_options::{
    FeederOptions, MemberOptions, NodeOptions, PartOptions, ResultOptions, SchedulerOptions,
    SwitchOptions,
};
use super::orders::{self, Answer, State};
use super::part::Part;
use super::plan::{Plan, reports};
use super::report::{expect_complete, judge};
use super::running::{Running, Stopped};
use super::shares::Share;
use super::watch::{ROUND, Watched};

/// A process with some members of a farm, as the command line asks for it.
pub struct Job<'a> {
    options: &'a MemberOptions,
    share: Share,
    asked: Asked,
    /// A parent writes orders to standard input.
    has_parent: bool,
}

impl<'a> Job<'a> {
    fn new(options: &'a MemberOptions, share: Share) -> Self {
        Self {
            options,
            share,
            asked: options.asked(),
            has_parent: false,
        }
    }
}

impl<'a> From<&'a SchedulerOptions> for Job<'a> {
    fn from(options: &'a SchedulerOptions) -> Self {
        let scheduler = true;
        let share = Share {
            scheduler,
            ..Share::default()
        };
        let mut job = Self::new(&options.member, share);
        job.asked.events = options.events;
        job
    }
}

impl<'a> From<&'a FeederOptions> for Job<'a> {
    fn from(options: &'a FeederOptions) -> Self {
        let feeders = options.id.0.clone();
        let share = Share {
            feeders,
            ..Share::default()
        };
        Self::new(&options.member, share)
    }
}

impl<'a> From<&'a NodeOptions> for Job<'a> {
    fn from(options: &'a NodeOptions) -> Self {
        let nodes = options.id.0;
        let share = Share {
            nodes,
            ..Share::default()
        };
        Self::new(&options.member, share)
    }
}

impl<'a> From<&'a ResultOptions> for Job<'a> {
    fn from(options: &'a ResultOptions) -> Self {
        let results = true;
        let share = Share {
            results,
            ..Share::default()
        };
        Self::new(&options.member, share)
    }
}

impl<'a> From<&'a PartOptions> for Job<'a> {
    fn from(options: &'a PartOptions) -> Self {
        let mut job = Self::new(&options.member, options.members.clone());
        job.asked.events = options.events;
        job.asked.kill.clone_from(&options.kill);
        job.has_parent = true;
        job
    }
}

/// Runs the members of a process.
pub fn run<'a>(job: impl Into<Job<'a>>) -> Result<(), Failure> {
    let Job {
        options,
        share,
        asked,
        has_parent,
    } = job.into();
    let config = FarmConfig::read(&options.config).context("--config");
    let config = config.map_err(Failure::Usage)?;
    options.clock.select()?;
    let port = match (&options.port, &config.ports) {
        (Some(port), _) => port.clone(),
        (None, Some(ports)) => ports.member(&link::name(&share)),
        (None, None) => return Err(no_ports(&options.config)),
    };
    let cores: Vec<usize> = options.core.into_iter().collect();
    let layout = Layout::Part(share);
    let plan = reports(&options.report)
        .and_then(|reports| Plan::new(asked, config, layout, &cores, reports));
    let plan = plan.map_err(Failure::Usage)?;
    if has_parent {
        Ok(obey(&plan, port)?)
    } else {
        Ok(by_hand(&plan, &[port])?)
    }
}

/// Runs the switch between processes.
pub fn run_switch(options: &SwitchOptions) -> Result<(), Failure> {
    let config = FarmConfig::read(&options.config).context("--config");
    let config = config.map_err(Failure::Usage)?;
    options.clock.select()?;
    let Some(ports) = config.ports.clone() else {
        return Err(no_ports(&options.config));
    };
    let asked = Asked {
        file: Some(options.config.clone()),
        duration: options.duration.duration,
        quiet: options.quiet,
        ..Asked::default()
    };
    let cores: Vec<usize> = options.core.into_iter().collect();
    let plan = reports(&options.report)
        .and_then(|reports| Plan::new(asked, config, Layout::Switch, &cores, reports));
    let plan = plan.map_err(Failure::Usage)?;
    let specs = |ports: &Ports| -> Result<Vec<String>> {
        let shares = plan.shares.iter();
        shares
            .map(|share| ports.switch(&link::name(share)))
            .collect()
    };
    let specs = specs(&ports).map_err(Failure::Usage)?;
    Ok(by_hand(&plan, &specs)?)
}

fn no_ports(config: &std::path::Path) -> Failure {
    Failure::Usage(anyhow::anyhow!(
        "{}: no port for this process; set `member` in [ports], or give --port",
        config.display()
    ))
}

/// Does what a parent says.
fn obey(plan: &Plan, port: String) -> Result<()> {
    let running = Running::open(plan, &[port])?;
    orders::obey(&running.control)?;
    // The first one says that the port is open.
    let (mut last, mut answered) = (None, Answered::default());
    while !running.control.stop.is_set() && !running.has_failed() {
        let traffic = running.traffic();
        let (sent, taken) = traffic.fold((0, 0), |(sent, taken), (tx, rx)| (sent + tx, taken + rx));
        let state = State {
            counts: running.counts.moment(),
            done: running.control.done.is_set(),
            sent,
            taken,
        };
        let changed = (last.as_ref() != Some(&state)).then(|| Answer::State(state.clone()));
        let figures = answered.next(running.views(), &running.shown.latency);
        let answers = changed.into_iter().chain(figures.map(Answer::Figures));
        if answers
            .map(|answer| orders::answer(&answer))
            .any(|answer| answer.is_err())
        {
            // The parent is gone: what is under way is of no use.
            break;
        }
        last = Some(state);
        std::thread::sleep(ROUND);
    }
    let Stopped { part, ports, .. } = running.end()?;
    orders::answer(&Answer::Part(Box::new(part)))?;
    ports.context("the process ended, but not cleanly")
}

/// A process that a user started, in its report.
#[derive(Serialize)]
struct MemberReport<'a> {
    end: &'static str,
    duration_s: f64,
    members: &'a str,
    #[serde(flatten)]
    part: Part,
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<SwitchReport>,
}

/// Runs until the events of its scheduler are decided, or until a signal.
fn by_hand(plan: &Plan, specs: &[String]) -> Result<()> {
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let reports = plan.reports.ready()?;
    let listeners = Listeners::bind(plan.asked.metrics.address(), plan.asked.http)?;
    let running = Running::open(plan, specs)?;
    // Whether the others are there is for their user to know.
    running.control.all_open.stop();
    let members = match &plan.layout {
        Layout::Part(share) => share.to_string(),
        _ => "switch".into(),
    };
    if !plan.asked.quiet {
        user_message(format_args!("{members}: runs, on {}", specs.join(" ")));
    }
    let monitoring = running.monitor(plan, listeners)?;
    let end = match &plan.layout {
        Layout::Part(share) if share.scheduler => {
            let mut watched = Watched {
                plan,
                running: &running,
                children: &mut Children::default(),
            };
            watched.watch(monitoring, &stop)
        }
        _ => wait(plan, &running, &stop),
    };
    let switch = running.switched.clone();
    let shown = std::sync::Arc::clone(&running.shown);
    let is_asked = running.control.enough.is_set();
    let Stopped {
        part,
        duration,
        ports,
    } = running.end()?;
    let end = part.left.scheduler.as_ref().map_or(end, |scheduler| {
        let is_decided = scheduler.decided_packs == scheduler.triggered_packs;
        let of = plan.asked.events;
        judge(end, is_decided, is_asked, scheduler.triggered, of)
    });
    let report = MemberReport {
        end,
        duration_s: duration.as_secs_f64(),
        members: &members,
        part,
        switch: switch.map(|switch| switch.report()),
    };
    reports.tell(&report, |out| report.write(out))?;
    ports.context("the process ended, but not cleanly")?;
    shown.books.ledger.check()?;
    report.check()
}

/// Waits for a signal or the end of a time.
fn wait(plan: &Plan, running: &Running, stop: &StopFlag) -> &'static str {
    let start = Instant::now();
    let limit = plan.asked.duration;
    while !stop.is_set() && limit.is_none_or(|limit| start.elapsed() < limit) {
        if running.has_failed() {
            return "failed";
        }
        std::thread::sleep(ROUND);
    }
    "stopped"
}

impl MemberReport<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{}: {}, {:.2} s",
            self.members, self.end, self.duration_s
        )?;
        let left = &self.part.left;
        if let Some(scheduler) = &left.scheduler {
            let flow = &scheduler.flow;
            writeln!(
                out,
                "scheduler    {} events triggered, {} of {} packs decided, {} sent again",
                scheduler.triggered,
                scheduler.decided_packs,
                scheduler.triggered_packs,
                scheduler.resent
            )?;
            writeln!(
                out,
                "flow         {} sent, {} returned, {} errors; nodes excluded: {:?}",
                flow.sent, flow.returned, flow.errors, scheduler.excluded
            )?;
        }
        if let Some(results) = &left.results {
            let handed = &results.handed;
            writeln!(
                out,
                "results      {} decided, {} accepted, {} incomplete, {} twice, {} not in order",
                handed.decided,
                handed.accepted,
                handed.incomplete,
                handed.twice,
                handed.out_of_order
            )?;
        }
        for feeder in &left.feeders {
            let (id, transfers) = (feeder.id, feeder.transfers);
            writeln!(out, "feeder {id:<5} {transfers} transfers")?;
        }
        for node in &left.nodes {
            writeln!(
                out,
                "node {:<7} {} events, {} fragments checked, {} wrong",
                node.id, node.events, node.checked, node.wrong
            )?;
        }
        if let Some(switch) = &self.switch {
            write!(out, "{switch}")?;
        }
        let part = &self.part;
        writeln!(
            out,
            "messages     {} handed over; {} frames, {} B; {} unsent, {} damaged",
            left.handed_over, part.frames, part.bytes, left.unsent, left.damaged
        )?;
        part.write_ledger(out)
    }

    /// Whether the process ended as it should.
    fn check(&self) -> Result<()> {
        let left = &self.part.left;
        if let Some(scheduler) = &left.scheduler {
            let (decided, triggered) = (scheduler.decided_packs, scheduler.triggered_packs);
            let why = scheduler.stall.as_deref();
            ensure!(
                decided == triggered,
                "{decided} of {triggered} packs were decided: {}",
                why.unwrap_or("a member does not answer")
            );
            // All that were triggered are decided, but not all that were asked for were triggered.
            expect_complete(self.end, scheduler.triggered, why)?;
        }
        if let Some(results) = &left.results {
            let handed = &results.handed;
            if handed.twice + handed.out_of_order + results.gaps > 0 {
                bail!(
                    "{} events were decided twice, {} not in order",
                    handed.twice,
                    handed.out_of_order
                );
            }
        }
        self.part.check()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::outcome::SchedulerOutcome;
    use super::*;

    #[test]
    fn a_scheduler_that_stalls_before_its_events_fails() {
        let check = |end| {
            let mut part = Part::default();
            part.left.scheduler = Some(SchedulerOutcome {
                triggered: 5,
                decided_packs: 5,
                triggered_packs: 5,
                ..SchedulerOutcome::default()
            });
            let report = MemberReport {
                end,
                duration_s: 1.0,
                members: "scheduler",
                part,
                switch: None,
            };
            report.check()
        };
        check("complete").unwrap();
        check("stopped").unwrap();
        let error = check("stalled").unwrap_err().to_string();
        assert!(
            error.contains("after 5: a member does not answer"),
            "{error}"
        );
    }
}
