//! The program `image-stream`: its command line, from the first option to the exit status.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::cli::RunOptions;
use crate::{control, manage, offline, run};

/// Images of a detector: received, processed online and written; or the same stages on files
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit status: 0 when the run ended as asked and its loss ledger balances, 1 when it failed,\n\
                  2 on a wrong option, configuration or port spec."
)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    run: RunOptions,
}

#[derive(Subcommand)]
enum Command {
    Compress(offline::compress::Args),
    Convert(offline::convert::Args),
    Integrate(offline::integrate::Args),
    Peaks(offline::peaks::Args),
    Manage(manage::Args),
}

/// The command line.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program; its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    pollux_app::log_to_stderr(if cli.run.quiet { "error" } else { "info" });
    pollux_app::exit(match &cli.command {
        None => match &cli.run.control {
            Some(address) => control::keep(&cli.run, address),
            None => run::run(&cli.run),
        },
        Some(Command::Compress(args)) => offline::compress::run(args),
        Some(Command::Convert(args)) => offline::convert::run(args),
        Some(Command::Integrate(args)) => offline::integrate::run(args),
        Some(Command::Manage(args)) => manage::run(args),
        Some(Command::Peaks(args)) => offline::peaks::run(args),
    })
}
