//! Execution of a run: open, launch, watch, end in order, report.

use anyhow::{Context as _, Result};
use pollux_app::http::Listeners;
use pollux_farm::carrier::ETHERNET;

use super::children::Children;
use super::layout::Layout;
use super::link::{LinkName, Ports};
use super::plan::Plan;
use super::report::{Ended, Report};
use super::running::{Running, Stopped};
use super::veths::Veths;
use super::watch::Watched;

/// Executes a run, in this process or with others.
///
/// # Errors
/// What could not be opened, or did not end in order.
pub fn execute(plan: &Plan, link: LinkName) -> Result<()> {
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let reports = plan.reports.ready()?;
    let folder = tempfile::tempdir().context("a folder for the sockets of the processes")?;
    let mut veths = None;
    let (mut members, mut switch) = (Vec::new(), Vec::new());
    if let Layout::Processes(_) = plan.layout {
        let names: Vec<String> = (0..plan.shares.len())
            .map(|number| format!("process{number}"))
            .collect();
        let ports = match &plan.config.ports {
            Some(ports) => ports.clone(),
            None => Ports::over(link, folder.path(), plan.max_frame())?,
        };
        if plan.config.ports.is_none() && link == LinkName::AfXdp {
            veths = Some(Veths::new(&names, plan.max_frame() - ETHERNET)?);
        }
        for name in &names {
            members.push(ports.member(name));
            switch.push(ports.switch(name)?);
        }
    }
    let listeners = Listeners::bind(plan.asked.metrics.address(), plan.asked.http)?;
    let running = match &veths {
        Some(veths) => veths.switch().within(|| Running::open(plan, &switch))?,
        None => Running::open(plan, &switch)?,
    };
    let mut children = Children::default();
    if !members.is_empty() {
        let folder = folder.path();
        children = Children::start(plan, &members, folder, veths.as_ref(), &running.shown)?;
    }
    // Not before: child processes may run where this thread may.
    let monitoring = running.monitor(plan, listeners)?;
    let mut watched = Watched {
        plan,
        running: &running,
        children: &mut children,
    };
    let end = watched.watch(monitoring, &stop);
    let left = watched.drain();
    let is_asked = running.control.enough.is_set();
    let shown = std::sync::Arc::clone(&running.shown);
    let switched = running.switched.clone();
    let Stopped {
        mut part,
        duration,
        ports,
    } = running.end()?;
    children.end().into_iter().for_each(|other| part.add(other));
    let ended = Ended {
        end,
        is_asked,
        duration,
        left,
    };
    let report = Report::new(plan, part, children.report(), ended, switched.as_ref());
    reports.tell(&report, |out| report.write(out))?;
    children.check()?;
    ports.context("the run ended, but not cleanly")?;
    shown.books.ledger.check()?;
    report.check(plan)
}
