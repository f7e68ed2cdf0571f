//! The command line.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use crate::config::{Arrival, EmulatorConfig, SLOTS_PER_SECOND};
use anyhow::Context as _;
use clap::{Parser, Subcommand};
use pollux_app::{ClockOption, Cpus, DurationOption, PortOption, Rates, ReportOptions, metrics};
use pollux_na62::physics::model::Rings;
use pollux_pmd::net::MacAddr;

use crate::fault_options::FaultOptions;
use crate::images_command::ImagesCli;

/// Emulated RICH readout boards: sends compressed hits of events with a known truth to a trigger,
/// at a given rate and with optional faults, and checks the returned decisions
///
/// Equal seeds give equal events, frames and faults. Command-line options override the
/// configuration file, which overrides the defaults.
#[derive(Debug, Parser)]
#[command(version, allow_negative_numbers = true, after_help = AFTER_HELP)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true)]
#[command(mut_arg("place", |arg| arg
    .help("Send through a port: af_packet:IF, pcap:tx=FILE, ...")
    .required_unless_present_any(["udp", "check"])
    .conflicts_with("udp")))]
#[command(mut_arg("port", |arg| arg.conflicts_with("udp")))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) port: PortOption,

    /// Send through the kernel's UDP sockets to this address; board b sends to port PORT + b
    #[arg(long, value_name = "IP:PORT", conflicts_with_all = ["dst_ip", "dst_port", "dst_mac"])]
    pub(crate) udp: Option<SocketAddrV4>,

    /// Configuration; --truth-out writes one to start from
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Seed of events and faults [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Events to send; 0: until stopped [default: 1000000]
    #[arg(long, value_name = "N")]
    events: Option<u64>,

    /// Events a second: 20000, 250k, 1.5MHz; 0 or max: as fast as possible [default: 100000]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<u64>,

    /// Distribution of the events in time: poisson or regular [default: poisson]
    #[arg(long, value_name = "HOW")]
    arrival: Option<Arrival>,

    /// Readout boards, 1 to 16 [default: 4]
    #[arg(long, value_name = "N")]
    boards: Option<u8>,

    /// Mean number of rings in an event [default: 1.5]
    #[arg(long, value_name = "MEAN")]
    rings: Option<f64>,

    /// Noise hits per signal hit [default: 0.1]
    #[arg(long, value_name = "FRACTION")]
    noise: Option<f64>,

    /// Events in a frame [default: 32]
    #[arg(long, value_name = "N")]
    events_per_frame: Option<u16>,

    #[command(flatten)]
    faults: FaultOptions,

    /// IP address of the boards [default: 198.18.0.2; with --udp, the kernel's choice]
    #[arg(long, value_name = "IP", help_heading = "Addresses")]
    src_ip: Option<Ipv4Addr>,

    /// MAC address of the boards [default: that of the interface]
    #[arg(long, value_name = "MAC", help_heading = "Addresses")]
    src_mac: Option<MacAddr>,

    /// Source port of board 0 [default: 30000]
    #[arg(long, value_name = "PORT", help_heading = "Addresses")]
    src_port: Option<u16>,

    /// IP address of the trigger [default: 198.18.0.1]
    #[arg(long, value_name = "IP", help_heading = "Addresses")]
    dst_ip: Option<Ipv4Addr>,

    /// MAC address of the trigger [default: resolved by ARP]
    #[arg(long, value_name = "MAC", help_heading = "Addresses")]
    dst_mac: Option<MacAddr>,

    /// The trigger's port for board 0 [default: 58913]
    #[arg(long, value_name = "PORT", help_heading = "Addresses")]
    dst_port: Option<u16>,

    /// UDP port at which decisions are received [default: 30100]
    #[arg(long, value_name = "PORT", help_heading = "Addresses")]
    listen: Option<u16>,

    /// Receive queues of the port, for decisions [default: as many as its device distributes frames
    /// over]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    #[arg(conflicts_with = "udp")]
    pub(crate) queues: Option<u16>,

    #[command(flatten)]
    pub(crate) duration: DurationOption,

    /// CPU of the loop; of a list, the first
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cores: Vec<Cpus>,

    #[command(flatten)]
    pub(crate) clock: ClockOption,

    /// Write the configuration of this run, for `l0-trigger --truth` and for --config
    #[arg(long, value_name = "FILE")]
    pub(crate) truth_out: Option<PathBuf>,

    /// Write the truth of every event as JSON lines (docs/formats/truth.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) truth_events: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) report: ReportOptions,

    #[command(flatten)]
    pub(crate) metrics: metrics::Options,

    /// Check the configuration, print the plan, and exit
    #[arg(long)]
    pub(crate) check: bool,

    /// Print only errors and the report
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Other emulated detectors.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Emulated image detector: sends raw images of JUNGFRAU, EIGER or MOENCH modules
    Images(Box<ImagesCli>),
}

/// Parses a number of events a second; 0 stands for as many as possible.
fn rate(text: &str) -> Result<u64, String> {
    let rates = Rates {
        units: &["Hz"],
        range: 0.0..=SLOTS_PER_SECOND as f64,
        max: true,
    };
    let (rate, _) = rates.read(text)?.unwrap_or_default();
    let whole = Some(rate.round()).filter(|whole| (rate - whole).abs() <= 1e-9 * whole);
    let whole = whole.map(|whole| whole as u64);
    whole.ok_or_else(|| format!("{}; whole events, no part of one", rates.error_text()))
}

