//! `pollux streams`: lists the senders of UDP datagrams.

mod destination;
mod listener;
mod page;
mod report;
mod senders;
mod view;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{Context, anyhow};
use pollux_app::metrics::{Ledgers, Watch};
use pollux_app::ports::PortView;
use pollux_app::{Failure, PortsOption, Reports, ports};
use pollux_pmd::endpoint::Classifier;
use pollux_pmd::lcore::{self, launch};
use pollux_pmd::mempool::region::PageSize;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::net::{ParseOptions, ReassemblyConfig};
use pollux_pmd::{Ledger, Port, PortConfig, Probed, Registry, RxQueue, StartedPort};

use self::listener::Listener;
use self::report::Report;
use self::senders::Senders;
use self::view::View;
use crate::promisc::Promisc;
use crate::supervisor::{Options, Supervisor};

/// Maximum number of distinct senders. Further ones, such as a flood of forged addresses, are
/// counted together as `other`.
const MAX_SENDERS: usize = 1 << 16;

/// Default number of rows of the table.
const ROWS: usize = 20;

/// Buffers for each queue: what its ring and a few bursts hold, and the longest datagrams.
const BUFFERS_PER_QUEUE: usize = 4096;

/// List the senders of UDP datagrams, and dropped frames by cause
///
/// Packets, bytes and rate by source address and UDP destination port, with the destinations
/// (address and VLANs, the outermost first; `+1` for one more destination), and all other frames by
/// drop cause. A capture file is read to its end; a live port is read until --duration is over or
/// the program is interrupted, with a table that is updated every second on a terminal. Nothing is
/// sent: ARP and ping get no answer.
///
/// Bytes are those of UDP payloads. IP fragments are dropped, each counted by itself, unless
/// --reassemble reassembles them. Rates are means over the run, or over the recorded time.
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

    /// Receive queues of each port [default: as many as its device distributes frames over]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    queues: Option<u16>,

    /// List only the N busiest senders [default: 20; with --json: all]
    ///
    /// All others are summed up, so that the list is complete.
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Do not verify checksums
    ///
    /// For frames that were captured on the host that sent them: its kernel leaves checksums to the
    /// NIC, and captures frames before they reach it.
    #[arg(long)]
    trust_checksums: bool,

    /// Reassemble datagrams from IPv4 fragments
    ///
    /// Each datagram counts as one packet, and all of its fragments as delivered. A datagram is
    /// dropped, with a cause that begins with `reassembly-`, if it is not complete within 100 ms
    /// (of the recording's time, for a recording), if its fragments are inconsistent, or if 64
    /// other datagrams or 1024 buffers of the port are in use.
    #[arg(long)]
    reassemble: bool,

    #[command(flatten)]
    promisc: Promisc,

    #[command(flatten)]
    run: Options,
}

/// Listens, and prints the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let supervisor = Supervisor::new(&args.run, &args.ports.specs())?;
    supervisor.expect_one_loop()?;
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
    let mut polled: Vec<_> = queues.iter().map(RxQueue::port).collect();
    polled.dedup();
    let mut classifier = Classifier::new(options);
    if args.reassemble {
        let bounds = ReassemblyConfig::default();
        let reassembling = classifier.with_reassembly(bounds, polled.len());
        classifier = reassembling.map_err(anyhow::Error::from)?;
    }
    let senders = Senders::new(MAX_SENDERS);
    let (reader, senders_seen) = (senders.reader(), senders.reader());
    let cache = pool.cache(512).context("no packet buffers")?;
    let listener = Listener::new(queues, cache, senders, classifier, polled);
    ledger.add("listener", listener.tally());

    let ledgers = Ledgers {
        ledger: ledger.clone(),
        ports: views.clone(),
    };
    let page = page::Source {
        ledgers,
        senders: senders_seen,
    };
    let mut watch = Watch::start(supervisor.metrics(), page, &views, supervisor.cores())?;
    let begun = supervisor.begin(&["streams"])?;
    let lcore = launch("streams", supervisor.cores().first().copied(), {
        let stop = supervisor.stop.clone();
        move || listener.run(&stop)
    })
    .context("cannot start the poll loop")?;
    // After the launch: a new thread inherits the CPU affinity of its parent.
    lcore::keep_off(supervisor.cores());
    let rows = args.top.unwrap_or(ROWS);
    let shows = !supervisor.is_quiet() && std::io::stderr().is_terminal();
    let mut view = shows.then(|| View::new(rows));
    while !lcore.is_finished() {
        supervisor.is_over(&begun);
        if let Some(view) = &mut view {
            view.refresh(&reader, &ledger);
        }
        if !watch.keep(&started) {
            supervisor.stop.stop();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let elapsed = begun.elapsed();
    let finished = lcore.join().context("the poll loop failed")?;

    // What a port says at its end (a damaged file) comes after the report of what it yielded.
    let stopped = ports::stop(started, finished.queues, Vec::new());
    if let Some(view) = view {
        view.clear();
    }
    let span = if recorded { finished.recorded } else { elapsed };
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
