//! Execution of one run, from its ports to its report.

use std::sync::Arc;

use anyhow::{Result, ensure};
use pollux_app::Reports;
use pollux_app::http::Listeners;
use pollux_pmd::lcore::StopFlag;

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::counters::Counters;
use crate::decision_output::{DecisionHandler, DecisionOutput};
use crate::monitoring::Monitoring;
use crate::outputs::Outputs;
use crate::plan::Plan;
use crate::registries::Registries;
use crate::report::Report;
use crate::run;
use crate::setup::Setup;
use crate::supervisor::Host;

/// A run that was opened and has ended.
pub struct Execution {
    pub report: Report,
    /// Decisions that the handler missed because it was too slow.
    pub decisions_missed: u64,
    /// The report is in its files, where there are any.
    pub is_reported: bool,
    /// The first failure at the end: of files, workers, ports, answers or the ledger.
    pub result: Result<()>,
}

/// Stops the loops of a run if its supervisor panics; otherwise they would continue.
struct StopOnPanic([StopFlag; 2]);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().for_each(StopFlag::stop);
        }
    }
}

/// Reaches the other sides of outputs, opens the resources of the plan, runs it to its end, and writes the report. Calls `decisions`
/// with each decision, and `begun` when all resources are open.
pub fn execute(
    (cli, plan): (&Cli, &Plan),
    outputs: &Outputs,
    registries: &Registries,
    clock: RunClock,
    host: Host<'_>,
    decisions: Option<DecisionHandler>,
    begun: &mut dyn FnMut(&Arc<Counters>),
) -> Result<Execution> {
    // Before anything is opened. A run at a control socket begins long after the program.
    for output in &plan.outputs {
        output.plan.reach()?;
    }
    // Neither leaves anything behind if the run cannot begin, as the files of events would.
    let listeners = Listeners::bind(cli.metrics.address(), cli.http)?;
    let files = [&outputs.report, &outputs.json].into_iter().flatten();
    let reports = Reports::new(outputs.prints_json, files)?;
    let mut setup = Setup::new(cli, plan, outputs, registries, clock, &host.stop)?;
    let monitoring = Monitoring::open(listeners, (cli, plan), &setup, outputs.run)?;
    let taps = &mut setup.trigger.sink.taps;
    let decisions = decisions.map(|handler| DecisionOutput::new(handler, taps));
    let (decisions, counts) = decisions.transpose()?.unzip();
    begun(&setup.counters);
    let _guard = StopOnPanic([host.stop.clone(), setup.trigger.stop.clone()]);
    let prints_report = host.prints_report;
    let stages = &registries.stages;
    let (report, end) = run::run(cli, plan, stages, setup, (monitoring, decisions), host)?;
    let printed = if prints_report {
        reports.print(&report, |out| out.write_all(report.to_text().as_bytes()))
    } else {
        Ok(())
    };
    let written = reports.write(&report);
    let balanced = balanced(&report);
    Ok(Execution {
        decisions_missed: counts.map_or(0, |counts| counts.queue.missed.get()),
        is_reported: written.is_ok(),
        result: written.and(end).and(printed).and(balanced),
        report,
    })
}

fn balanced(report: &Report) -> Result<()> {
    ensure!(
        report.counted.ledger.balanced,
        "the loss ledger does not balance: see the report"
    );
    Ok(())
}
