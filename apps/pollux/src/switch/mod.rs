//! `pollux switch`: a learning Ethernet switch between ports.

mod run_loop;

use std::fmt;
use std::time::Duration;

use anyhow::{Context, anyhow};
use pollux_app::{Failure, PortsOption, Rates, bytes_within, ports, seconds_up_to};
use pollux_pmd::lcore::idle::IdlePolicy;
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::port::{Configured, Port};
use pollux_pmd::{Ledger, PortConfig, PortError, Probed, Registry};
use pollux_switch::{Switch, SwitchConfig, SwitchPort, SwitchReport};
use serde::Serialize;

use self::run_loop::Loop;
use crate::promisc::Promisc;
use crate::supervisor::{Base, Options, Rig, Supervisor};

/// Buffers in the local cache of the loop.
const CACHE: usize = 512;

/// Largest number of ports: file descriptors and memory of a process are limited.
const MAX_PORTS: usize = 256;

/// Longest ageing time (IEEE 802.1D-2004, table 7-5).
const LONGEST_AGE: Duration = Duration::from_secs(1_000_000);

/// Switch frames between ports, as an Ethernet bridge does
///
/// The switch learns at which port an address is from the frames that it sends, and forwards frames
/// to that address to that port alone. Frames to groups and to unknown addresses are flooded: they
/// go to all ports but the one that they came from. One loop polls all ports.
///
/// Each output has a buffer of --buffer bytes. Frames that do not fit are lost, and counted as
/// `output-full`: at once, if several ports send to one output more than its --rate. Rates and
/// buffers count frames from their Ethernet header to the end of their data, at least 60 bytes.
///
/// Interfaces of the kernel are promiscuous. The switch does not look at VLAN tags, and knows no
/// spanning tree: do not connect two of its ports to the same network.
///
/// Examples:
///   pollux switch tap:host0 tap:host1 tap:host2
///   pollux switch vhost-user:/run/a.sock vhost-user:/run/b.sock --cores 2 --rate 10G --buffer 64k
#[derive(clap::Args)]
#[command(verbatim_doc_comment, mut_arg("ports", |arg| arg
    .help("Ports of the switch")
    .required_unless_present("port")))]
pub(crate) struct Args {
    #[command(flatten)]
    ports: PortsOption,

    /// Rate of each output in bit/s: 1G, 2.5Gbit [default: as fast as the port sends]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<u64>,

    /// Buffer of each output, in bytes
    #[arg(long, value_name = "BYTES", default_value = "256k", value_parser = buffer)]
    buffer: usize,

    /// Addresses that the switch can know at once
    #[arg(long, value_name = "N", default_value_t = 8192)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    addresses: u32,

    /// Time after which an address that sends nothing is forgotten
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = age)]
    age: Duration,

    /// Receive queues of each port [default: as many as the device distributes frames over]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    queues: Option<u16>,

    /// Descriptors in each queue's ring
    #[arg(long, value_name = "N", default_value_t = 1024)]
    ring: usize,

    /// Idle mode of the loop: busy (polls on), pause, or sleep[=ROUNDS]: after ROUNDS idle
    /// iterations the loop sleeps until a device wakes it, where devices can
    #[arg(long, value_name = "HOW", default_value_t)]
    idle: IdlePolicy,

    /// End after N frames received
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    #[command(flatten)]
    promisc: Promisc,

    #[command(flatten)]
    run: Options,
}

/// Parses a rate in bit/s.
fn rate(text: &str) -> Result<u64, String> {
    let range = SwitchConfig::RATES;
    let rates = Rates {
        units: &["bit/s", "bit", "bps"],
        range: *range.start() as f64..=*range.end() as f64,
        max: false,
    };
    let rate = rates.read(text)?;
    rate.map(|(rate, _)| rate as u64)
        .ok_or_else(|| rates.error_text())
}

/// Parses the size of a buffer.
fn buffer(text: &str) -> Result<usize, String> {
    let range = SwitchConfig::BUFFERS;
    let range = *range.start() as u64..=*range.end() as u64;
    bytes_within(text, range).map(|size| size as usize)
}

/// Parses an ageing time.
fn age(text: &str) -> Result<Duration, String> {
    seconds_up_to(text, LONGEST_AGE)
}

/// Content of `--report`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    base: Base,
    rate_bps: Option<u64>,
    buffer_bytes: usize,
    age_s: f64,
    /// Addresses known at the end.
    addresses: usize,
    #[serde(flatten)]
    switched: SwitchReport,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.base, self.switched)
    }
}

