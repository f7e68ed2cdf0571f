//! The L0 trigger: frames in, decisions out, nothing lost.

#![allow(unreachable_pub)] // a program has no outside

mod boards;
mod cli;
mod clock;
mod config;
mod control;
mod counters;
mod crew;
mod display;
mod execution;
mod eyes;
mod files;
mod groups;
#[cfg_attr(not(feature = "hdf5"), path = "no_h5.rs")]
mod h5;
mod hearing;
mod keeper;
mod look;
mod outlet;
mod outputs;
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
mod session;
mod setup;
mod side;
mod summary;
mod trigger;
mod worker;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser as _;
use pollux_pmd::{Registry, TscClock};
use pollux_program::{Failure, Service};

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::config::TriggerConfig;
use crate::outputs::{Naming, Outputs};
use crate::plan::Plan;
use crate::run::Host;

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
    let naming = Naming::of(cli).map_err(Failure::Usage)?;
    // Those of runs that are started later have their names then.
    let outputs = match cli.runs.control {
        None => naming.name(cli.runs.run).map_err(Failure::Usage)?,
        Some(_) => Outputs::default(),
    };
    if cli.check {
        look::look(cli, &plan, &registry)?;
        return Ok(pollux_program::print(format_args!("{plan}\n"))?);
    }
    #[cfg(feature = "card-sim")]
    if plan.is_simulated {
        return Ok(execute(
            cli,
            &plan,
            (naming, &outputs),
            &registry,
            simulated,
        )?);
    }
    let clock = RunClock::Tsc(TscClock::get());
    Ok(execute(cli, &plan, (naming, &outputs), &registry, clock)?)
}

/// Prints the configuration in force, all that it leaves out included.
fn print_config(cli: &Cli) -> Result<(), Failure> {
    let config = TriggerConfig::of(cli.config.as_deref());
    let whole = config.and_then(|config| config.in_force());
    let text = toml::to_string(&whole.map_err(Failure::Usage)?).context("--print-config")?;
    Ok(pollux_program::print(text)?)
}

fn execute(
    cli: &Cli,
    plan: &Plan,
    (naming, outputs): (Naming, &Outputs),
    registry: &Registry,
    clock: RunClock,
) -> Result<()> {
    let quit = pollux_program::stop_on_signals().context("cannot handle signals")?;
    let reload = pollux_program::reload_on_hangup().context("cannot handle signals")?;
    let mut service = Service::from_env();
    let host = Host {
        run: outputs.run,
        stop: quit.clone(),
        quit,
        reload,
        service: &mut service,
        is_alone: true,
    };
    let ended = match &cli.runs.control {
        None => execution::one(cli, plan, outputs, registry, clock, host, &mut |_| {}).map(drop),
        Some(path) => session::keep(cli, plan, path, naming, &clock, host),
    };
    service.stopping();
    ended
}
