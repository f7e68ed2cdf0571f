//! `pollux rdma`: endpoints for remote memory access.

mod bench;
mod counts;
mod mtu;
mod play;
mod tool;

use clap::Subcommand;
use pollux_app::Failure;
use pollux_pmd::Registry;

/// Access the memory of other machines, and let them access this one's (RDMA over Ethernet, RoCEv2)
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Bench(bench::Args),
    Ping(tool::PingArgs),
    Play(play::Args),
    Serve(tool::ServeArgs),
}

/// Runs the sub-command.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    match &args.command {
        Command::Bench(args) => bench::run(args, registry),
        Command::Ping(args) => tool::ping(args, registry),
        Command::Play(args) => play::run(args, registry),
        Command::Serve(args) => tool::serve(args, registry),
    }
}
