//! `pollux rdma play`: one end of a recorded conversation, with every number of it chosen.

mod config;
mod conversation;
mod report;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use pollux_app::{Failure, NamedFile, PortOption, ReportOptions, ports};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::{Ledger, PortConfig, Registry, RxQueue, StartedPort};
use pollux_rdma::roce::{RoceEndpoint, RoceLoop, RoceOptions};

use self::config::Config;
use self::conversation::Conversation;
use self::report::Report;
use crate::supervisor::SCHEMA;

/// Buffers of each pool.
const BUFFERS: usize = 4096;
/// Buffers in the local cache of the loop.
const CACHE: usize = 256;
/// Bytes of a buffer: a packet of the largest MTU fits.
const ROOM: usize = 5120;
/// Polls at one time: an endpoint that is busy for longer has no end.
const POLLS: usize = 1 << 20;

/// Replay a peer's part of a conversation to an endpoint whose keys and numbers are given
///
/// The capture has what the peer sends; its time stamps are the time. The endpoint posts its requests
/// before the first frame, takes one frame a poll, and does what is due before a frame's time first.
/// What it sends goes to the other file, and what its memory holds at the end to DIR/KEY.bin. The
/// configuration is TOML:
///
///   ip = "10.0.0.1"
///   mac = "02:00:00:00:00:01"
///   [[region]]                  # registered memory
///   key = 0x11223344
///   address = 0x10000           # as peers have it
///   bytes = 4096
///   access = ["write"]          # rights of peers: "read", "write"
///   file = "first.bin"          # first contents; else zero
///   [[qp]]                      # a queue pair, connected
///   number = 0x11
///   kind = "rc"                 # or "uc"
///   peer = 0x22
///   peer_ip = "10.0.0.2"
///   peer_mac = "02:00:00:00:00:02"
///   recv_psn = 100              # of the peer's first packet
///   send_psn = 5000             # of the endpoint's
///   mtu = 1024
///   receives = 4                # posted at the start
///   receive_bytes = 1024        # of each
///   timeout = 14                # 4.096 us x 2^14; also retry (7), rnr_retry (7), rnr_timer (12)
///   [[post]]                    # a request of the endpoint
///   qp = 0x11
///   op = "put"                  # or "get", "send"
///   region = 0x11223344         # with `at` and `bytes` the endpoint's memory
///   at = 0
///   bytes = 100
///   remote = 0x20000            # address and key of the peer's memory
///   key = 0x55667788
///   immediate = 7               # with "put" and "send", if wanted
///
/// Example: pollux rdma play --config play.toml --port pcap:rx=in.pcap,tx=out.pcapng --memory-out memory
#[allow(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    rustdoc::broken_intra_doc_links
)] // TOML
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    mut_arg("place", |arg| arg.help("Capture that is received and file that is sent to"))
)]
#[command(after_help = "SIGINT and SIGTERM end the replay in order.\n\n\
                  Exit status: 0 when the conversation was replayed, or stopped, whatever the peer did in it, 1 when it \
                  failed, 2 on a wrong option or configuration.")]
pub(crate) struct Args {
    #[command(flatten)]
    port: PortOption,

    /// The endpoint and its requests, as TOML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Write what the memory holds at the end, each region to KEY.bin
    #[arg(long, value_name = "DIR")]
    memory_out: Option<PathBuf>,

    #[command(flatten)]
    report: ReportOptions,
}

/// Files that a replay reads, and writes beside its report.
fn files(args: &Args, config: &Config) -> Vec<NamedFile> {
    let mut files = NamedFile::of_port(args.port.spec());
    files.push(NamedFile::read("--config", &args.config));
    for region in &config.region {
        let first = region.file.iter();
        files.extend(first.map(|file| NamedFile::read("[[region]] file", file)));
        let last = args.memory_out.iter().map(|folder| {
            let path = folder.join(format!("{}.bin", region.key));
            NamedFile::written(format!("--memory-out {}", path.display()), &path)
        });
        files.extend(last);
    }
    files
}

