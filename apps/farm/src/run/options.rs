//! Options of a run.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use pollux_app::{
    ClockOption, Cpus, DurationOption, Rates, ReportOptions, address, bytes_within, metrics,
};
use pollux_switch::SwitchConfig;
use serde::{Deserialize, Serialize};

use super::asked::Asked;
use super::kill::Kill;
use super::link::LinkName;

/// How feeders learn of the receive buffer of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// A message passes from feeder to feeder, which transfer one after the other
    #[default]
    Ring,
    /// A node asks the feeders for the fragments that it has credit for
    Credits,
    /// Feeders transfer to another node each, in slots, as a barrel shifter does
    Slots,
    /// All feeders get the message at once, and transfer at once
    None,
}

/// What happens when the next column has no free buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeName {
    /// The column is passed
    #[default]
    Skip,
    /// The scheduler waits for the column
    Wait,
}

/// When events are triggered, at a given rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TriggerName {
    /// At equal distances
    #[default]
    Regular,
    /// By a Poisson process
    Poisson,
    /// At filled bunch crossings of the LHC
    Bunches,
}

/// Run a farm
///
/// All roles run as loops of this process, or with --processes in processes of their own, and send
/// each other Ethernet frames: the scheduler gives each event to a receive buffer of a node, the
/// feeders transfer their fragments to it, the node checks and decides, the result node takes the
/// decisions in order. The report says what was triggered, built and decided, and what became of
/// every frame.
///
/// With --processes this process is the switch between the others, and their parent. One of them
/// that is killed or stopped is a fault of the farm: its nodes are excluded and their events built
/// by others, the fragments of its feeders are missing. Without the scheduler or the result node the
/// run fails.
///
/// Examples:
///   farm run --events 100000
///   farm run --events 1000000 --pack 32 --report run.json
///   farm run --events 100000 --rate 50k --kill node:3@20000 --corrupt 1e-4
///   farm run --events 100000 --rate 100k --suspend 1000 --http localhost:8080
///   farm run --events 100000 --processes 4
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct RunOptions {
    /// Configuration (TOML); options override it [default: the one that --print-config shows]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Print the effective configuration (TOML), including defaults, and exit; keys that are not set
    /// and have no fixed default are left out
    #[arg(long)]
    pub print_config: bool,

    /// End after this number of events [default: at a signal or after --duration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub events: Option<u64>,

    #[command(flatten)]
    pub duration: DurationOption,

    /// Feeders: each has a fragment of every event [default: 24]
    #[arg(long, value_name = "N")]
    pub feeders: Option<usize>,

    /// Computing nodes [default: 12]
    #[arg(long, value_name = "N")]
    pub nodes: Option<usize>,

    /// Columns that the nodes are dealt to [default: 6]
    #[arg(long, value_name = "N")]
    pub columns: Option<usize>,

    /// Receive buffers of each node [default: 10]
    #[arg(long, value_name = "N")]
    pub buffers: Option<usize>,

    /// Triggers a second, or max: as many as the farm takes [default: max]
    #[arg(long, value_name = "HZ", value_parser = rate)]
    pub rate: Option<Rate>,

    /// Distances of the triggers, with --rate [default: regular]
    #[arg(long, value_name = "KIND", value_enum)]
    pub triggers: Option<TriggerName>,

    /// Bytes of a fragment [default: 128]
    #[arg(long, value_name = "BYTES", value_parser = fragment)]
    pub fragment: Option<u32>,

    /// Bytes of the slot that each receive buffer has for a feeder [default: what a transfer needs]
    #[arg(long, value_name = "BYTES", value_parser = fragment)]
    pub slot: Option<u32>,

    /// Events that are scheduled and transferred together [default: 1]
    #[arg(long, value_name = "N")]
    pub pack: Option<u16>,

    /// Who sends when [default: ring]
    #[arg(long, value_name = "POLICY", value_enum)]
    pub policy: Option<PolicyName>,

    /// What happens when the next column is busy [default: skip]
    #[arg(long, value_name = "MODE", value_enum)]
    pub mode: Option<ModeName>,

    /// Rounds in which busy feeders pass the message on [default: 0]
    #[arg(long, value_name = "LOOPS")]
    pub bypass: Option<u8>,

    /// One node at a time stands still for so many microseconds, next one of the next column
    #[arg(long, value_name = "US")]
    pub suspend: Option<u64>,

    /// End a member for good when it sees an event: node:N@EVENT or feeder:N@EVENT; may be given
    /// several times
    #[arg(long, value_name = "MEMBER@EVENT")]
    pub kill: Vec<Kill>,

    /// Damage each message with this probability
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub corrupt: f64,

    /// Carry the frames over a switch in this process: bytes of the buffer of each output, which
    /// drops what it has no room for
    #[arg(long, value_name = "BYTES", value_parser = buffer)]
    pub switch: Option<usize>,

    /// Seed of all that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Loops that share the members [default: as many as CPUs, at most 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=8))]
    pub loops: Option<u16>,

    /// Deal the members to this number of processes, each with one loop
    #[arg(long, value_name = "K", conflicts_with_all = ["loops", "suspend"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=8))]
    pub processes: Option<u16>,

    /// What carries the frames between the processes and the switch, where [ports] of the
    /// configuration does not name ports
    #[arg(
        long,
        value_name = "KIND",
        value_enum,
        default_value_t,
        requires = "processes"
    )]
    pub link: LinkName,

    /// CPUs of the loops, or of the processes, and of the switch [default: the last ones]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<Cpus>,

    #[command(flatten)]
    pub report: ReportOptions,

    #[command(flatten)]
    pub metrics: metrics::Options,

    /// Serve a page that shows the run at http://ADDRESS:PORT/
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub http: Option<SocketAddr>,

    #[command(flatten)]
    pub clock: ClockOption,

    /// Print only errors and the report
    #[arg(short, long)]
    pub quiet: bool,
}

impl RunOptions {
    /// What they ask of the run.
    pub fn asked(&self) -> Asked {
        Asked {
            file: self.config.clone(),
            events: self.events,
            duration: self.duration.duration,
            seed: self.seed,
            corrupt: self.corrupt,
            kill: self.kill.clone(),
            suspend: self.suspend,
            metrics: self.metrics,
            http: self.http,
            quiet: self.quiet,
        }
    }
}

/// Triggers a second; none: as many as possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub Option<f64>);

fn rate(text: &str) -> Result<Rate, String> {
    let rates = Rates {
        units: &["Hz"],
        range: 1.0..=1e9,
        max: true,
    };
    Ok(Rate(rates.read(text)?.map(|(rate, _)| rate)))
}

fn buffer(text: &str) -> Result<usize, String> {
    let (least, most) = SwitchConfig::BUFFERS.into_inner();
    let bytes = bytes_within(text, least as u64..=most as u64)?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

fn fragment(text: &str) -> Result<u32, String> {
    let bytes = bytes_within(text, 0..=1 << 20)?;
    u32::try_from(bytes).map_err(|error| error.to_string())
}
