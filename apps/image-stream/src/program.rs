//! The program `image-stream`: its command line, from the first option to the exit status.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::manage;

/// Images of a detector: received, processed online and written; or the same stages on files
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Manage(manage::Args),
}

/// Runs the program; its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    pollux_app::log_to_stderr("warn");
    pollux_app::exit(match &cli.command {
        Command::Manage(args) => manage::run(args),
    })
}
