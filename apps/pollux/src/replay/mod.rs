//! `pollux replay`: sends a recording again, with optional fault injection.

mod options;
mod outgoing;
mod player;

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use pollux_app::{Failure, PortOption, ports};
use pollux_faults::{BottleneckOptions, Counts, FaultRates, Injector};
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::{Ledger, PortConfig, PortSpec, Registry};
use serde::Serialize;

use self::options::{Delay, Reorder, Speed, bottleneck, probability};
use self::player::{AHEAD, Player};
use crate::supervisor::{Base, Options, Quantiles, Rig, Supervisor};

/// Buffers in the local cache of the loop.
const CACHE: usize = 512;

/// Send a recording, at its own pace or another, with optional faults
///
/// Reads pcap and pcapng, plain or compressed by gzip or zstd. Frames are sent when they are due:
/// at the recorded intervals, divided by --speed. A port that is a file is written at once, with
/// the due times as time stamps. With --loop the repetitions form one continuous recording.
///
/// A frame has at most one fault, and each is counted when it is applied, so that a receiver's
/// counts can be compared with this report, cause by cause; equal seeds give equal faults. A
/// corrupted byte is one of a datagram's payload (of another frame, after the Ethernet header), so
/// that only its checksum is wrong. A reordered frame is sent after the next DISTANCE frames of the
/// recording; one at a time is held back for that. A delayed frame is overtaken by those that are
/// sent meanwhile; --delay without probability delays every frame that has no other fault. Frames
/// lost by --loss are dropped as `impaired` in the ledger.
///
/// A frame that is held back keeps its buffer. If no other of --buffers is free, the rest of the
/// recording waits for it, and is sent after it; where frames do not wait until they are due
/// (files, --speed max), that is an error.
///
/// Examples:
///   pollux replay run.pcapng af_packet:eth1
///   pollux replay run.pcapng af_packet:eth1 --speed 2 --loop 10 --loss 0.01 --seed 7
///   pollux replay run.pcap pcap:tx=worse.pcapng --reorder 0.05:4 --delay 0.3-2ms:0.01
#[derive(clap::Args)]
#[command(verbatim_doc_comment, mut_arg("place", |arg| arg.help("Where it is sent")))]
pub(crate) struct Args {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    port: PortOption,

    /// Speed as a multiple of the recorded one, or max
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = Speed::parse)]
    speed: Speed,

    /// Send the recording N times, 0: until stopped
    #[arg(long = "loop", value_name = "N", default_value_t = 1)]
    rounds: u64,

    /// Buffers for frames that are read ahead or held back
    #[arg(long, value_name = "N", default_value_t = 16384)]
    #[arg(value_parser = clap::value_parser!(u32).range(4096..=1 << 24))]
    buffers: u32,

    /// Descriptors in the transmit queue's ring
    #[arg(long, value_name = "N", default_value_t = 1024)]
    ring: usize,

    /// Probability that a frame is not sent
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    #[arg(help_heading = "Faults")]
    loss: f64,

    /// Probability that a frame is sent after the next DISTANCE frames [DISTANCE: 1]
    #[arg(long, value_name = "P[:DISTANCE]", default_value = "0", value_parser = Reorder::parse)]
    #[arg(help_heading = "Faults", hide_default_value = true)]
    reorder: Reorder,

    /// Probability that a frame is sent twice
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    #[arg(help_heading = "Faults")]
    duplicate: f64,

    /// Delay frames by 300us, 0.5-2ms or 500us-2ms, with a probability
    #[arg(long, value_name = "[MIN-]MAX[:P]", value_parser = Delay::parse)]
    #[arg(help_heading = "Faults")]
    delay: Option<Delay>,

    /// Probability that a byte of a frame is changed
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    #[arg(help_heading = "Faults")]
    corrupt: f64,

    /// Pass a link of MBIT Mbit/s whose queue marks frames (ECN) above MARK bytes, and is full at CAPACITY
    #[arg(long, value_name = "MBIT:MARK:CAPACITY", value_parser = bottleneck)]
    #[arg(help_heading = "Faults")]
    bottleneck: Option<BottleneckOptions>,

    /// Seed of the faults
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Faults")]
    seed: u64,

    #[command(flatten)]
    run: Options,
}

