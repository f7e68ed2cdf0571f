//! The Pollux side of `scripts/interop`: opens any port by its spec, sends frames whose every byte
//! follows from a seed and a number, and checks each frame that comes back or in.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::{Parser, Subcommand};
use pollux_app::{Failure, exit, log_to_stderr, stop_on_signals};
use pollux_interop::exchange::{Exchange, Job, Outcome};
use pollux_interop::frames::{Frames, Kind, Returned, default_ends, endpoint};
use pollux_pmd::driver::Statistics;
use pollux_pmd::lcore;
use pollux_pmd::mempool::region::PageSize;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::net::UdpEndpoint;
use pollux_pmd::{Balance, Ledger, PortConfig, StartedPort};
use serde::Serialize;

/// One side of an exchange of seeded frames; prints a line of JSON, and ends with status 0 only if
/// every frame came that was to come, right in every byte, and the ledger balances.
#[derive(Parser)]
struct Cli {
    /// What to do
    #[command(subcommand)]
    command: Command,

    /// Port spec
    #[arg(long, global = true, default_value = "loopback")]
    port: String,
    /// Queues in each direction
    #[arg(long, global = true, default_value_t = 1)]
    queues: u16,
    /// Descriptors of each queue
    #[arg(long, global = true, default_value_t = 1024)]
    ring: usize,
    /// Frames to send and to receive
    #[arg(long, global = true, default_value_t = 10_000)]
    count: u64,
    /// Frame sizes in turn, in bytes, frame check sequence included
    #[arg(
        long,
        global = true,
        value_delimiter = ',',
        default_value = "64,65,128,333,512,1024,1518"
    )]
    sizes: Vec<usize>,
    /// Seed of the payloads
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// What the frames are
    #[arg(long, global = true, value_enum, default_value_t = Kind::Udp)]
    kind: Kind,
    /// Our end, MAC/IP:PORT (the first of 16 ports)
    #[arg(long, global = true, value_parser = endpoint)]
    near: Option<UdpEndpoint>,
    /// The peer's end, MAC/IP:PORT
    #[arg(long, global = true, value_parser = endpoint)]
    far: Option<UdpEndpoint>,
    /// Seconds without a frame after which to give up
    #[arg(long, global = true, default_value_t = 5)]
    patience: u64,
    /// End after so many seconds, whatever has come
    #[arg(long, global = true)]
    seconds: Option<u64>,
    /// Pool buffers
    #[arg(long, global = true, default_value_t = 8192)]
    buffers: usize,
    /// Bytes of a frame that a buffer holds
    #[arg(long, global = true, default_value_t = PoolConfig::default().data_room)]
    data_room: usize,
    /// CPU to run on
    #[arg(long, global = true)]
    core: Option<usize>,
}

#[derive(Subcommand)]
enum Command {
    /// Send frames, and receive them back from the peer
    Echo {
        /// What the peer does to them
        #[arg(long, value_enum, default_value_t = Returned::Same)]
        returned: Returned,
        /// Most frames on their way at a time
        #[arg(long, default_value_t = 64)]
        window: u64,
        /// Begin when a line comes on standard input: the port is there before the peer is ready
        #[arg(long)]
        hold: bool,
        /// Do not wait for the link: send from the first poll on
        #[arg(long)]
        at_once: bool,
        /// Go on, with new frames, when some do not come back
        #[arg(long, requires = "seconds")]
        tolerate_loss: bool,
    },
    /// Send frames only
    Send {
        /// Microseconds between bursts of 32
        #[arg(long, default_value_t = 0)]
        pause: u64,
    },
    /// Receive what `send` with the same options sends
    Receive,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    outcome: Outcome,
    /// Frames that the ports' queues counted.
    from_wire: u64,
    tx_packets: u64,
    tx_errors: u64,
    balanced: bool,
    ledger: String,
    pool_full: bool,
    /// The device's or the kernel's own counters at the end.
    statistics: Statistics,
}

