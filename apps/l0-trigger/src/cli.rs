//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use pollux_app::{
    ClockOption, Cpus, DurationOption, NamedFile, PortsOption, ReportOptions, RotationOptions,
    address, metrics,
};
use pollux_pmd::lcore::idle::IdlePolicy;

use crate::config::Source;
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

    /// Text of a configuration, instead of a file; not an option of the command line.
    #[arg(skip)]
    pub configuration: Option<String>,

    /// CPUs of the loops: the trigger's, in the demonstration the emulator's, then the workers',
    /// then those of --rx-loops [default: the last ones, the trigger's the last of all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cores: Vec<Cpus>,

    /// Loops, beside the trigger's, that find rings; events keep their order
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=64))]
    pub workers: u16,

    /// Loops that receive: 1 is the trigger's own; more are loops beside it, which share the receive
    /// queues; decisions of a recording do not depend on their number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub rx_loops: u16,

    /// Idle mode of the loop: busy (polls on), pause, or sleep[=ROUNDS]: after ROUNDS idle
    /// iterations it sleeps until a device wakes it, where devices can
    #[arg(long, value_name = "HOW", default_value_t)]
    pub idle: IdlePolicy,

    #[command(flatten)]
    pub clock: ClockOption,

    /// Receive queues of each port [default: as many as its device shares frames out over]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub queues: Option<u16>,

    #[command(flatten)]
    pub duration: DurationOption,

    /// Stop after this number of events; in the demonstration, emulate this number [default there:
    /// 1000000, over card-sim 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub events: Option<u64>,

    /// Frames taken from a queue at a time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub burst: u16,

    #[command(flatten)]
    pub report: ReportOptions,

    #[command(flatten)]
    pub metrics: metrics::Options,

    /// Serve a page that shows the run and its events at http://ADDRESS:PORT/ during the run
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub http: Option<SocketAddr>,

    /// Write the events as 64-byte records (docs/formats/event-record.md)
    #[arg(long, value_name = "FILE")]
    pub events_out: Option<PathBuf>,

    /// Record accepted events with their hits in HDF5 (docs/formats/recording.md), in programs built
    /// with --features hdf5
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Send events to an output, beside those of the configuration; may be given several times
    /// (docs/outputs.md)
    #[arg(long = "output", value_name = "SPEC")]
    pub outputs: Vec<String>,

    #[command(flatten)]
    pub runs: RunOptions,

    /// Reference for the rings (docs/formats/truth.md): a truth of events, one JSON object a line,
    /// or a configuration of the emulator (its --truth-out), which is also what the demonstration
    /// runs
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Check the configuration, and ports and files without opening them, print the plan, and exit
    #[arg(long)]
    pub check: bool,

    /// Print the effective configuration (TOML), including defaults, and exit
    #[arg(long, conflicts_with = "check")]
    pub print_config: bool,

    /// Print the reference of the configuration, as a JSON schema or as docs/configuration.md, and
    /// exit
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "json", conflicts_with_all = ["check", "print_config"])]
    pub print_schema: Option<Form>,

    /// Print only errors, changes of the rules, and the report
    #[arg(short, long)]
    pub quiet: bool,
}

impl Cli {
    /// The files that the options have read, and those that the ports read and write.
    pub fn files(&self) -> Vec<NamedFile> {
        let read = [("--config", &self.config), ("--truth", &self.truth)];
        let read = read.into_iter().filter_map(|(option, path)| {
            let path = path.as_deref()?;
            Some(NamedFile::read(option, path))
        });
        let ports = self.ports.specs();
        let ports = ports.iter().flat_map(|spec| NamedFile::of_port(spec));
        read.chain(ports).collect()
    }

    /// Source of the configuration.
    pub fn source(&self) -> Source {
        match (&self.configuration, &self.config) {
            (Some(text), _) => Source::Text(text.clone()),
            (None, Some(path)) => Source::File(path.clone()),
            (None, None) => Source::BuiltIn,
        }
    }
}

/// Options of runs and their files.
#[derive(Debug, clap::Args)]
pub struct RunOptions {
    /// Number of the run: in the report, in the files of events, and for {run} in the names of files
    ///
    /// Events in files then include their burst, and {burst} in the name of --events-out or
    /// --record gives one file for each burst: r{run}-{burst}.events is r0007-00001.events, then
    /// r0007-00002.events.
    #[arg(long, value_name = "NUMBER")]
    pub run: Option<u32>,

    /// Wait for runs, which are started and stopped through a Unix socket (docs/formats/control.md)
    #[arg(long, value_name = "PATH", conflicts_with = "run")]
    pub control: Option<PathBuf>,

    /// Limits of a file of --record: FILE's name then includes a number, run_00001.h5
    #[command(flatten)]
    pub rotation: RotationOptions,
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

Outputs:
  ejfat:HOST:PORT[,data-id=N][,mtu=BYTES][,sync=HOST:PORT][,source-id=N][,mac=MAC][,port=SPEC]
                                accepted events to a load balancer or a receiver of EJFAT
  kafka:HOST:PORT[+HOST:PORT],topic=T[,partition=N][,format=ev44|record][,source=NAME][,epoch=NS]
      [,monitor=T][,runs=T][,conf=FILE]
                                accepted events, or all, to a topic of Kafka, in programs built with
                                --features kafka
  (all of them, and what is lost when: docs/outputs.md)

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
  [[output]]                    spec = \"SPEC\" of an output, as of --output
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

Exit status: 0 if the run ended as asked and every frame is accounted for; 1 if it failed, if no
event was built and most frames were dropped (on a live port: if some were of a stream), or if on a
live port decisions were made and no answer was delivered ([answer] to = \"nobody\" wants none; a
capture that is read without tx= has no destination); 2 if the command line or the configuration
is wrong, in which case nothing was opened.";
