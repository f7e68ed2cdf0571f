//! `pollux doctor`: finds settings of the machine that disturb polling, with remedies.

mod clock;
mod cores;
mod devices;
mod finding;
mod interfaces;
mod interrupts;
mod jitter;
mod machine;
mod memory;
mod report;
mod rights;
mod settings;
#[cfg(test)]
mod testing;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use pollux_app::{Cpus, Failure, ReportOptions, seconds_up_to};

use self::finding::Finding;
use self::machine::Machine;
use self::report::{Report, Topic};
use pollux_machine::Sys;

/// Find settings of the machine that disturb polling, with remedies
///
/// Checks memory, CPUs, interrupts, clocks, devices, interfaces and permissions, and changes
/// nothing. Each finding has a level:
///
/// ok: no problem.
/// note: worth knowing, or could not be checked.
/// warn: costs speed, or increases tail latencies.
/// bad: something does not work, or deadlines will be missed.
///
/// The remedy is below the finding: a command to run, parameters to boot with, or an option to use.
/// If this machine has no remedy, a command shows more details.
///
/// Needs no privilege; checks that only root can make are noted. In a container it sees the
/// container's view. Commands are for a root shell.
///
/// As JSON: {schema: 1, cores, levels: {level: count}, findings: [{topic, check, subject, level,
/// found, why, mend: {run | boot | option | look: text}}]}; subject and mend only where there is one.
///
/// Example: pollux doctor --cores 2,3 --jitter 1
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 when nothing is bad, 1 when something is or it failed, 2 on a wrong option."
)]
pub(crate) struct Args {
    #[command(flatten)]
    report: ReportOptions,

    /// CPUs for the loops [default: the isolated ones, or all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<Cpus>,

    /// Also measure the interruptions of each of these CPUs
    ///
    /// Takes this time (a number of seconds, or a time like 250ms), or until a signal, and keeps
    /// all of them busy: do not use it during a run that matters.
    #[arg(long, value_name = "TIME", value_parser = measuring_time, conflicts_with = "root")]
    jitter: Option<Duration>,

    /// Read /proc and /sys below DIR instead: the host's, seen from a container, or a copy
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        hide_default_value = true
    )]
    root: PathBuf,
}

/// Parses the duration of the jitter measurement.
fn measuring_time(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_mins(10);
    seconds_up_to(text, LONGEST)
}

/// A group of checks. It never fails: an impossible check is a finding too.
type Examine = fn(&Machine) -> Vec<Finding>;

/// Groups of checks, in the order of the report.
const TOPICS: &[(&str, &[Examine])] = &[
    (
        "memory",
        &[memory::hugepages, memory::memlock, settings::swap],
    ),
    (
        "cores",
        &[
            cores::allowed,
            cores::isolation,
            cores::governor,
            cores::idle_states,
            cores::smt,
        ],
    ),
    ("interrupts", &[interrupts::balance, interrupts::affinity]),
    (
        "clock",
        &[
            clock::tsc,
            clock::source,
            clock::of_loops,
            clock::hypervisor,
        ],
    ),
    ("kernel", &[settings::examine]),
    (
        "devices",
        &[
            devices::drivers,
            devices::iommu,
            devices::groups,
            devices::vfio,
            devices::nodes,
            devices::links,
        ],
    ),
    ("interfaces", &[interfaces::examine]),
    ("rights", &[rights::examine]),
];

/// Examines the machine, and prints the report.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let reports = args.report.outputs()?.ready()?;
    let mut asked = Cpus::of(&args.cores);
    asked.sort_unstable();
    asked.dedup();
    let asked = (!asked.is_empty()).then_some(asked);
    let chosen = asked.is_some();
    let machine = Machine::new(Sys::new(&args.root), asked);
    if chosen {
        machine.expect_cores().map_err(Failure::Usage)?;
    }
    let topic = |(name, checks): &(&'static str, &[Examine])| Topic {
        name,
        findings: checks.iter().flat_map(|check| check(&machine)).collect(),
    };
    let mut topics: Vec<_> = TOPICS.iter().map(topic).collect();
    if let Some(span) = args.jitter {
        let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
        let findings = jitter::measure(&machine, span, &stop)?;
        topics.push(Topic {
            name: "jitter",
            findings,
        });
    }
    let report = Report::new(&machine.cores, topics);
    report.tell(reports)?;
    match report.bad() {
        0 => Ok(()),
        1 => Err(anyhow!("1 finding is bad").into()),
        n => Err(anyhow!("{n} findings are bad").into()),
    }
}
