//! `pollux forward`: forwards frames between ports.

mod lane;
mod swap;

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use pollux_app::{Failure, PortsOption, ports};
use pollux_pmd::lcore::idle::IdlePolicy;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::port::{Configured, Port};
use pollux_pmd::{Ledger, PortConfig, PortError, Probed, Registry, RxQueue, TxQueue};
use serde::Serialize;

use self::lane::{Counts, Forwarder, Lane};
use self::swap::Mode;
use crate::frame_budget::FrameBudget;
use crate::supervisor::{Base, Options, Rig, Supervisor};

/// Buffers in the local cache of each loop.
const CACHE: usize = 512;

/// Forward frames between ports
///
/// With two ports, each sends what the other receives, in both directions at once; with one port,
/// frames go back out of it. Unlike DPDK's testpmd it leaves ports as they are: with `,promisc=on` in
/// its spec a port takes frames for other stations too. A direction is left out if a port cannot receive or the other cannot
/// send. Queue n of one port is forwarded to queue n of the other; queues are distributed over the
/// loops in turn.
///
/// Frames that do not fit into the transmit queue are retried every microsecond; after --retries
/// attempts they are dropped and counted as `tx-full`. Frames that a device refuses later are
/// counted as tx_errors of their port.
///
/// Examples:
///   pollux forward af_packet:eth1 af_packet:eth2 --cores 2
///   pollux forward vhost-user:/run/a.sock --mode 5tswap --seconds 10 --report run.json
///   pollux forward pcap:rx=run.pcap pcap:tx=copy.pcapng
#[derive(clap::Args)]
#[command(verbatim_doc_comment, mut_arg("ports", |arg| arg
    .help("One port or two")
    .num_args(1..=2)
    .required_unless_present("port")))]
pub(crate) struct Args {
    #[command(flatten)]
    ports: PortsOption,

    /// Header fields that are exchanged in each frame
    #[arg(long, value_enum, default_value_t = Mode::Io)]
    mode: Mode,

    /// Only from the first port to the second
    #[arg(long)]
    one_way: bool,

    /// Queues of each port [default: one for each of the loops]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    queues: Option<u16>,

    /// Descriptors in each queue's ring
    #[arg(long, value_name = "N", default_value_t = 1024)]
    ring: usize,

    /// Frames moved at once: 32 or 64
    #[arg(long, value_name = "N", default_value = "32", value_parser = ["32", "64"])]
    burst: String,

    /// Attempts to send frames to a full transmit queue
    #[arg(long, value_name = "N", default_value_t = 64)]
    retries: u32,

    /// Idle mode of the loops: busy (polls on), pause, or sleep[=ROUNDS]: after ROUNDS idle
    /// iterations a loop sleeps until a device wakes it, where devices can
    #[arg(long, value_name = "HOW", default_value_t)]
    idle: IdlePolicy,

    /// End after N frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    #[command(flatten)]
    run: Options,
}

/// Content of `--report`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    base: Base,
    mode: &'static str,
    forwarded: u64,
    retries: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        writeln!(
            f,
            "forwarded {} frames ({}), offered again {} times",
            self.forwarded, self.mode, self.retries
        )
    }
}

