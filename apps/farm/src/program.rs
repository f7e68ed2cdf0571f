//! The program `farm`: its command line, from the first option to the exit status.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{run, sim};

/// Event building at megahertz rates by scheduled traffic
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit status: 0 when the command ended as asked, 1 when it failed, 2 on a wrong option or configuration."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::RunOptions),
    Scheduler(run::SchedulerOptions),
    Feeder(run::FeederOptions),
    Node(run::NodeOptions),
    Results(run::ResultOptions),
    Switch(run::SwitchOptions),
    #[command(hide = true)]
    Part(run::PartOptions),
    Sim(sim::Args),
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
    pollux_app::log_to_stderr(match &cli.command {
        Command::Run(options) if options.quiet => "error",
        Command::Scheduler(options) if options.member.quiet => "error",
        Command::Feeder(options) if options.member.quiet => "error",
        Command::Node(options) if options.member.quiet => "error",
        Command::Results(options) if options.member.quiet => "error",
        Command::Switch(options) if options.quiet => "error",
        // Its parent warns for all.
        Command::Part(_) => "error",
        _ => "warn",
    });
    pollux_app::exit(match cli.command {
        Command::Run(options) => run::run(&options),
        Command::Scheduler(options) => run::run_members(&options),
        Command::Feeder(options) => run::run_members(&options),
        Command::Node(options) => run::run_members(&options),
        Command::Results(options) => run::run_members(&options),
        Command::Part(options) => run::run_members(&options),
        Command::Switch(options) => run::run_switch(&options),
        Command::Sim(args) => sim::run(&args),
    })
}
