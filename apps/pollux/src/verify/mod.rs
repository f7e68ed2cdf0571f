//! `pollux verify`: checks that generated frames arrive completely, unchanged and in order.

mod checker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use pollux_app::{Failure, PortsOption, ports, seconds};
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::net::{MAX_PAYLOAD, ParseOptions};
use pollux_pmd::{Clock, Ledger, PortConfig, Registry, TscClock};
use serde::Serialize;

use self::checker::Checked;
pub(crate) use self::checker::{Checker, Until};
use crate::payload::{Content, Pattern};
use crate::promisc::Promisc;
use crate::supervisor::{Base, Options, Quantiles, Rig, Supervisor};

/// Buffers in the local cache of the loop.
const CACHE: usize = 512;

/// Timeout with --count for the first frame, whose sender may have to be started on another
/// machine, and for each of the others.
const WAIT: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(1);

/// Check that the frames of `pollux generate` arrive completely, unchanged, once and in order
///
/// Every byte of each datagram is compared with its header, --pattern and --seed
/// (docs/formats/generator.md); they must be those of the generator. Other frames are counted as
/// foreign. On the machine that sent the frames, latency is measured from the creation of a frame
/// to its arrival.
///
/// Missing frames are detected by the numbers of the received ones; --count also detects those
/// missing at the beginning and at the end. A corrupt frame counts as missing as well, since its
/// number is not reliable.
///
/// The run ends when --count frames have arrived, or when no more arrive: after --wait for the
/// first, after --idle for the next. A time stamp outside the last ten seconds of this machine's
/// clock, such as that of another machine or of a recording, gives no latency: it is counted as not
/// comparable.
///
/// The exit status is 1 if frames are missing, corrupt or duplicate, if none arrives (within --wait,
/// or before the run ends otherwise: by --seconds, at the end of a recording, or by Ctrl-C), or if none
/// of the received frames is a generator's. It is 0 only where frames were verified.
///
/// Examples:
///   pollux verify af_packet:eth2 --count 100000 --report run.json
///   pollux verify vhost-user:/run/a.sock --seed 7 --seconds 10 --cores 2
///   pollux verify pcap:rx=received.pcap
#[derive(clap::Args)]
#[command(verbatim_doc_comment, mut_arg("ports", |arg| arg
    .help("Where frames are received; of several ports, they are counted together")
    .required_unless_present("port")))]
pub(crate) struct Args {
    #[command(flatten)]
    ports: PortsOption,

    /// Number of sent frames: end when they have arrived
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// End when no frame has arrived for this time after the start [default: 30 with --count]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    wait: Option<Duration>,

    /// End when no frame has arrived for this time after the first one [default: 1 with --count]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    idle: Option<Duration>,

    /// Queues of each port; one loop polls them all
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    queues: u16,

    /// Descriptors in each queue's ring
    #[arg(long, value_name = "N", default_value_t = 1024)]
    ring: usize,

    /// Bytes after the header of the payload
    #[arg(long, value_enum, default_value_t = Pattern::Random, help_heading = "Payload")]
    pattern: Pattern,

    /// Seed of random bytes
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Payload")]
    seed: u64,

    /// Do not verify checksums, which a kernel may have left to a NIC
    #[arg(long, help_heading = "Payload")]
    trust_checksums: bool,

    #[command(flatten)]
    promisc: Promisc,

    #[command(flatten)]
    run: Options,
}

/// Content of `--report`.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    base: Base,
    pattern: &'static str,
    seed: u64,
    received: u64,
    bytes: u64,
    missing: u64,
    duplicate: u64,
    reordered: u64,
    corrupt: u64,
    foreign: u64,
    flows: usize,
    restarts: u64,
    rate_pps: f64,
    latency_ns: Option<Quantiles>,
    /// Frames with stamps of another clock.
    latency_not_comparable: u64,
    /// Time waited for a first frame that did not arrive.
    waited_s: Option<f64>,
}

impl Report {
    fn new(args: &Args, base: Base, checked: Checked, recorded: bool) -> Self {
        let Checked {
            counts,
            sequence,
            flows,
            waited,
            ..
        } = checked;
        let clock = TscClock::get();
        let span = counts.span.map_or(0, |(first, last)| last.since(first));
        let span_s = clock.to_ns(span).0 as f64 / 1e9;
        let latency = counts.latency.view().percentiles();
        let comparable = !recorded && (latency.count > 0 || counts.not_comparable == 0);
        Self {
            base,
            pattern: args.pattern.name(),
            seed: args.seed,
            received: counts.received,
            bytes: counts.bytes,
            missing: args.count.map_or(sequence.missing, |count| {
                count.saturating_sub(sequence.unique)
            }),
            duplicate: sequence.duplicates,
            reordered: sequence.reordered,
            corrupt: counts.corrupt,
            foreign: counts.foreign,
            flows,
            restarts: sequence.resyncs,
            rate_pps: counts.received.saturating_sub(1) as f64 / span_s.max(1e-9),
            latency_ns: comparable.then(|| latency.into()),
            // The frames of a recording arrived long ago.
            latency_not_comparable: if recorded { 0 } else { counts.not_comparable },
            waited_s: waited.map(|wait| wait.0 as f64 / 1e9),
        }
    }

