//! `pollux-emulator`: the readout boards as a program of its own.

mod cli;
mod job;
mod report;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let level = if cli.quiet { "error" } else { "info" };
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level)),
        )
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let (error, status) = match job::run(&cli) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(job::Failure::Usage(error)) => (error, 2),
        Err(job::Failure::Run(error)) => (error, 1),
    };
    eprintln!("error: {error:#}");
    ExitCode::from(status)
}