/// Switches, and writes the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let supervisor = Supervisor::new(&args.run, &args.ports.specs())?;
    supervisor.expect_one_loop()?;
    let specs = args.ports.specs();
    if !(2..=MAX_PORTS).contains(&specs.len()) {
        return Err(Failure::Usage(anyhow!(
            "{} ports: a switch has 2 to {MAX_PORTS}",
            specs.len()
        )));
    }
    let config = SwitchConfig {
        rate: args.rate,
        buffer: args.buffer,
        addresses: args.addresses as usize,
        age: Ns(u64::try_from(args.age.as_nanos()).unwrap_or(u64::MAX)),
        count: args.count,
    };
    let (opened, filtered) = args.promisc.open(registry, &specs)?;
    if !opened
        .iter()
        .any(|port| port.capabilities().max_tx_queues > 0)
    {
        return Err(Failure::Usage(anyhow!(
            "no port sends: a switch needs an output"
        )));
    }
    let queues: usize = opened
        .iter()
        .map(|port| queues(port, args.queues).0)
        .sum::<u16>()
        .into();
    let waiting = config.longest_queue().saturating_mul(opened.len());
    let pool = Mempool::new(PoolConfig {
        // The rings of each queue full, the buffer of each output full of the shortest frames, and
        // as many frames in flight as there are descriptors.
        buffers: (queues + opened.len()) * 2 * args.ring.min(1 << 16) + waiting + CACHE,
        ..PoolConfig::default()
    })
    .context("no memory for packet buffers: give less than --buffer … or fewer ports")?;
    let configured = configure(opened, args, &pool)?;
    let mut ledger = Ledger::new();
    let rig = Rig::start(configured, &mut ledger)?;
    let ends = specs.into_iter().zip(rig.rx).zip(rig.tx);
    let ends = ends.map(|((name, rx), mut tx)| SwitchPort {
        name,
        rx,
        tx: tx.pop(),
    });
    let switch = Switch::new(ends.collect(), &config).map_err(anyhow::Error::new)?;
    switch.add_to(&mut ledger);
    let view = switch.view();
    let cache = pool.cache(CACHE).context("no packet buffers")?;
    let stop = supervisor.stop.clone();
    let body = Loop::new(switch, cache, &config, args.idle, stop).context("--idle")?;
    let bodies = vec![move || body.run()];
    let mut ended = supervisor.run("switch", bodies, &rig.ports, &rig.views, &ledger)?;

    let (mut rx, mut tx, mut addresses) = (Vec::new(), Vec::new(), 0);
    for done in ended.loops.drain(..) {
        addresses = done.addresses;
        for port in done.ports {
            rx.extend(port.rx);
            tx.extend(port.tx);
        }
    }
    let stopped = ports::stop(rig.ports, rx, tx);
    let report = Report {
        base: ended.base("switch", &rig.views, &ledger),
        rate_bps: args.rate,
        buffer_bytes: args.buffer,
        age_s: args.age.as_secs_f64(),
        addresses,
        switched: view.report(),
    };
    if report.base.ledger.from_wire == 0 {
        filtered.tell();
    }
    if !report.switched.is_balanced() {
        return Err(anyhow!("the counts of an output do not balance").into());
    }
    ended.finish(&report, &ledger, stopped)
}

/// Receive and transmit queues of a port.
fn queues(port: &Port<Probed>, asked: Option<u16>) -> (u16, u16) {
    let offers = port.capabilities();
    let rx = if offers.max_rx_queues > 0 {
        ports::rx_queues(port, asked)
    } else {
        0
    };
    (rx, offers.max_tx_queues.min(1))
}

/// Configures all ports.
fn configure(
    opened: Vec<Port<Probed>>,
    args: &Args,
    pool: &Mempool,
) -> Result<Vec<Port<Configured>>, PortError> {
    let configured = opened.into_iter().map(|port| {
        let (rx_queues, tx_queues) = queues(&port, args.queues);
        port.configure(PortConfig {
            rx_queues,
            tx_queues,
            ring: args.ring,
            ..PortConfig::new(pool.clone())
        })
    });
    configured.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        assert_eq!(rate("10G"), Ok(10_000_000_000));
        assert_eq!(rate("2.5Gbit"), Ok(2_500_000_000));
        assert_eq!(rate("1000"), Ok(1000));
        for text in ["0", "999", "2T", "max", "10Gpps", "-1", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!(buffer("64k"), Ok(64_000));
        for text in ["59", "68MB", ""] {
            assert!(buffer(text).is_err(), "{text}");
        }
        assert_eq!(age("300s"), Ok(Duration::from_mins(5)));
        assert!(age("0").is_err());
    }
}
