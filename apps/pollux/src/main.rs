//! The toolbox: each sub-command is a file or folder of its own beside this one.

mod exit;
mod ports;
mod streams;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use pollux_pmd::Registry;
use tracing_subscriber::EnvFilter;

/// Tools for ports that are polled: NICs, capture files, wires inside the process.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit status: 0 when the run ended as asked and its loss ledger balances, 1 when it failed,\n\
                  2 on a wrong option or port spec.\n\
                  Environment: RUST_LOG chooses what is logged (default: warn)."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Streams(streams::Args),
}

fn main() -> ExitCode {
    let registry = Registry::builtin();
    // The drivers are known to the registry alone, so the help is completed at run time.
    let specs = ports::help(&registry);
    let cli = Cli::command().mut_subcommands(|command| command.after_help(specs.clone()));
    let cli = Cli::from_arg_matches(&cli.get_matches()).unwrap_or_else(|error| error.exit());

    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();

    let result = match cli.command {
        Command::Streams(args) => streams::run(&args, &registry),
    };
    exit::report(result)
}
