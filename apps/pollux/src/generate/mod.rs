//! `pollux generate`: sends UDP flows at a given rate.

mod endpoints;
mod flows;
mod rate;
mod sender;
mod sizes;

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use pollux_app::{Failure, PortOption, ports};
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::net::UdpChecksum;
use pollux_pmd::{Capabilities, Ledger, PortConfig, Registry, TscClock};
use serde::Serialize;

pub(crate) use self::endpoints::EndpointOptions;
pub(crate) use self::flows::Flows;
use self::flows::{Addresses, TAG, Vary};
pub(crate) use self::rate::Rate;
use self::sender::BURST;
pub(crate) use self::sender::{Outputs, Sender};
use self::sizes::Sizes;
use crate::payload::{Content, HEADER, Pattern};
use crate::supervisor::{Base, Options, Rig, Supervisor};

/// Buffers in the local cache of each loop.
const CACHE: usize = 512;

/// Default frame length in bytes.
const SIZE: u16 = 64;

/// Send UDP flows at a rate, with contents that the receiver can check byte by byte
///
/// Each payload begins with the number of its flow, its number in the flow and its time of
/// creation, followed by bytes that depend on --pattern and --seed (docs/formats/generator.md).
/// `pollux verify` checks all of it.
///
/// Flows use IPv4, or IPv6 where --src or --dst does. They are sent in turn. Flow n has n added to
/// the source port, or to the field of --vary. Sizes are those of frames without their check
/// sequence. The clock determines the rate: frames that could not be sent in time are sent at once
/// afterwards, but a loop that was held up for more than 10 ms skips the rest, which its report
/// shows (held_up_s).
///
/// Examples:
///   pollux generate af_packet:eth1 --dst 10.0.0.1:9000 --dst-mac 02:00:00:00:00:01 --seconds 10
///   pollux generate vhost-user:/run/a.sock --rate max --size 64 --cores 1
///   pollux generate pcap:tx=flows.pcapng --flows 16 --vary dst-port --size imix --count 100000
///   pollux generate af_packet:eth1 --dst [fd00::1]:9000 --size 1500 --count 100000
///   pollux generate af_packet:eth1 --rate 1.5Gbps --size 64-1500 --burst 8 --report run.json
// An address of IPv6 in an example is no link.
#[allow(rustdoc::broken_intra_doc_links)]
#[derive(clap::Args)]
#[command(verbatim_doc_comment, mut_arg("place", |arg| arg.help("Where frames are sent")))]
pub(crate) struct Args {
    #[command(flatten)]
    port: PortOption,

    /// End after N frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Packets or bits a second: 250k, 1.5Mpps, 10Gbps; or max
    #[arg(long, value_name = "RATE", default_value = "1Mpps", value_parser = Rate::parse)]
    rate: Rate,

    /// Bytes of a frame: 64, or in turn 64,1500, or between 64-1500, or imix [default: 64, or the
    /// minimum over IPv6]
    #[arg(long, value_name = "BYTES", value_parser = Sizes::parse)]
    size: Option<Sizes>,

    /// Frames made together, 1 to 64 [default: as many as are due]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=BURST as i64))]
    burst: Option<u8>,

    /// Transmit queues [default: one for each loop]
    ///
    /// A loop with several queues uses them in turn, burst by burst: frames of a flow may overtake
    /// each other.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    queues: Option<u16>,

    /// Descriptors in each queue's ring
    #[arg(long, value_name = "N", default_value_t = 1024)]
    ring: usize,

    /// Bytes after the header of the payload
    #[arg(long, value_enum, default_value_t = Pattern::Random, help_heading = "Payload")]
    pattern: Pattern,

    /// Seed of random bytes and sizes
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Payload")]
    seed: u64,

    /// Flows
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Flows")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    flows: u16,

    /// Field that differs between flows
    #[arg(long, value_enum, value_delimiter = ',', default_value = "src-port")]
    #[arg(help_heading = "Flows")]
    vary: Vec<Vary>,

    #[command(flatten)]
    endpoints: EndpointOptions,

    /// Tag frames with this VLAN
    #[arg(long, value_name = "ID", help_heading = "Flows")]
    #[arg(value_parser = clap::value_parser!(u16).range(0..4095))]
    vlan: Option<u16>,

    /// Send without UDP checksum, as IPv4 permits
    #[arg(long, help_heading = "Flows")]
    no_checksum: bool,

    /// Leave the UDP checksum to the sending device
    #[arg(long, conflicts_with = "no_checksum", help_heading = "Flows")]
    offload_checksum: bool,

    #[command(flatten)]
    run: Options,
}

/// Content of `--report`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    base: Base,
    flows: u16,
    pattern: &'static str,
    seed: u64,
    rate_asked: String,
    /// Frames and bits a second, from the first frame to the end of the last frame's slot.
    rate_pps: f64,
    rate_bps: f64,
    sent: u64,
    sent_bytes: u64,
    unsent: u64,
    queue_full: u64,
    held_up_s: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        writeln!(
            f,
            "generated {} frames of {} flows; {} unsent at the stop",
            self.sent, self.flows, self.unsent
        )?;
        writeln!(
            f,
            "rate      {:.0} packets/s, {:.0} bit/s, of {}; held up for {:.3} s, transmit queue \
             full {} times",
            self.rate_pps, self.rate_bps, self.rate_asked, self.held_up_s, self.queue_full
        )
    }
}