const AFTER_HELP: &str = "\
Examples:
  pollux-emulator --port pcap:tx=run.pcapng --events 100000 --seed 7 --truth-out run.toml
      a capture for l0-trigger --port pcap:rx=run.pcapng --truth run.toml; the same bytes each time
  pollux-emulator --udp 10.0.0.1:58913 --rate 20000 --lost 0.01 --report run.json
      four boards over plain sockets, one frame in a hundred lost; decisions come back to port 30100
  pollux-emulator --port af_packet:eth1 --src-ip 10.0.0.2 --dst-ip 10.0.0.1 --events 0
      on an interface, until Ctrl-C; answers ARP and ping for 10.0.0.2
  pollux-emulator images --help
      an emulated image detector

Exit status: 0 if the run ended as asked and every received frame is accounted for; 1 if it
failed; 2 if the command line or the configuration is wrong, in which case nothing was opened.";

impl Cli {
    /// The configuration of the run: the file's, overridden by the options.
    pub(crate) fn config(&self) -> anyhow::Result<EmulatorConfig> {
        let mut config = match &self.config {
            None => EmulatorConfig::default(),
            Some(path) => {
                let what = || format!("configuration {}", path.display());
                let text = pollux_app::read_text(path).with_context(what)?;
                EmulatorConfig::from_toml(&text).with_context(what)?
            }
        };
        let (addresses, faults) = (&mut config.addresses, &mut config.faults);
        set(&mut config.seed, self.seed);
        set(&mut config.events, self.events);
        set(&mut config.rate, self.rate);
        set(&mut config.arrival, self.arrival);
        set(&mut config.boards, self.boards);
        set(&mut config.physics.rings, self.rings.map(Rings::Poisson));
        set(&mut config.physics.noise, self.noise);
        set(&mut config.events_per_frame, self.events_per_frame);
        self.faults.apply(faults);
        addresses.src_ip = self.src_ip.or(addresses.src_ip);
        addresses.src_mac = self.src_mac.or(addresses.src_mac);
        addresses.trigger_mac = self.dst_mac.or(addresses.trigger_mac);
        set(&mut addresses.src_port, self.src_port);
        set(
            &mut addresses.trigger_ip,
            self.udp.map(|to| *to.ip()).or(self.dst_ip),
        );
        set(
            &mut addresses.trigger_port,
            self.udp.map(|to| to.port()).or(self.dst_port),
        );
        set(&mut addresses.decision_port, self.listen);
        config.validate()?;
        Ok(config)
    }
}

fn set<T>(value: &mut T, flag: Option<T>) {
    if let Some(flag) = flag {
        *value = flag;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_in_the_help_are_the_real_ones() {
        let help = Cli::command().render_long_help().to_string();
        let config = EmulatorConfig::default();
        let addresses = config.addresses;
        for default in [
            config.events.to_string(),
            config.rate.to_string(),
            config.events_per_frame.to_string(),
            config.faults.late_us.to_string(),
            addresses.trigger_port.to_string(),
            addresses.decision_port.to_string(),
            addresses.src_port.to_string(),
            addresses.boards().socket.ip().to_string(),
            addresses.trigger_ip.to_string(),
        ] {
            assert!(
                help.contains(&format!("[default: {default}")),
                "{default}\n{help}"
            );
        }
        assert_eq!(config.physics.rings, Rings::Poisson(1.5));
    }

    #[test]
    fn rates_and_times_have_units() {
        let read = |option, value| {
            let cli = Cli::try_parse_from(["x", "--check", option, value]);
            cli.map(|cli| cli.config())
        };
        for (value, rate) in [
            ("20000", 20_000),
            ("250k", 250_000),
            ("1.1MHz", 1_100_000),
            ("0", 0),
            ("max", 0),
        ] {
            assert_eq!(read("--rate", value).unwrap().unwrap().rate, rate);
        }
        for value in ["1.5", "41M", "fast", "1e6", "5pps"] {
            let error = read("--rate", value).unwrap_err().to_string();
            assert!(error.contains("with a unit (Hz) or none"), "{error}");
        }
        for (option, value, us) in [
            ("--late-us", "300", 300),
            ("--late-by", "500us", 500),
            ("--late-by", "0.25", 250_000),
        ] {
            let config = read(option, value).unwrap().unwrap();
            assert_eq!(config.faults.late_us, us, "{value}");
        }
        let error = read("--late-by", "soon").unwrap_err().to_string();
        assert!(error.contains("write a number of seconds"), "{error}");
        for value in ["2s", "100ns", "2h"] {
            let error = read("--late-by", value).unwrap().unwrap_err().to_string();
            assert!(error.contains("late_us"), "{value}: {error}");
        }
    }

    #[test]
    fn flags_come_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        fs::write(&file, "seed = 5\nboards = 2\n[faults]\nlate = 0.25\n").unwrap();
        let file = file.to_str().unwrap();
        let args = [
            "x",
            "--check",
            "--config",
            file,
            "--boards",
            "3",
            "--udp",
            "10.1.2.3:7000",
        ];
        let config = Cli::parse_from(args).config().unwrap();
        assert_eq!((config.seed, config.boards), (5, 3));
        assert!((config.faults.late - 0.25).abs() < 1e-9);
        assert_eq!(config.endpoints(2).1.socket.to_string(), "10.1.2.3:7002");
    }
}
