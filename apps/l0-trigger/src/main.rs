//! The L0 trigger: frames in, decisions out, nothing lost.

#![allow(unreachable_pub)] // a program has no outside

mod cli;
mod config;
mod outlet;
mod plan;
mod receiver;
mod recorder;
mod replay;
mod report;
mod run;
mod setup;
mod side;
mod summary;
mod trigger;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{PortError, Registry};
use signal_hook::consts::{SIGINT, SIGTERM};
use tracing_subscriber::EnvFilter;

use crate::cli::Cli;
use crate::plan::Plan;
use crate::setup::Setup;

/// Bad usage or configuration; nothing was opened.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let level = if cli.quiet { "error" } else { "info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
    let registry = Registry::builtin();
    let plan = match Plan::new(&cli, &registry) {
        Ok(plan) => plan,
        Err(error) => return fail(&error, USAGE),
    };
    if cli.check {
        println!("{plan}");
        return ExitCode::SUCCESS;
    }
    match execute(&cli, &plan, &registry) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let usage = error.downcast_ref().is_some_and(PortError::is_usage);
            fail(&error, if usage { USAGE } else { 1 })
        }
    }
}

fn fail(error: &anyhow::Error, status: u8) -> ExitCode {
    eprintln!("l0-trigger: {error:#}");
    ExitCode::from(status)
}

fn execute(cli: &Cli, plan: &Plan, registry: &Registry) -> Result<()> {
    let stop = StopFlag::new();
    for signal in [SIGINT, SIGTERM] {
        // A second signal ends a program that does not come to its end.
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.shared())?;
        signal_hook::flag::register(signal, stop.shared())?;
    }
    let setup = Setup::new(cli, plan, registry, &stop)?;
    // Now, so that a path that cannot be written is told before the run, not after it.
    let file = match &cli.report {
        Some(path) => Some(File::create(path).with_context(|| named(path))?),
        None => None,
    };
    let (report, end) = run::run(cli, plan, setup, &stop)?;
    print!("{}", report.to_text());
    if let (Some(mut file), Some(path)) = (file, &cli.report) {
        let json = serde_json::to_string_pretty(&report)? + "\n";
        file.write_all(json.as_bytes())
            .with_context(|| named(path))?;
    }
    end?;
    ensure!(
        report.ledger.balanced,
        "the loss ledger does not balance: see the report"
    );
    Ok(())
}

fn named(report: &Path) -> String {
    format!("--report {}", report.display())
}
