//! One run from its ports to its report.

use std::sync::Arc;

use anyhow::{Result, ensure};
use pollux_pmd::Registry;
use pollux_program::Reports;

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::counters::Counters;
use crate::eyes::Eyes;
use crate::outputs::Outputs;
use crate::plan::Plan;
use crate::run::{self, Host};
use crate::setup::Setup;

/// Opens what the plan names, runs it to its end, and reports; why it ended. `begun` is told when
/// everything is open.
pub fn one(
    cli: &Cli,
    plan: &Plan,
    outputs: &Outputs,
    registry: &Registry,
    clock: RunClock,
    host: Host<'_>,
    begun: &mut dyn FnMut(&Arc<Counters>),
) -> Result<&'static str> {
    let setup = Setup::new(cli, plan, outputs, registry, clock, &host.stop)?;
    let eyes = Eyes::open(cli, plan, &setup, outputs.run)?;
    // Only now: a run that never was leaves no report.
    let files = [&outputs.report, &outputs.json].into_iter().flatten();
    let reports = Reports::new(outputs.prints_json, files)?;
    begun(&setup.counters);
    let (report, end) = run::run(cli, plan, setup, eyes, host)?;
    let printed = reports.print(&report, |out| out.write_all(report.to_text().as_bytes()));
    reports.write(&report)?;
    end?;
    printed?;
    ensure!(
        report.counted.ledger.balanced,
        "the loss ledger does not balance: see the report"
    );
    Ok(report.end)
}