/// Replays, and writes the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let named = || format!("--config {}", args.config.display());
    let config = Config::read(&args.config).with_context(named);
    let config = config.map_err(Failure::Usage)?;
    let reports = args.report.outputs()?;
    reports.expect_beside(&files(args, &config))?;
    if let Some(folder) = &args.memory_out {
        let created = fs::create_dir_all(folder);
        created.with_context(|| format!("--memory-out {}", folder.display()))?;
    }
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let reports = reports.ready()?;
    let times = frame_times(args, registry, &stop)?;

    let pool = pool()?;
    let mut opened = ports::open(registry, &[args.port.spec()])?;
    let port = opened.pop().context("no port")?;
    let capabilities = port.capabilities();
    let started = port.configure(PortConfig::new(pool.clone()))?.start()?;
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = started;
    let queues = rx.pop().zip(tx.pop()).context("a queue is missing")?;
    let options = RoceOptions {
        mac: Some(config.mac),
        queue_pairs: config.qp.len().max(1),
        ..RoceOptions::new(config.ip)
    };
    let cache = cache(&pool)?;
    let mut ledger = Ledger::new();
    ledger.add("rx", queues.0.tally());
    let made = RoceEndpoint::new(&options, &capabilities, queues, cache);
    let (endpoint, mut roce) = made.map_err(Failure::usage)?;
    ledger.add("rdma", roce.tally());
    let conversation = Conversation::new(&config, &endpoint).with_context(named);
    let mut conversation = conversation.map_err(Failure::Usage)?;

    replay(&mut roce, &mut conversation, &times, &stop)?;
    let end = if stop.is_set() { "stopped" } else { "complete" };
    let counts = roce.counts().get();
    let (rx, tx) = roce.into_queues();
    port.stop(vec![rx], tx.into_iter().collect())?;
    if let Some(folder) = &args.memory_out {
        conversation.save(folder)?;
    }
    let balance = ledger.balance();
    let report = Report {
        schema: SCHEMA,
        command: "rdma play",
        end,
        ledger: balance.into(),
        rdma: counts.into(),
        completions: conversation.completions,
        failed: conversation.failed,
        balance,
    };
    reports.tell(&report, |out| write!(out, "{report}"))?;
    ledger.check().map_err(anyhow::Error::from)?;
    Ok(())
}

fn pool() -> anyhow::Result<Mempool> {
    let config = PoolConfig {
        buffers: BUFFERS,
        data_room: ROOM,
        ..PoolConfig::default()
    };
    Mempool::new(config).context("no memory for packet buffers")
}

fn cache(pool: &Mempool) -> anyhow::Result<PoolCache> {
    pool.cache(CACHE).context("no packet buffers")
}

/// Time stamps of the capture, by a port of its own: what is due before a frame has to be done before it
/// is received.
fn frame_times(args: &Args, registry: &Registry, stop: &StopFlag) -> Result<Vec<Ns>, Failure> {
    let spec = args.port.spec();
    let pool = pool()?;
    registry.check(spec)?;
    let spec: pollux_pmd::PortSpec = spec.parse().map_err(Failure::usage)?;
    let file = spec.option("rx").filter(|_| spec.driver() == "pcap");
    let (Some(file), Some(_)) = (file, spec.option("tx")) else {
        let why = "it replays captures: give --port pcap:rx=FILE,tx=FILE";
        return Err(Failure::Usage(anyhow::anyhow!(why)));
    };
    let port = registry.open(&format!("pcap:rx={file}"))?;
    let config = PortConfig {
        tx_queues: 0,
        ..PortConfig::new(pool.clone())
    };
    let StartedPort { port, mut rx, tx } = port.configure(config)?.start()?;
    let mut cache = cache(&pool)?;
    let queue = rx.first_mut().context("a queue is missing")?;
    let times = drain(queue, &mut cache, stop);
    drop(cache);
    port.stop(rx, tx)?;
    Ok(times)
}

fn drain(queue: &mut RxQueue, cache: &mut PoolCache, stop: &StopFlag) -> Vec<Ns> {
    let (mut times, mut burst) = (Vec::new(), Burst::<32>::new());
    while !queue.state().is_final() && !stop.is_set() {
        queue.rx(cache, &mut burst);
        times.extend(
            burst
                .iter()
                .map(|mbuf| mbuf.wire_time().map_or(Ns(0), |time| Ns(time.0))),
        );
        cache.free_burst(&mut burst);
    }
    times
}

/// The time goes on with the frames, and never back. A stop leaves out the frames that follow.
fn replay(
    roce: &mut RoceLoop,
    conversation: &mut Conversation,
    times: &[Ns],
    stop: &StopFlag,
) -> anyhow::Result<()> {
    let mut now = times.first().copied().unwrap_or_default();
    settle(roce, conversation, now)?;
    for &time in times.iter().take_while(|_| !stop.is_set()) {
        while let Some(due) = roce.next_deadline().filter(|due| due.0 < time.0) {
            now = now.max(due);
            settle(roce, conversation, now)?;
        }
        now = now.max(time);
        roce.poll_up_to(now, 1);
        conversation.take_events();
    }
    settle(roce, conversation, now)
}

/// Polls without receiving, until nothing is left to do at this time.
fn settle(roce: &mut RoceLoop, conversation: &mut Conversation, now: Ns) -> anyhow::Result<()> {
    for _ in 0..POLLS {
        let is_busy = roce.poll_up_to(now, 0);
        conversation.take_events();
        if !is_busy {
            return Ok(());
        }
    }
    ensure!(
        false,
        "the endpoint is still busy after {POLLS} polls at one time"
    );
    Ok(())
}