/// Content of `--report`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    base: Base,
    speed: String,
    rounds: u64,
    seed: u64,
    read: u64,
    #[serde(flatten)]
    impaired: Counts,
    sent: u64,
    unsent: u64,
    behind_ns: Option<Quantiles>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        let Counts {
            lost,
            delayed,
            duplicated,
            reordered,
            corrupted,
            marked,
            congested,
        } = self.impaired;
        writeln!(
            f,
            "replayed  {} frames: {lost} lost, {delayed} delayed, {duplicated} sent twice, \
             {reordered} reordered, {corrupted} corrupted; {} sent, {} unsent at the stop",
            self.read, self.sent, self.unsent
        )?;
        if marked + congested > 0 {
            writeln!(
                f,
                "congested {marked} marked, {congested} lost in the full queue"
            )?;
        }
        if let Some(behind) = &self.behind_ns {
            writeln!(f, "behind    {behind}")?;
        }
        Ok(())
    }
}

/// Replays, and writes the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let source = args.source()?;
    let ports = [source.as_str(), args.port.spec()];
    let supervisor = Supervisor::new(&args.run, &ports)?;
    supervisor.expect_one_loop()?;
    let impairments = args.impairments().map_err(Failure::Usage)?;
    let opened = ports::open(registry, &ports)?;
    // A file accepts frames ahead of their time.
    let sink: PortSpec = args.port.spec().parse().map_err(Failure::usage)?;
    let paced = args.speed != Speed::Max && sink.driver() != "pcap";

    let buffers = args.buffers as usize;
    let pool = Mempool::new(PoolConfig {
        buffers,
        ..PoolConfig::default()
    })
    .context("no memory for packet buffers")?;
    let configured = opened.into_iter().zip([(1, 0), (0, 1)]);
    let configured = configured.map(|(port, (rx_queues, tx_queues))| {
        port.configure(PortConfig {
            rx_queues,
            tx_queues,
            ring: args.ring,
            ..PortConfig::new(pool.clone())
        })
    });
    let configured: Vec<_> = configured.collect::<Result<_, _>>()?;
    let mut ledger = Ledger::new();
    let rig = Rig::start(configured, &mut ledger)?;
    let mut rx = rig.rx.into_iter().flatten();
    let mut tx = rig.tx.into_iter().flatten();
    let queues = rx.next().zip(tx.next()).context("a queue is missing")?;
    let Reorder { behind, .. } = args.reorder;
    // At most all buffers can wait.
    let injector = Injector::new(impairments, behind, args.seed, buffers.max(AHEAD));
    let injector = match args.bottleneck {
        Some(options) => injector.with_bottleneck(options).map_err(Failure::usage)?,
        None => injector,
    };
    let cache = pool.cache(CACHE).context("no packet buffers")?;
    let player = Player::new(
        queues,
        cache,
        injector,
        args.speed,
        paced,
        supervisor.stop.clone(),
    );
    ledger.add("replay", player.tally());
    let mut ended = supervisor.run(
        "replay",
        vec![move || player.run()],
        &rig.ports,
        &rig.views,
        &ledger,
    )?;

    let played = ended.loops.pop().context("the loop left nothing")?;
    let stopped = ports::stop(rig.ports, vec![played.rx], vec![played.tx]);
    let base = ended.base("replay", &rig.views, &ledger);
    let report = Report {
        speed: args.speed.to_string(),
        rounds: args.rounds,
        seed: args.seed,
        read: played.read,
        impaired: played.impaired,
        sent: base.ports.iter().map(|port| port.tx_packets).sum(),
        unsent: played.unsent,
        behind_ns: paced.then(|| played.behind.view().percentiles().into()),
        base,
    };
    ended.finish(&report, &ledger, stopped)?;
    if played.stalled {
        return Err(Failure::Run(anyhow!(
            "no buffer is left, since too many frames are held back: give more than --buffers \
             {buffers}, or shorter delays"
        )));
    }
    Ok(())
}

impl Args {
    /// Opens the recording as a port.
    fn source(&self) -> Result<String, Failure> {
        let path = self.file.to_str().filter(|path| !path.contains(','));
        let path = path.with_context(|| {
            let path = self.file.display();
            format!("{path}: the name of a recording has no comma, and is UTF-8: rename it")
        });
        let path = path.map_err(Failure::Usage)?;
        Ok(format!("pcap:rx={path},loop={}", self.rounds))
    }

    fn impairments(&self) -> anyhow::Result<FaultRates> {
        let others = self.loss + self.reorder.probability + self.duplicate + self.corrupt;
        let impairments = FaultRates {
            loss: self.loss,
            delay: self.delay.map_or(0.0, |delay| {
                delay.probability.unwrap_or((1.0 - others).max(0.0))
            }),
            delay_by: self.delay.map_or_else(Default::default, |delay| delay.by),
            duplicate: self.duplicate,
            reorder: self.reorder.probability,
            corrupt: self.corrupt,
        };
        impairments.check()?;
        Ok(impairments)
    }
}
