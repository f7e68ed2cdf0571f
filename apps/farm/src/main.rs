//! `farm`: event building at megahertz rates by scheduled traffic.

mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Event building at megahertz rates by scheduled traffic
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit status: 0 when the command ended as asked, 1 when it failed, 2 on a wrong option."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Sim(sim::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    pollux_app::log_to_stderr("warn");
    pollux_app::exit(match cli.command {
        Command::Sim(args) => sim::run(&args),
    })
}
