//! `pollux streams`: who is sending what.

mod destination;
mod listener;
mod page;
mod report;
mod senders;
mod view;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{Context, anyhow};
use pollux_pmd::lcore::{self, launch};
use pollux_pmd::mempool::region::PageSize;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::net::{ParseOptions, Reassembler, ReassemblyConfig};
use pollux_pmd::{Ledger, Port, PortConfig, Probed, Registry, RxQueue, StartedPort};
use pollux_program::metrics::{Books, Watch};
use pollux_program::ports::PortView;
use pollux_program::{Failure, PortsOption, Reports, ports};

use self::listener::Listener;
use self::report::Report;
use self::senders::Senders;
use self::view::View;
use crate::house::{House, Options};
use crate::promisc::Promisc;

/// Senders that are told apart. A flood of made-up addresses fills the table and goes on being
/// counted, as `other`.
const MAX_SENDERS: usize = 1 << 16;

/// Rows of the table, unless asked for more.
const ROWS: usize = 20;

/// Buffers for each queue: what its ring and a few bursts hold, and the longest datagrams.
const BUFFERS_PER_QUEUE: usize = 4096;

/// Who is sending what, and what was dropped
///
/// Packets, bytes and rate by source address and UDP destination port, where they go (address and
/// VLANs, the outermost first; `+1` where there is one more destination), and every frame that is no
/// such datagram, by cause. A capture file is read to its end; a live port is listened to until
/// --duration is over or the program is interrupted, with a table that is renewed every second on
/// a terminal. Nothing is sent: ARP and ping get no answer from here.
///
/// Bytes are those of UDP payloads. Datagrams that come in IP fragments are dropped, each fragment
/// by itself, unless --reassemble puts them together. Rates are the mean over the run, or over the recorded time.
///
/// As JSON: {streams: [{src_ip, dst_port, packets, bytes, to: [{dst_ip, vlans}], rate_pps,
/// rate_bps}], dropped: {cause: count}, from_wire, delivered, balanced}, and other: {packets, bytes}
/// where some senders are not listed, and unseen: [{spec, unpolled_queues}] of ports that have fewer
/// queues than their devices (docs/formats/toolbox.md).
///
/// Example: pollux streams pcap:rx=run7.pcap --json
#[derive(clap::Args)]
#[command(mut_arg("ports", |arg| arg
    .help("Ports to listen to; of several, the senders are summed")
    .required_unless_present("port")))]
#[command(mut_arg("quiet", |arg| arg.help("No table that is renewed every second")))]
pub(crate) struct Args {
    #[command(flatten)]
    ports: PortsOption,

    /// Receive queues of each port [default: as many as its device shares frames out over]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    queues: Option<u16>,

    /// List only the N busiest senders [default: 20; with --json: all]
    ///
    /// All others are summed up, so that nothing is missing from the list.
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Do not verify checksums
    ///
    /// For frames that were captured on the host that sent them: its kernel leaves checksums to
    /// the NIC, and captures frames before they get there.
    #[arg(long)]
    trust_checksums: bool,

    /// Put datagrams together that come in fragments of IPv4
    ///
    /// Each counts as one packet, and all of its fragments as delivered. What is not complete within
    /// 100 ms (of the recording's time, if it is one), contradicts itself, or finds 64 other
    /// datagrams or 1024 buffers of the port under way is dropped, for a cause that begins with
    /// `reassembly-`.
    #[arg(long)]
    reassemble: bool,

    #[command(flatten)]
    promisc: Promisc,

    #[command(flatten)]
    run: Options,
}

