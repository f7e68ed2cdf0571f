//! Options of `pollux bench`, and opening of its ports.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use pollux_app::{Failure, PortOption, Rates, bytes_within, seconds};
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::{Capabilities, Ledger, PortConfig, Registry};

use super::stand::CACHE;
use crate::generate::{EndpointOptions, Flows};
use crate::payload::HEADER;
use crate::promisc::{Filtered, Promisc};
use crate::supervisor::{Options, Rig, Supervisor};

/// Length of the frame check sequence. Sizes here include it, as in RFC 2544 section 9.1; buffers
/// do not hold it.
pub(super) const CHECK_SEQUENCE: u16 = 4;

/// Find the rate at which frames begin to be lost between two ports
///
/// At each rate --trials trials are made (RFC 2544 section 26.1). A trial sends for --trial
/// seconds, waits for frames in flight, and is loss-free if all arrived unchanged. The critical
/// rate is the one at which half of the trials are loss-free. It is determined by bisection between
/// --rate-min and --rate-max, and reported with its uncertainty, the share of loss-free trials at
/// each rate, losses by cause, and latency. A trial whose sender did not reach its rate is not
/// loss-free. Interruptions of the loops are measured: a failed trial with an interruption is
/// repeated, up to three times as often.
///
/// Sizes are those of frames with their check sequence, as in RFC 2544: 64 is the shortest. --cores
/// takes the CPUs of the senders, one for each queue, and that of the receiver. A device
/// distributes flows over its receive queues, so give it several flows. A signal ends the run with
/// the results so far (docs/formats/bench.md).
///
/// Examples:
///   pollux bench --port loopback --rate-max 20M --plot curve.svg
///   pollux bench --tx af_packet:eth1 --rx af_packet:eth2 --cores 2,3 --report run.json
///   pollux bench --tx af_xdp:eth1 --rx af_xdp:eth2 --queues 2 --flows 64 --cores 2,3,4
///   pollux bench --tx vhost-user:/run/a.sock --rx vhost-user:/run/b.sock --sizes 64 --trials 20
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(mut_arg("place", |arg| arg
    .help("One port that sends, and receives the returned frames")
    .required_unless_present("tx")
    .conflicts_with_all(["tx", "rx"])))]
#[command(mut_arg("port", |arg| arg.conflicts_with_all(["tx", "rx"])))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) port: PortOption,

    /// The port that sends
    #[arg(long, value_name = "PORT", requires = "rx")]
    pub(super) tx: Option<String>,

    /// The port that receives
    #[arg(long, value_name = "PORT", requires = "tx")]
    pub(super) rx: Option<String>,

    /// Bytes of the frames, with check sequence; one search for each
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,512,1518",
        value_parser = size
    )]
    pub(super) sizes: Vec<u16>,

    /// The lowest rate, in packets a second
    #[arg(long, value_name = "RATE", default_value = "1k", value_parser = frames)]
    pub(super) rate_min: f64,

    /// The highest rate, in packets a second
    #[arg(long, value_name = "RATE", default_value = "10M", value_parser = frames)]
    pub(super) rate_max: f64,

    /// Duration of sending in a trial: a number of seconds, or a time like 200ms
    #[arg(long, value_name = "TIME", default_value = "0.2", value_parser = seconds)]
    pub(super) trial: Duration,

    /// Trials at each rate
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) trials: u32,

    /// Precision of the critical rate, as a share of it
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = tolerance)]
    pub(super) tolerance: f64,

    /// Share of a trial's frames that may be lost
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(super) loss_tolerance: f64,

    /// Time to wait for frames after the last one that arrived
    #[arg(long, value_name = "TIME", default_value = "0.25", value_parser = seconds)]
    pub(super) settle: Duration,

    /// Queues of each port: a loop sends on each, and one loop receives from all
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) queues: u16,

    /// Number of flows, which differ in their source ports [default: one for each queue]
    #[arg(long, value_name = "N", help_heading = "Flows")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) flows: Option<u16>,

    /// Descriptors in each queue's ring
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(super) ring: usize,

    #[command(flatten)]
    pub(super) endpoints: EndpointOptions,

    /// Write the curves as an SVG picture
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub(super) plot: Option<PathBuf>,

    #[command(flatten)]
    pub(super) promisc: Promisc,

    #[command(flatten)]
    pub(super) run: Options,
}

/// Parses a number of packets a second, for clap's `value_parser`.
fn frames(text: &str) -> Result<f64, String> {
    let rates = Rates {
        units: &["pps"],
        range: 1.0..=1e10,
        max: false,
    };
    let rate = rates.read(text)?.map(|(rate, _)| rate);
    rate.ok_or_else(|| rates.error_text())
}

