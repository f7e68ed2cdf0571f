//! The suite that `scripts/qemu-test` runs in a virtual machine: ports on devices of their own,
//! wired back to back, or with the machine's kernel at the other end. The tests do not know which
//! driver they drive.

mod bench;
mod compare;
mod control;
mod machine;
mod nic;
mod plan;
mod reflector;
mod rig;
mod runner;
mod suite;
mod test;
mod wake;
mod wire;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use pollux_app::{exit, log_to_stderr};
use pollux_pmd::{ClockChoice, TscClock};

use crate::bench::Bench;
use crate::nic::Nic;
use crate::plan::{MACHINES, Plan};

/// Tests of ports inside a virtual machine; for scripts/qemu-test.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print each machine's tests: machine, test, what it shows
    List,
    /// Run tests, each in a process of its own, and report them to the host
    Run {
        machine: String,
        /// Those of these names; none: all
        tests: Vec<String>,
    },
    /// Forward between two NICs by turns with `pollux forward` and with testpmd
    Compare {
        rounds: u32,
        /// Of each turn
        seconds: f64,
    },
    /// Send the frames of a NIC back as they come, until standard input ends; say when it begins
    Reflect {
        machine: String,
        address: String,
        /// More of the port's, with a comma in front
        #[arg(default_value = "")]
        options: String,
    },
    /// Send frames to a port whose loop sleeps, from one that is wired to it; print how long it took
    Wake {
        from: String,
        to: String,
        #[arg(default_value_t = 1000)]
        count: usize,
    },
    /// Run one test here
    Test { machine: String, test: String },
}

fn plan(name: &str) -> anyhow::Result<&'static Plan> {
    let mut machines = MACHINES.iter();
    machines
        .find(|plan| plan.machine.name == name)
        .with_context(|| format!("no machine `{name}`"))
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List => {
            for plan in MACHINES {
                for test in plan.tests() {
                    println!("{}\t{}\t{}", plan.machine.name, test.name, test.shows);
                }
            }
            Ok(())
        }
        Command::Run {
            machine: name,
            tests,
        } => runner::run(plan(&name)?, &tests),
        Command::Compare { rounds, seconds } => {
            compare::compare(rounds, Duration::try_from_secs_f64(seconds)?)
        }
        Command::Wake { from, to, count } => wake::between(&from, &to, count),
        Command::Reflect {
            machine: name,
            address,
            options,
        } => reflector::reflect(&plan(&name)?.machine, &Nic { address }, &options),
        Command::Test {
            machine: name,
            test,
        } => {
            let plan = plan(&name)?;
            let found = plan.tests().find(|known| known.name == test);
            let test = found.with_context(|| format!("{name} has no test `{test}`"))?;
            (test.run)(&Bench::set_up(&plan.machine)?)
        }
    }
}

fn main() -> ExitCode {
    log_to_stderr("warn");
    let cli = Cli::parse();
    // The counter of a machine that QEMU emulates is the host's, whatever its kernel says.
    let selected = TscClock::select(ClockChoice::Tsc).map_err(Into::into);
    exit(selected.and_then(|()| run(cli.command)).map_err(Into::into))
}
