//! Command-line toolbox of Pollux: the program `pollux` as a library. Each sub-command is a file or folder
//! beside this one.

mod bench;
mod bind;
mod capture;
mod doctor;
mod events;
mod forward;
mod frame_budget;
mod generate;
mod live;
mod payload;
mod physics;
mod ports;
mod promisc;
mod rdma;
mod replay;
mod scale;
mod stolen_time;
mod streams;
mod supervisor;
mod switch;
mod ticker;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use pollux_app::ClockOption;
use pollux_pmd::Registry;

/// Tools for poll-mode ports: NICs, capture files, links inside the process
#[derive(Parser)]
#[command(
    version,
    after_help = "Environment: RUST_LOG chooses what is logged (default: warn).\n\n\
                  Exit status: 0 when the run ended as asked and its loss ledger balances, 1 when it failed,\n\
                  2 on a wrong option or port spec."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    clock: ClockOption,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Args),
    Bind(bind::Args),
    Capture(capture::Args),
    Doctor(doctor::Args),
    Events(events::Args),
    Forward(forward::Args),
    Generate(generate::Args),
    Live(live::Args),
    Physics(physics::Args),
    Ports(ports::Args),
    Rdma(rdma::Args),
    Replay(replay::Args),
    Streams(streams::Args),
    Switch(switch::Args),
    Unbind(bind::UnbindArgs),
    Verify(verify::Args),
}

/// Last part of the help of a sub-command with ports.
const EXIT_STATUS: &str = "\
Exit status: 0 when the run ended as asked and its loss ledger balances, 1 when it failed, 2 on a
wrong option or port spec.";

/// The command line, with the port drivers of this build in its help.
#[must_use]
pub fn command() -> clap::Command {
    with_drivers(&pollux_app::ports::registry())
}

/// Only the registry lists the drivers, so the help is completed at run time. A sub-command with an
/// after-help of its own takes no ports.
fn with_drivers(registry: &Registry) -> clap::Command {
    let specs = format!("{}\n\n{EXIT_STATUS}", pollux_app::ports::help(registry));
    let complete = |command: clap::Command| match command.get_after_help() {
        None => command.after_help(specs.clone()),
        Some(_) => command,
    };
    Cli::command().mut_subcommands(|command| {
        if command.has_subcommands() {
            command.mut_subcommands(complete)
        } else {
            complete(command)
        }
    })
}

/// Runs the program; its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let registry = pollux_app::ports::registry();
    let matches = with_drivers(&registry).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());

    pollux_app::log_to_stderr("warn");
    let done = cli.clock.select().and_then(|()| match cli.command {
        Command::Bench(args) => bench::run(&args, &registry),
        Command::Bind(args) => bind::bind(&args),
        Command::Capture(args) => capture::run(&args, &registry),
        Command::Doctor(args) => doctor::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Forward(args) => forward::run(&args, &registry),
        Command::Generate(args) => generate::run(&args, &registry),
        Command::Live(args) => live::run(&args),
        Command::Physics(args) => physics::run(&args),
        Command::Ports(args) => ports::run(&args, &registry),
        Command::Rdma(args) => rdma::run(&args, &registry),
        Command::Replay(args) => replay::run(&args, &registry),
        Command::Streams(args) => streams::run(&args, &registry),
        Command::Switch(args) => switch::run(&args, &registry),
        Command::Unbind(args) => bind::unbind(&args),
        Command::Verify(args) => verify::run(&args, &registry),
    });
    pollux_app::exit(done)
}
