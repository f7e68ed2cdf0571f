//! Options of the members of a farm that a user starts.

use std::path::PathBuf;

use pollux_app::{ClockOption, DurationOption, ReportOptions};

use super::asked::Asked;
use super::kill::Kill;
use super::shares::{Ids, NodeIds, Share};

/// Options of all members.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct MemberOptions {
    /// Configuration (TOML), the same for all members; [ports] names the port of each
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,

    /// Port of this process [default: that of [ports] in the configuration]
    #[arg(long, value_name = "SPEC")]
    pub port: Option<String>,

    #[command(flatten)]
    pub duration: DurationOption,

    /// Seed of all that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Damage each message with this probability
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub corrupt: f64,

    /// CPU of the loop, which is then never idle [default: the loop gives way to others]
    #[arg(long, visible_alias = "cores", value_name = "CPU")]
    pub core: Option<usize>,

    #[command(flatten)]
    pub report: ReportOptions,

    #[command(flatten)]
    pub clock: ClockOption,

    /// Print only errors and the report
    #[arg(short, long)]
    pub quiet: bool,
}

impl MemberOptions {
    /// What they ask.
    pub fn asked(&self) -> Asked {
        Asked {
            file: Some(self.config.clone()),
            duration: self.duration.duration,
            seed: self.seed,
            corrupt: self.corrupt,
            quiet: self.quiet,
            ..Asked::default()
        }
    }
}

/// Run the scheduler of a farm whose other members are other processes
///
/// It triggers when it has heard all members, or `start_us` of [times] after its start, and ends when
/// all events are decided, or at a signal, with its part of the report.
///
/// Example, each in a terminal of its own (the file: docs/farm.md):
///   farm switch --config farm.toml
///   farm results --config farm.toml
///   farm node --config farm.toml --id 0-1
///   farm feeder --config farm.toml --id 0-1
///   farm scheduler --config farm.toml --events 100000
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct SchedulerOptions {
    #[command(flatten)]
    pub member: MemberOptions,

    /// End after this number of events [default: at a signal or after --duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub events: Option<u64>,
}

/// Run a feeder of a farm whose other members are other processes
///
/// It has a fragment of every event, mock-up words here, and transfers it to the node that the
/// scheduler has given the event to. It ends at a signal, with its part of the report.
///
/// Example: farm feeder --config farm.toml --id 3
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct FeederOptions {
    #[command(flatten)]
    pub member: MemberOptions,

    /// Number of the feeder, from 0; or of several, as 0-11
    #[arg(long, value_name = "N")]
    pub id: Ids,
}

/// Run a computing node of a farm whose other members are other processes
///
/// It compares the fragments of the events that it is given with the mock-up words, and decides. It
/// ends at a signal, with its part of the report.
///
/// Example: farm node --config farm.toml --id 3
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct NodeOptions {
    #[command(flatten)]
    pub member: MemberOptions,

    /// Number of the node, from 0; or of several, as 0-5, or 0-10/2 for every second one
    #[arg(long, value_name = "N")]
    pub id: NodeIds,
}

/// Run the result node of a farm whose other members are other processes
///
/// It takes the decisions of all nodes, in the order of the events, each once. It ends at a signal,
/// with its part of the report.
///
/// Example: farm results --config farm.toml
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct ResultOptions {
    #[command(flatten)]
    pub member: MemberOptions,
}

/// A process of `farm run --processes`: its parent writes orders to its standard input.
#[derive(Debug, clap::Args)]
pub struct PartOptions {
    #[command(flatten)]
    pub member: MemberOptions,

    /// Its members, as scheduler,feeder:0-11,node:3
    #[arg(long, value_name = "LIST")]
    pub members: Share,

    #[arg(long, value_name = "N")]
    pub events: Option<u64>,

    #[arg(long, value_name = "MEMBER@EVENT")]
    pub kill: Vec<Kill>,
}

/// Run the switch between the processes of a farm
///
/// It has a port for each member of the configuration: `switch` of [ports]. With [switch] each output
/// has a rate and a bounded buffer. It ends at a signal, with the counts of its outputs. Any other
/// switch does as well, as `pollux switch`.
///
/// Example: farm switch --config farm.toml
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct SwitchOptions {
    /// Configuration (TOML), the same for all members
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,

    #[command(flatten)]
    pub duration: DurationOption,

    /// CPU of the loop, which is then never idle [default: the loop gives way to others]
    #[arg(long, visible_alias = "cores", value_name = "CPU")]
    pub core: Option<usize>,

    #[command(flatten)]
    pub report: ReportOptions,

    #[command(flatten)]
    pub clock: ClockOption,

    /// Print only errors and the report
    #[arg(short, long)]
    pub quiet: bool,
}
