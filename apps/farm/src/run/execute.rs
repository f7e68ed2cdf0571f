//! Execution of a run: open, launch, watch, end in order, report.

use anyhow::{Context as _, Result};

use super::children::Children;
use super::layout::Layout;
use super::link::{LinkName, Ports};
use super::plan::Plan;
use super::report::{Ended, Report};
use super::running::{Running, Stopped};
use super::watch::Watched;

/// Executes a run, in this process or with others.
///
/// # Errors
/// What could not be opened, or did not end in order.
pub fn execute(plan: &Plan, link: LinkName) -> Result<()> {
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let reports = plan.reports.ready()?;
    let folder = tempfile::tempdir().context("a folder for the sockets of the processes")?;
    let (mut members, mut switch) = (Vec::new(), Vec::new());
    if let Layout::Processes(_) = plan.layout {
        let ports = match &plan.config.ports {
            Some(ports) => ports.clone(),
            None => Ports::over(link, folder.path(), plan.max_frame())?,
        };
        for number in 0..plan.shares.len() {
            let name = format!("process{number}");
            members.push(ports.member(&name));
            switch.push(ports.switch(&name)?);
        }
    }
    let running = Running::open(plan, &switch)?;
    let mut children = Children::default();
    if !members.is_empty() {
        children = Children::start(plan, &members, folder.path(), &running.counts)?;
    }
    // Not before: child processes may run where this thread may.
    let monitoring = running.monitor(plan)?;
    let mut watched = Watched {
        plan,
        running: &running,
        children: &mut children,
    };
    let end = watched.watch(monitoring, &stop);
    let left = watched.drain();
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
