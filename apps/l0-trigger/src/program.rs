//! The program `l0-trigger`: its command line from the first option to the exit status.

use anyhow::{Context, Result};
use clap::CommandFactory as _;
use pollux_app::{Failure, Service};
use pollux_output::OutputError;

use crate::check;
use crate::cli::Cli;
use crate::clock::{Clocks, RunClock};
use crate::config::TriggerConfig;
use crate::decision_output::DecisionHandler;
use crate::execution;
use crate::outputs::{Naming, Outputs};
use crate::plan::Plan;
use crate::reference;
use crate::registries::Registries;
use crate::session;
use crate::supervisor::Host;

/// Log filter with `--quiet`: changes of the rules are still logged.
const QUIET: &str = "error,l0_trigger::reload=info";

/// The command line of the program `l0-trigger`, for its manual and for shells.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Executes the command line.
pub fn run(
    cli: &Cli,
    mut registries: Registries,
    decisions: Option<DecisionHandler>,
) -> Result<(), Failure> {
    pollux_app::log_to_stderr(if cli.quiet { QUIET } else { "info" });
    if let Some(form) = cli.print_schema {
        let text = reference::reference(form, &registries.stages);
        return Ok(pollux_app::print(text)?);
    }
    if cli.print_config {
        return print_config(cli, &registries);
    }
    cli.clock.select()?;
    let clocks = Clocks::new(&mut registries.ports);
    let plan = Plan::new(cli, &registries).map_err(Failure::Usage)?;
    let naming = Naming::of(cli).map_err(Failure::Usage)?.beside(&plan);
    // Runs that are started later have their names then.
    let outputs = match cli.runs.control {
        None => naming.name(cli.runs.run).map_err(Failure::Usage)?,
        Some(_) => Outputs::default(),
    };
    if cli.check {
        check::check(cli, &plan, &registries).map_err(failure)?;
        return Ok(pollux_app::print(format_args!("{plan}\n"))?);
    }
    // What is wrong with them is told at the start, not with the first run.
    for output in plan.outputs.iter().filter(|_| cli.runs.control.is_some()) {
        output.plan.reach().map_err(|error| failure(error.into()))?;
    }
    let clock = clocks.choose(plan.is_simulated);
    execute(
        (cli, &plan),
        (naming, &outputs),
        &registries,
        clock,
        decisions,
    )
    .map_err(failure)
}

/// The class of an error: that of an output says whether its spec is to be corrected.
fn failure(error: anyhow::Error) -> Failure {
    match error.downcast_ref::<OutputError>() {
        Some(of_output) if of_output.is_usage() => Failure::Usage(error),
        _ => error.into(),
    }
}

/// Prints the effective configuration, including defaults.
fn print_config(cli: &Cli, registries: &Registries) -> Result<(), Failure> {
    let stages = &registries.stages;
    let config = TriggerConfig::of(&cli.source(), stages);
    let whole = config.and_then(|config| config.in_force(stages));
    let text = toml::to_string(&whole.map_err(Failure::Usage)?).context("--print-config")?;
    Ok(pollux_app::print(text)?)
}

fn execute(
    (cli, plan): (&Cli, &Plan),
    (naming, outputs): (Naming, &Outputs),
    registries: &Registries,
    clock: RunClock,
    decisions: Option<DecisionHandler>,
) -> Result<()> {
    let signals = pollux_app::stop_or_reload_on_signals();
    let (quit, reload) = signals.context("cannot handle signals")?;
    let mut service = Service::from_env();
    let host = Host {
        run: outputs.run,
        stop: quit.clone(),
        quit,
        reload,
        service: &mut service,
        is_alone: true,
        prints_report: true,
    };
    let run = (cli, plan);
    let ended = match &cli.runs.control {
        None => execution::execute(
            run,
            outputs,
            registries,
            clock,
            host,
            decisions,
            &mut |_| {},
        )
        .and_then(|run| run.result),
        Some(path) => {
            let runs = (registries, decisions.as_ref());
            session::keep(run, path, runs, naming, &clock, host)
        }
    };
    service.stopping();
    ended
}