fn run(cli: &Cli) -> Result<bool> {
    let mut job = Job {
        send: cli.count,
        receive: cli.count,
        window: 64,
        patience: Duration::from_secs(cli.patience),
        limit: cli.seconds.map(Duration::from_secs),
        tolerate_loss: false,
        pause: Duration::ZERO,
    };
    let (mut expected, mut hold, mut wait) = (Returned::Same, false, true);
    match cli.command {
        Command::Echo {
            returned,
            window,
            hold: held,
            at_once,
            tolerate_loss,
        } => {
            (expected, hold, wait) = (returned, held, !at_once);
            job.window = window;
            if tolerate_loss {
                job.tolerate_loss = true;
                job.patience = Duration::MAX;
            }
        }
        Command::Send { pause } => {
            job.receive = 0;
            job.pause = Duration::from_micros(pause);
        }
        Command::Receive => job.send = 0,
    }
    let (near, far) = default_ends();
    let ends = (cli.near.unwrap_or(near), cli.far.unwrap_or(far));
    let mut frames = Frames::new(ends, cli.kind, cli.seed, &cli.sizes, expected)?;

    let pool = Mempool::new(PoolConfig {
        buffers: cli.buffers,
        data_room: cli.data_room,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })?;
    let port = pollux_app::ports::registry().open(&cli.port)?;
    let offered = port.capabilities();
    let config = PortConfig {
        rx_queues: cli.queues.min(offered.max_rx_queues) * u16::from(job.receive > 0),
        tx_queues: cli.queues.min(offered.max_tx_queues) * u16::from(job.send > 0),
        ring: cli.ring,
        ..PortConfig::new(pool.clone())
    };
    ensure!(
        job.send == 0 || config.tx_queues > 0,
        "{} cannot send",
        cli.port
    );
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = port.configure(config)?.start()?;
    let stop = stop_on_signals()?;
    if let Some(core) = cli.core {
        lcore::pin("interop", core)?;
    }

    let mut ledger = Ledger::new();
    for queue in &rx {
        ledger.add("port", queue.tally());
    }
    let received: Vec<_> = rx.iter().map(pollux_pmd::RxQueue::tally).collect();
    let sent: Vec<_> = tx.iter().map(pollux_pmd::TxQueue::sent).collect();
    if hold {
        std::io::stdin().read_line(&mut String::new())?;
    }
    // The peer may need a moment: link up, rings enabled.
    let patience = Instant::now() + Duration::from_secs(cli.patience);
    while wait && !port.link().up && Instant::now() < patience && !stop.is_set() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let outcome =
        Exchange::new(&pool, &mut rx, &mut tx, &mut ledger)?.run(&job, &mut frames, &stop)?;
    for queue in &mut rx {
        queue.sync_counters();
    }
    let statistics = port.statistics();
    drop(port.stop(rx, tx)?);
    let balance = ledger.balance();
    let report = Report {
        from_wire: received.iter().map(|view| view.balance().from_wire).sum(),
        tx_packets: sent.iter().map(pollux_pmd::ledger::SentView::packets).sum(),
        tx_errors: sent.iter().map(pollux_pmd::ledger::SentView::errors).sum(),
        balanced: Balance::is_balanced(&balance),
        ledger: balance.to_string(),
        pool_full: pool.available() == pool.buffers(),
        statistics,
        outcome,
    };
    println!("{}", serde_json::to_string(&report).context("report")?);
    let complete = job.tolerate_loss
        || ((job.send == 0 || report.outcome.sent == job.send)
            && (job.receive == 0 || report.outcome.received == job.receive)
            && report.outcome.missing == 0
            && report.outcome.duplicate == 0);
    Ok(complete && report.outcome.corrupt == 0 && report.balanced && report.pool_full)
}

fn main() -> ExitCode {
    log_to_stderr("warn");
    let result = run(&Cli::parse()).map_err(Failure::from);
    exit(result.and_then(|right| {
        right.then_some(()).ok_or_else(|| {
            anyhow!("frames are missing, wrong, or not accounted for: see the report").into()
        })
    }))
}
