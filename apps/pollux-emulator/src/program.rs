//! The program `pollux-emulator`: its command line, from the first option to the exit status.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::cli::{Cli, Command};
use crate::{images_command, job};

/// The command line.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the program; its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let quiet = match &cli.command {
        Some(Command::Images(images)) => images.quiet,
        None => cli.quiet,
    };
    pollux_app::log_to_stderr(if quiet { "error" } else { "info" });
    pollux_app::exit(match &cli.command {
        Some(Command::Images(images)) => images_command::run(images, cli.clock),
        None => job::run(&cli),
    })
}
