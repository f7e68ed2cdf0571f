//! The L0 trigger: frames in, decisions out, nothing lost.

#![allow(unreachable_pub)] // a program has no outside

mod boards;
mod cli;
mod clock;
mod config;
mod counters;
mod crew;
mod display;
mod eyes;
mod files;
mod groups;
#[cfg_attr(not(feature = "hdf5"), path = "no_h5.rs")]
mod h5;
mod hearing;
mod keeper;
mod look;
mod outlet;
mod page;
mod plan;
mod receiver;
mod recorder;
mod reference;
mod reload;
mod replay;
mod report;
mod run;
mod scribe;
mod setup;
mod side;
mod summary;
mod trigger;
mod worker;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use pollux_pmd::{Registry, TscClock};
use pollux_program::{Failure, ReportFile};

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::config::TriggerConfig;
use crate::eyes::Eyes;
use crate::plan::Plan;
use crate::setup::Setup;

/// What is logged with `--quiet`: the rules by which events are accepted are not changed in silence.
const QUIET: &str = "error,l0_trigger::reload=info";

fn main() -> ExitCode {
    let cli = Cli::parse();
    pollux_program::log_to_stderr(if cli.quiet { QUIET } else { "info" });
    pollux_program::exit(job(&cli))
}

fn job(cli: &Cli) -> Result<(), Failure> {
    if let Some(form) = cli.print_schema {
        return Ok(pollux_program::print(reference::reference(form))?);
    }
    if cli.print_config {
        return print_config(cli);
    }
    cli.clock.select()?;
    #[cfg_attr(
        not(feature = "card-sim"),
        expect(unused_mut, reason = "all are built in")
    )]
    let mut registry = pollux_program::ports::registry();
    #[cfg(feature = "card-sim")]
    let simulated = RunClock::Simulated(pollux_cosim::port::register(&mut registry));
    let plan = Plan::new(cli, &registry).map_err(Failure::Usage)?;
    if cli.check {
        look::look(cli, &plan, &registry)?;
        return Ok(pollux_program::print(format_args!("{plan}\n"))?);
    }
    #[cfg(feature = "card-sim")]
    if plan.is_simulated {
        return Ok(execute(cli, &plan, &registry, simulated)?);
    }
    let clock = RunClock::Tsc(TscClock::get());
    Ok(execute(cli, &plan, &registry, clock)?)
}

/// Prints the configuration in force, all that it leaves out included.
fn print_config(cli: &Cli) -> Result<(), Failure> {
    let config = TriggerConfig::of(cli.config.as_deref());
    let whole = config.and_then(|config| config.in_force());
    let text = toml::to_string(&whole.map_err(Failure::Usage)?).context("--print-config")?;
    Ok(pollux_program::print(text)?)
}

fn execute(cli: &Cli, plan: &Plan, registry: &Registry, clock: RunClock) -> Result<()> {
    let stop = pollux_program::stop_on_signals().context("cannot handle signals")?;
    let reload = pollux_program::reload_on_hangup().context("cannot handle signals")?;
    let setup = Setup::new(cli, plan, registry, clock, &stop)?;
    let eyes = Eyes::open(cli, plan, &setup)?;
    // Only now: a run that never was leaves no report.
    let file = cli.report.as_deref().map(ReportFile::create).transpose()?;
    let (report, end) = run::run(cli, plan, setup, eyes, &stop, reload)?;
    let printed = pollux_program::print(report.to_text());
    file.map_or(Ok(()), |file| file.write(&report))?;
    end?;
    printed?;
    ensure!(
        report.counted.ledger.balanced,
        "the loss ledger does not balance: see the report"
    );
    Ok(())
}