/// Listens, and prints the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let house = House::new(&args.run)?;
    house.expect_one_loop()?;
    let (opened, filtered) = args.promisc.open(registry, &args.ports.specs())?;
    let recorded = opened.iter().all(|port| port.capabilities().recorded);
    let queues = |port: &Port<Probed>| ports::rx_queues(port, args.queues);
    let all_queues: usize = opened.iter().map(|port| usize::from(queues(port))).sum();
    let pool = pool(all_queues)?;
    let config = PortConfig {
        tx_queues: 0,
        ..PortConfig::new(pool.clone())
    };
    let configured: Result<Vec<_>, _> = opened
        .into_iter()
        .map(|port| {
            let rx_queues = queues(&port);
            port.configure(PortConfig {
                rx_queues,
                ..config.clone()
            })
        })
        .collect();

    let (mut started, mut views) = (Vec::new(), Vec::new());
    let (mut queues, mut ledger) = (Vec::new(), Ledger::new());
    for port in configured? {
        let port = port.start()?;
        views.push(PortView::new(&port));
        let StartedPort { port, rx, .. } = port;
        for queue in &rx {
            ledger.add(port.spec(), queue.tally());
        }
        queues.extend(rx);
        started.push(port);
    }
    let options = if args.trust_checksums {
        ParseOptions::TRUSTED
    } else {
        ParseOptions::default()
    };
    let reassemblers = if args.reassemble {
        reassemblers(&queues)?
    } else {
        Vec::new()
    };
    let senders = Senders::new(MAX_SENDERS);
    let (reader, senders_seen) = (senders.reader(), senders.reader());
    let cache = pool.cache(512).context("no packet buffers")?;
    let listener = Listener::new(queues, cache, senders, options, reassemblers);
    ledger.add("listener", listener.tally());

    let books = Books {
        ledger: ledger.clone(),
        ports: views.clone(),
    };
    let page = page::Source {
        books,
        senders: senders_seen,
    };
    let mut watch = Watch::start(house.metrics(), page, &views, house.cores())?;
    let begun = house.begin(&["streams"])?;
    let lcore = launch("streams", house.cores().first().copied(), {
        let stop = house.stop.clone();
        move || listener.run(&stop)
    })
    .context("cannot start the poll loop")?;
    // After the launch: a new thread inherits where its parent may run.
    lcore::keep_off(house.cores());
    let rows = args.top.unwrap_or(ROWS);
    let shows = !house.is_quiet() && std::io::stderr().is_terminal();
    let mut view = shows.then(|| View::new(rows));
    while !lcore.is_finished() {
        house.is_over(&begun);
        if let Some(view) = &mut view {
            view.refresh(&reader, &ledger);
        }
        if !watch.keep(&started) {
            house.stop.stop();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let elapsed = begun.elapsed();
    let heard = lcore.join().context("the poll loop failed")?;

    // What a port says at its end (a damaged file) comes after the report of what it yielded.
    let stopped = ports::stop(started, heard.queues, Vec::new());
    if let Some(view) = view {
        view.clear();
    }
    let span = if recorded { heard.recorded } else { elapsed };
    let report = |top| Report::new(&reader, &[], &ledger.balance(), top, span).with_unseen(&views);
    let printed = tell(begun.into_reports(), args.top, report);
    if ledger.balance().from_wire == 0 {
        filtered.tell();
    }
    stopped?;
    ledger.check().map_err(|imbalance| anyhow!(imbalance))?;
    Ok(printed?)
}

/// Buffers for so many queues.
fn pool(queues: usize) -> anyhow::Result<Mempool> {
    Mempool::new(PoolConfig {
        buffers: BUFFERS_PER_QUEUE * queues,
        // Too small for hugepages to matter, and no reason to warn where there are none.
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .context("no memory for packet buffers")
}

/// Prints or writes the report, which is made with so many senders.
fn tell(
    reports: Reports,
    top: Option<usize>,
    report: impl Fn(usize) -> Report,
) -> anyhow::Result<()> {
    let all = report(top.unwrap_or(usize::MAX));
    reports.tell(&all, |out| report(top.unwrap_or(ROWS)).write(out))
}

/// One for each port.
fn reassemblers(queues: &[RxQueue]) -> anyhow::Result<Vec<(u16, Reassembler)>> {
    let mut ports: Vec<_> = queues.iter().map(RxQueue::port).collect();
    ports.dedup();
    let reassembler = |port| Ok((port, Reassembler::new(ReassemblyConfig::default())?));
    ports.into_iter().map(reassembler).collect()
}