/// Generates, and writes the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let supervisor = Supervisor::new(&args.run, &[args.port.spec()])?;
    let loops = supervisor.loops();
    let queues = args.queues.map_or(loops, usize::from);
    if queues < loops {
        return Err(Failure::Usage(anyhow!(
            "--queues {queues}: {loops} loops (--cores) need a queue each"
        )));
    }
    let mut opened = ports::open(registry, &[args.port.spec()])?;
    let port = opened.pop().context("no port was opened")?;
    let offered = port.capabilities();
    let longest = args.check_sizes(&offered)?;
    let flows = (0..loops).map(|i| args.flows(&offered, (i, loops)));
    let flows: Vec<_> = flows.collect::<Result<_, _>>().map_err(Failure::Usage)?;

    let pool = Mempool::new(PoolConfig {
        buffers: queues * 2 * args.ring.min(1 << 16) + loops * 2 * CACHE,
        data_room: longest.max(PoolConfig::default().data_room),
        ..PoolConfig::default()
    })
    .context("no memory for packet buffers")?;
    let port = port.configure(PortConfig {
        rx_queues: 0,
        tx_queues: queues as u16,
        ring: args.ring,
        checksum_offload: args.offload_checksum,
        ..PortConfig::new(pool.clone())
    })?;
    // No frame is received, so the ledger stays empty.
    let mut ledger = Ledger::new();
    let rig = Rig::start(vec![port], &mut ledger)?;
    let mut tx: Vec<Vec<_>> = (0..loops).map(|_| Vec::new()).collect();
    for (i, queue) in rig.tx.into_iter().flatten().enumerate() {
        tx[i % loops].push(queue);
    }
    let content = Arc::new(Content::new(args.pattern, args.seed, longest));
    let mut bodies = Vec::new();
    for (i, (tx, flows)) in tx.into_iter().zip(flows).enumerate() {
        let sender = Sender {
            tx: Outputs::new(tx).context("a loop has no queue")?,
            cache: pool.cache(CACHE).context("no packet buffers")?,
            flows,
            sizes: args.sizes().table(args.seed),
            size: 0,
            content: Arc::clone(&content),
            rate: args.rate.share(loops),
            place: (i, loops),
            together: args.burst.map(usize::from),
            left: args.count.map_or(u64::MAX, |n| share(n, i, loops)),
            stop: supervisor.stop.clone(),
            clock: TscClock::get(),
        };
        bodies.push(move || sender.run());
    }
    let mut ended = supervisor.run("generate", bodies, &rig.ports, &rig.views, &ledger)?;

    let (mut unsent, mut queue_full, mut span_s, mut held_up_s) = (0, 0, 0_f64, 0_f64);
    let mut queues = Vec::new();
    for sent in ended.loops.drain(..) {
        unsent += sent.unsent;
        queue_full += sent.full;
        span_s = span_s.max(sent.span_s);
        held_up_s = held_up_s.max(sent.held_up_s);
        queues.extend(sent.tx);
    }
    let stopped = ports::stop(rig.ports, Vec::new(), queues);
    let base = ended.base("generate", &rig.views, &ledger);
    let (sent, sent_bytes) = (base.ports[0].tx_packets, base.ports[0].tx_bytes);
    let report = Report {
        base,
        flows: args.flows,
        pattern: args.pattern.name(),
        seed: args.seed,
        rate_asked: args.rate.to_string(),
        rate_pps: sent as f64 / span_s.max(1e-9),
        rate_bps: sent_bytes as f64 * 8.0 / span_s.max(1e-9),
        sent,
        sent_bytes,
        unsent,
        queue_full,
        held_up_s,
    };
    ended.finish(&report, &ledger, stopped)
}

/// Of `n` frames, the number that loop `i` of `loops` sends.
fn share(n: u64, i: usize, loops: usize) -> u64 {
    n / loops as u64 + u64::from((i as u64) < n % loops as u64)
}

impl Args {
    /// Length of the shortest possible frame.
    fn least(&self) -> usize {
        let tag = if self.vlan.is_some() { TAG } else { 0 };
        // Minimum of Ethernet: 60 bytes without check sequence (IEEE 802.3 section 4.2.3.3).
        (self.endpoints.header_len() + HEADER + tag).max(60)
    }

    /// Lengths of frames.
    fn sizes(&self) -> Sizes {
        let default = || Sizes::List(vec![SIZE.max(self.least() as u16)]);
        self.size.clone().unwrap_or_else(default)
    }

    /// Refuses sizes that do not fit the headers or the port. Returns the longest.
    fn check_sizes(&self, offered: &Capabilities) -> Result<usize, Failure> {
        let (min, max) = self.sizes().bounds();
        let (min, max) = (usize::from(min), usize::from(max));
        let least = self.least();
        if min < least {
            return Err(Failure::Usage(anyhow!(
                "--size {min}: a frame has at least {least} bytes"
            )));
        }
        if max > offered.max_frame {
            return Err(Failure::Usage(anyhow!(
                "--size {max}: port {} carries at most {} bytes",
                self.port.spec(),
                offered.max_frame
            )));
        }
        Ok(max)
    }

    fn flows(&self, offered: &Capabilities, place: (usize, usize)) -> anyhow::Result<Flows> {
        let (src, dst) = self.endpoints.endpoints(offered)?;
        let addresses = Addresses {
            src,
            dst,
            vary: &self.vary,
            checksum: match (self.no_checksum, self.offload_checksum) {
                (true, _) => UdpChecksum::Absent,
                (false, true) => UdpChecksum::Left,
                (false, false) => UdpChecksum::Whole,
            },
        };
        Flows::new(&addresses, self.flows, place, self.vlan).context("--flows")
    }
}
