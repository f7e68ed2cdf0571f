//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use pollux_pmd::lcore::idle::IdlePolicy;
use pollux_program::{
    ClockOption, Cpus, DurationOption, PortsOption, ReportOptions, address, metrics,
};

use crate::outputs::RunOptions;
use crate::reference::Form;

/// L0 trigger: receives the RICH's hits by UDP, builds events, finds rings, decides, and answers
/// within a budget
///
/// Without --port it runs a demonstration: emulated readout boards on one core send over an
/// in-process wire to the trigger on another, and the report compares what was found with the
/// truth.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
#[command(mut_arg("ports", |arg| arg.help("Ports to receive on")))]
pub struct Cli {
    #[command(flatten)]
    pub ports: PortsOption,

    /// Configuration; without it, that of the demonstration
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// CPUs of the loops: the trigger's, in the demonstration the emulator's, then the workers'
    /// [default: the last ones, the trigger's the last of all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<Cpus>,

    /// Loops, beside the trigger's, that find rings; events keep their order
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=64))]
    pub workers: u16,

    /// What the loop does while nothing comes: busy (polls on), pause, or sleep[=ROUNDS]: after so
    /// many rounds it sleeps until a device wakes it, where devices can
    #[arg(long, value_name = "HOW", default_value_t)]
    pub idle: IdlePolicy,

    #[command(flatten)]
    pub clock: ClockOption,

    /// Receive queues of each port [default: as many as its device shares frames out over]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub queues: Option<u16>,

    #[command(flatten)]
    pub duration: DurationOption,

    /// Stop after so many events; in the demonstration, emulate so many [default there: 1000000, over card-sim 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub events: Option<u64>,

    /// Frames taken from a queue at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub burst: u16,

    #[command(flatten)]
    pub report: ReportOptions,

    #[command(flatten)]
    pub metrics: metrics::Options,

    /// Serve a page that shows the run and its events at http://ADDRESS:PORT/ while it lasts
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub http: Option<SocketAddr>,

    /// Write the events as 64-byte records (docs/formats/event-record.md)
    #[arg(long, value_name = "FILE")]
    pub events_out: Option<PathBuf>,

    /// Record accepted events with their hits in HDF5 (docs/formats/recording.md), in programs built
    /// with --features hdf5
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    #[command(flatten)]
    pub runs: RunOptions,

    /// What to compare the rings with (docs/formats/truth.md): a truth of events, one JSON object a
    /// line, or a configuration of the emulator (its --truth-out), which is also what the
    /// demonstration runs
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Check the configuration and what can be seen without opening a port, say what would be done,
    /// and do nothing
    #[arg(long)]
    pub check: bool,

    /// Print the configuration in force (TOML), with all that --config leaves out, and do nothing
    #[arg(long, conflicts_with = "check")]
    pub print_config: bool,

    /// Print what a configuration may hold, as a JSON schema or as docs/configuration.md, and do
    /// nothing
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "json", conflicts_with_all = ["check", "print_config"])]
    pub print_schema: Option<Form>,

    /// Print nothing but errors, changes of the rules, and the report
    #[arg(short, long)]
    pub quiet: bool,
}

const AFTER_HELP: &str = "\
Ports:
  af_packet:IF                  a Linux interface (needs CAP_NET_RAW)
  pcap:rx=FILE[,pace=recorded]  a capture; the run ends at its end
  pci:ADDRESS                   a NIC bound to vfio-pci (pollux bind)
  loopback                      the in-process wire of the demonstration
  card-sim                      the demonstration over Pollux's card, simulated from its RTL, in
                                programs built with --features card-sim and Verilator
  (all others, and their options: pollux ports, docs/ports.md)

Over card-sim the boards' frames, 1000000 events a second without --truth, come to the card's first
wire, its driver receives them, and answers leave by the card. Time is the card's then, and a
millisecond of it takes seconds: boards, budget, total latency and gaps go by it, and what the trigger
computes takes none. duration_s, --duration and the times of stages are this machine's.

Configuration (TOML; each line may be left out; every key: docs/configuration.md, examples:
docs/examples; --print-config prints what holds):
  [trigger]                     ip, source_id, budget_us = 1000, checksums = true
  [answer]                      to = \"ADDRESS:PORT\" or \"nobody\", from_port = 30200, mac
  [memory]                      buffers = 16384, data_room = 2048 (bytes), ring = 2048 (descriptors)
                                pages = \"auto\", \"4K\", \"2M\" or \"1G\"; numa_node = 0;
                                lock = \"try\" or \"require\" (docs/tuning.md)
  [[stream]]                    udp_port of each source, in order; group = \"239.1.2.3\" has a multicast
                                group joined (docs/operations.md, Multicast)
  [[stage]]                     decompress, build or merge, rings, decide, each by its name, in order
  [[stage.rule]]                of decide: which events are accepted (docs/operations.md);
                                SIGHUP has the rules of a running program read again

Examples:
  l0-trigger                                        demonstration, some ten seconds
  l0-trigger --events 200000 --report run.json      a shorter one, with a machine-readable report
  l0-trigger --events 50000000 --http 127.0.0.1:8080  to be watched in a browser
  l0-trigger --port card-sim --events 200           over the simulated card
  l0-trigger --port af_packet:eth1 --config docs/examples/rich.toml --cores 3
  l0-trigger --port af_packet:eth1 --config docs/examples/rules.toml --workers 2 --cores 3,4,5
  l0-trigger --port pcap:rx=run.pcapng --events-out run.events --truth run.toml

Exit status: 0 if the run ended as asked and every frame is accounted for; 1 if it failed, or if on
a live port decisions were made and no answer reached anybody ([answer] to = \"nobody\" wants none; a
capture that is read without tx= has nobody to be told); 2 if the command line or the configuration
is wrong, in which case nothing was opened.";
