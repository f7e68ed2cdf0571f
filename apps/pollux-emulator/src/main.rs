//! `pollux-emulator`: emulated readout boards and image detectors as a program of its own.

mod cli;
mod fault_options;
mod images_command;
mod job;
mod page;
mod report;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let quiet = match &cli.command {
        Some(cli::Command::Images(images)) => images.quiet,
        None => cli.quiet,
    };
    pollux_app::log_to_stderr(if quiet { "error" } else { "info" });
    pollux_app::exit(match &cli.command {
        Some(cli::Command::Images(images)) => images_command::run(images, cli.clock),
        None => job::run(&cli),
    })
}