/// Forwards, and writes the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let supervisor = Supervisor::new(&args.run, &args.ports.specs())?;
    let specs = args.ports.specs();
    if specs.len() > 2 {
        return Err(Failure::Usage(anyhow!(
            "{} ports: frames go between two, or back out of one",
            specs.len()
        )));
    }
    let opened = ports::open(registry, &specs)?;
    let directions = directions(&opened, args.one_way)?;
    let queues = args.queues.unwrap_or(supervisor.loops() as u16);
    if supervisor.loops() > usize::from(queues) {
        return Err(Failure::Usage(anyhow!(
            "--cores names {} loops for {queues} queues: give no more cores than --queues",
            supervisor.loops()
        )));
    }
    let longest = opened.len() * usize::from(queues);
    let pool = Mempool::new(PoolConfig {
        // Both rings of each queue full, and as many frames in flight.
        buffers: longest * (4 * args.ring.min(1 << 16) + CACHE) + supervisor.loops() * CACHE,
        ..PoolConfig::default()
    })
    .context("no memory for packet buffers")?;
    let configured = configure(opened, &directions, queues, args.ring, &pool)?;
    let mut ledger = Ledger::new();
    let rig = Rig::start(configured, &mut ledger)?;
    let lanes = lanes(rig.rx, rig.tx, &directions, queues);
    let budget = args.count.map(|count| Arc::new(FrameBudget::new(count)));
    let mut shares: Vec<Vec<Lane>> = (0..supervisor.loops()).map(|_| Vec::new()).collect();
    for lane in lanes {
        shares[usize::from(lane.rx.queue()) % supervisor.loops()].push(lane);
    }
    let (mut bodies, mut counts) = (Vec::new(), Vec::<Arc<Counts>>::new());
    for (i, lanes) in shares.into_iter().enumerate() {
        let cache = pool.cache(CACHE).context("no packet buffers")?;
        let (budget, stop) = (budget.clone(), supervisor.stop.clone());
        let forwarder = Forwarder::new(
            lanes,
            cache,
            args.mode,
            args.retries,
            budget,
            stop,
            args.idle,
        )
        .context("--idle")?;
        ledger.add(format!("loop {i}"), forwarder.tally());
        counts.push(forwarder.counts());
        // The burst length is a compile-time constant.
        let long = args.burst == "64";
        bodies.push(move || {
            if long {
                forwarder.run::<64>()
            } else {
                forwarder.run::<32>()
            }
        });
    }
    let mut ended = supervisor.run("forward", bodies, &rig.ports, &rig.views, &ledger)?;

    let (mut rx, mut tx) = (Vec::new(), Vec::new());
    for lane in ended.loops.drain(..).flatten() {
        rx.push(lane.rx);
        tx.push(lane.tx);
    }
    let stopped = ports::stop(rig.ports, rx, tx);
    let base = ended.base("forward", &rig.views, &ledger);
    let report = Report {
        forwarded: base.ledger.delivered,
        base,
        mode: args.mode.name(),
        retries: counts.iter().map(|counts| counts.retries.get()).sum(),
    };
    ended.finish(&report, &ledger, stopped)
}

/// Source and destination port, as indices.
type Direction = (usize, usize);

/// All possible directions between the ports.
fn directions(ports: &[Port<Probed>], one_way: bool) -> Result<Vec<Direction>, Failure> {
    let mut directions = match ports.len() {
        1 => vec![(0, 0)],
        _ if one_way => vec![(0, 1)],
        _ => vec![(0, 1), (1, 0)],
    };
    directions.retain(|&(from, to)| {
        ports[from].capabilities().max_rx_queues > 0 && ports[to].capabilities().max_tx_queues > 0
    });
    if directions.is_empty() {
        return Err(Failure::Usage(anyhow!(
            "no direction to forward in: one port must receive, and its destination must send"
        )));
    }
    Ok(directions)
}

/// Configures each port, with the queues of its directions alone.
fn configure(
    opened: Vec<Port<Probed>>,
    directions: &[Direction],
    queues: u16,
    ring: usize,
    pool: &Mempool,
) -> Result<Vec<Port<Configured>>, PortError> {
    let configured = opened.into_iter().enumerate().map(|(place, port)| {
        let receives = directions.iter().any(|direction| direction.0 == place);
        let sends = directions.iter().any(|direction| direction.1 == place);
        port.configure(PortConfig {
            rx_queues: queues * u16::from(receives),
            tx_queues: queues * u16::from(sends),
            ring,
            ..PortConfig::new(pool.clone())
        })
    });
    configured.collect()
}

/// Pairs the queues of each direction. `rx` and `tx` have an entry for each port.
fn lanes(
    rx: Vec<Vec<RxQueue>>,
    tx: Vec<Vec<TxQueue>>,
    directions: &[Direction],
    queues: u16,
) -> Vec<Lane> {
    let mut rx: Vec<_> = rx.into_iter().map(Vec::into_iter).collect();
    let mut tx: Vec<_> = tx.into_iter().map(Vec::into_iter).collect();
    let mut lanes = Vec::new();
    for &(from, to) in directions {
        for _ in 0..queues {
            let lane = rx[from].next().zip(tx[to].next());
            lanes.extend(lane.map(|(rx, tx)| Lane { rx, tx }));
        }
    }
    lanes
}