    fn verdict(&self) -> anyhow::Result<()> {
        if let Some(waited) = self.waited_s {
            return Err(anyhow!(
                "no frame of the generator arrived unchanged within {waited} s (--wait)"
            ));
        }
        if self.received == 0 && self.foreign > 0 {
            return Err(anyhow!(
                "none of the {} received frames is a generator's",
                self.foreign
            ));
        }
        if self.missing + self.duplicate + self.corrupt == 0 {
            // Whatever ended the run: no frame has been found right.
            ensure!(
                self.received > 0,
                "no frame arrived in {:.3} s, so that nothing was verified: check the sender and the link",
                self.base.duration_s
            );
            return Ok(());
        }
        Err(anyhow!(
            "{} frames are missing, {} corrupt, {} came twice",
            self.missing,
            self.corrupt,
            self.duplicate
        ))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        writeln!(
            f,
            "verified  {} frames of {} flows, {:.0} packets/s: {} missing, {} corrupt, {} came \
             twice, {} out of order; {} foreign",
            self.received,
            self.flows,
            self.rate_pps,
            self.missing,
            self.corrupt,
            self.duplicate,
            self.reordered,
            self.foreign
        )?;
        if let Some(latency) = &self.latency_ns {
            writeln!(f, "latency   {latency}")?;
        }
        if self.latency_not_comparable > 0 {
            writeln!(
                f,
                "latency   not comparable of {} frames: their stamps are of another clock, as that \
                 of another machine or of a recording",
                self.latency_not_comparable
            )?;
        }
        Ok(())
    }
}

/// Receives and checks frames, and writes the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let supervisor = Supervisor::new(&args.run, &args.ports.specs())?;
    supervisor.expect_one_loop()?;
    let (opened, filtered) = args.promisc.open(registry, &args.ports.specs())?;
    let recorded = opened.iter().all(|port| port.capabilities().recorded);
    let queues = opened.len() * usize::from(args.queues);
    let pool = Mempool::new(PoolConfig {
        buffers: queues * (2 * args.ring.min(1 << 16) + CACHE) + CACHE,
        ..PoolConfig::default()
    })
    .context("no memory for packet buffers")?;
    let configured = opened.into_iter().map(|port| {
        port.configure(PortConfig {
            rx_queues: args.queues,
            tx_queues: 0,
            ring: args.ring,
            ..PortConfig::new(pool.clone())
        })
    });
    let configured: Vec<_> = configured.collect::<Result<_, _>>()?;
    let mut ledger = Ledger::new();
    let rig = Rig::start(configured, &mut ledger)?;
    let queues = rig.rx.into_iter().flatten().collect();
    let options = if args.trust_checksums {
        ParseOptions::TRUSTED
    } else {
        ParseOptions::default()
    };
    let limit = |given: Option<Duration>, default| {
        let limit = given.or(args.count.map(|_| default));
        limit.map(|limit| Ns(limit.as_nanos() as u64))
    };
    let until = Until {
        count: args.count,
        wait: limit(args.wait, WAIT),
        idle: limit(args.idle, IDLE),
    };
    let content = Arc::new(Content::new(args.pattern, args.seed, MAX_PAYLOAD));
    let cache = pool.cache(CACHE).context("no packet buffers")?;
    let all = 0..=u16::MAX;
    let stop = supervisor.stop.clone();
    let checker = Checker::new(queues, cache, content, options, all, until, stop);
    ledger.add("verify", checker.tally());
    if !recorded {
        supervisor.latencies.add("verify", checker.latency());
    }
    let mut ended = supervisor.run(
        "verify",
        vec![move || checker.run()],
        &rig.ports,
        &rig.views,
        &ledger,
    )?;

    let mut checked = ended.loops.pop().context("the loop left nothing")?;
    let queues = std::mem::take(&mut checked.queues);
    let stopped = ports::stop(rig.ports, queues, Vec::new());
    let base = ended.base("verify", &rig.views, &ledger);
    let report = Report::new(args, base, checked, recorded);
    ended.finish(&report, &ledger, stopped)?;
    if report.received == 0 {
        filtered.tell();
    }
    Ok(report.verdict()?)
}
