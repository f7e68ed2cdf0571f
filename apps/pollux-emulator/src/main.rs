//! `pollux-emulator`: the readout boards as a program of its own.

mod cli;
mod job;
mod page;
mod report;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    pollux_app::log_to_stderr(if cli.quiet { "error" } else { "info" });
    pollux_app::exit(job::run(&cli))
}