/// Parses the size of a frame.
fn size(text: &str) -> Result<u16, String> {
    bytes_within(text, 1..=u64::from(u16::MAX)).map(|size| size as u16)
}

/// Parses a share below 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    let share = share.filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "write a share from 0 to below 1, like 0.001".into())
}

/// Parses a tolerance that a search can reach.
fn tolerance(text: &str) -> Result<f64, String> {
    let share = share(text)?;
    let usable = (0.001..=0.5).contains(&share).then_some(share);
    usable.ok_or_else(|| "must be from 0.001 to 0.5".into())
}

impl Args {
    /// Refuses options that contradict each other.
    pub(super) fn check(&self, supervisor: &Supervisor) -> Result<(), Failure> {
        let refuse = |what: String| Err(Failure::Usage(anyhow!(what)));
        let loops = usize::from(self.queues) + 1;
        if ![0, loops].contains(&supervisor.cores().len()) {
            return refuse(format!(
                "--cores: give {loops} CPUs, of the sender on each queue and of the receiver"
            ));
        }
        if self.flows() < self.queues {
            return refuse(format!(
                "--flows {}: give one for each of the {} queues at least",
                self.flows(),
                self.queues
            ));
        }
        if self.rate_min >= self.rate_max {
            return refuse(format!(
                "--rate-min {} is not below --rate-max {}",
                self.rate_min, self.rate_max
            ));
        }
        // Minimum of Ethernet: 64 bytes with check sequence (IEEE 802.3 section 4.2.3.3).
        let least = (self.endpoints.header_len() + HEADER).max(60) + usize::from(CHECK_SEQUENCE);
        match self.sizes.iter().find(|&&size| usize::from(size) < least) {
            Some(size) => refuse(format!(
                "--sizes {size}: a frame has at least {least} bytes"
            )),
            None => Ok(()),
        }
    }

    /// Length of the longest frame, without check sequence.
    pub(super) fn longest(&self) -> u16 {
        self.sizes
            .iter()
            .max()
            .map_or(0, |size| size - CHECK_SEQUENCE)
    }

    pub(super) fn flows(&self) -> u16 {
        self.flows.unwrap_or(self.queues)
    }

    /// Specs of the ports, the sender's first, with their numbers of receive and transmit queues.
    pub(super) fn ports(&self) -> Vec<(&str, u16, u16)> {
        let n = self.queues;
        match (self.port.get(), &self.tx, &self.rx) {
            (None, Some(tx), Some(rx)) => vec![(tx, 0, n), (rx, n, 0)],
            (port, ..) => port.map(|port| (port, n, n)).into_iter().collect(),
        }
    }

    /// Opens the ports and starts them.
    #[allow(clippy::type_complexity)] // taken apart where it is called
    pub(super) fn start(
        &self,
        registry: &Registry,
    ) -> Result<(Rig, Ledger, Mempool, Vec<Flows>, Filtered), Failure> {
        let specs = self.ports();
        let names: Vec<_> = specs.iter().map(|(spec, ..)| spec).collect();
        let (opened, filtered) = self.promisc.open(registry, &names)?;
        for port in &opened {
            let Capabilities { max_frame, .. } = port.capabilities();
            if usize::from(self.longest()) > max_frame {
                return Err(Failure::Usage(anyhow!(
                    "--sizes {}: port {} carries at most {max_frame} bytes and a check sequence",
                    self.longest() + CHECK_SEQUENCE,
                    port.spec()
                )));
            }
        }
        let sender = opened.first().context("no port was opened")?;
        let endpoints = self.endpoints.endpoints(&sender.capabilities());
        let endpoints = endpoints.map_err(Failure::Usage)?;
        let queues = usize::from(self.queues);
        let flows = (0..queues).map(|i| Flows::by_port(endpoints, self.flows(), (i, queues)));
        let flows: Vec<_> = flows.collect::<Result<_, _>>().map_err(Failure::Usage)?;
        // One pool, since a wire inside the process takes buffers from sender to receiver.
        let pool = Mempool::new(PoolConfig {
            buffers: queues * (4 * self.ring.min(1 << 16) + CACHE) + 3 * CACHE,
            data_room: usize::from(self.longest()).max(PoolConfig::default().data_room),
            ..PoolConfig::default()
        })
        .context("no memory for packet buffers")?;
        let configured = opened.into_iter().zip(&specs);
        let configured = configured.map(|(port, &(_, rx_queues, tx_queues))| {
            port.configure(PortConfig {
                rx_queues,
                tx_queues,
                ring: self.ring,
                ..PortConfig::new(pool.clone())
            })
        });
        let configured: Vec<_> = configured.collect::<Result<_, _>>()?;
        let mut ledger = Ledger::new();
        let rig = Rig::start(configured, &mut ledger)?;
        Ok((rig, ledger, pool, flows, filtered))
    }
}
