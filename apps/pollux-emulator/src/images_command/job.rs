//! One run of `images`: makes the stack, opens the link, runs the loop, stops in order.

use std::sync::Arc;

use crate::images::config::ImagesConfig;
use crate::images::link::{FRAME_OVERHEAD, PacketLink as _, PortError, PortLink, SocketLink};
use crate::images::stack::{Stack, StackError};
use crate::images::synthesis::Synthesis;
use anyhow::Context as _;
use pollux_app::ports::{self, PortView};
use pollux_app::{ClockOption, Cpus, Failure, Reports, print};
use pollux_images::formats::Layout;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::lcore;
use pollux_pmd::ledger::SentView;
use pollux_pmd::{Port, PortConfig, PortSpec, Probed, StartedPort, TscClock};

use super::cli::ImagesCli;
use super::control;
use super::files::{Outputs, write_calibration, write_truth};
use super::rdma::through_rdma;
use super::report::{Run, plan};
use super::supervisor::{Supervisor, udp};

/// Headers of IPv4 and UDP, which an MTU includes.
const IP_OVERHEAD: usize = 28;
/// Buffers for packets on their way out, and for what a queue receives.
const BUFFERS: usize = 2048;
/// Buffers in the loop's own cache.
const CACHE: usize = 256;

/// Does what the command line asks for.
pub(crate) fn run(cli: &ImagesCli, clock: ClockOption) -> Result<(), Failure> {
    clock.select()?;
    let config = cli.config().map_err(Failure::usage)?;
    let registry = ports::registry();
    if let Some(spec) = cli.port.get() {
        registry.check(spec)?;
    }
    let cpus = Cpus::of(&cli.cores);
    for cpu in &cpus {
        let allowed = lcore::expect_allowed(*cpu).context("--cores");
        allowed.map_err(Failure::Usage)?;
    }
    if cli.check {
        let through = cli.port.get().or(cli.udp.map(|_| "kernel sockets"));
        return Ok(print(plan(&config, through).map_err(Failure::usage)?)?);
    }
    let outputs = Outputs::new(cli).map_err(Failure::Usage)?;
    let stop = pollux_app::stop_on_signals().context("signals cannot be handled")?;
    let layout = config.layout().map_err(Failure::usage)?;
    let supervisor = Supervisor::new(cli, stop.clone(), &cpus, &|_| true);
    if let Some(address) = &cli.control {
        let Some(stack) = stack(&config, &outputs, &supervisor)? else {
            return Ok(());
        };
        let stack = Arc::new(stack);
        return control::keep(address, config, &stop, &cpus, |config, stop, begin| {
            let reports = cli.report.outputs()?.ready()?;
            let port = open(cli, &layout)?;
            let supervisor = Supervisor::new(cli, stop, &cpus, begin);
            perform(&supervisor, port, config, Some(&stack), reports)
        });
    }
    // Before the run: a path that cannot be written is reported at once.
    let files = [&outputs.report, &outputs.json].into_iter().flatten();
    let reports = Reports::new(cli.report.prints_json(), files)?;
    let port = open(cli, &layout)?;
    let stack = stack(&config, &outputs, &supervisor)?.map(Arc::new);
    perform(&supervisor, port, config, stack.as_ref(), reports)
}

/// Opens the port that the command line names, if it names one.
fn open(cli: &ImagesCli, layout: &Layout) -> Result<Option<Port<Probed>>, Failure> {
    let Some(spec) = cli.port.get() else {
        return Ok(None);
    };
    let port = ports::registry().open(spec)?;
    // Lines are written in packets of the endpoint.
    if cli.rdma.is_none() {
        PortLink::check(spec, &port.capabilities(), layout)
            .map_err(|error| Failure::Run(error.into()))?;
    }
    Ok(Some(port))
}

/// The images to send; `None` after a signal. What is known about them is written.
fn stack(
    config: &ImagesConfig,
    outputs: &Outputs,
    supervisor: &Supervisor<'_>,
) -> Result<Option<Stack>, Failure> {
    let (cli, stop) = (supervisor.cli, &supervisor.stop);
    let made = if cli.raw.is_empty() {
        let synthesis = Synthesis::new(config).map_err(Failure::usage)?;
        let made = Stack::synthetic(&synthesis, stop);
        if made.is_ok() {
            if let Some(output) = &outputs.truth {
                write_truth(output, &synthesis)?;
            }
            if let Some(folder) = &cli.calibration_out {
                write_calibration(folder, cli.report.overwrite, &synthesis)?;
            }
        }
        made
    } else {
        Stack::from_files(config, &cli.raw, stop)
    };
    match made {
        Ok(stack) => Ok(Some(stack)),
        Err(StackError::Stopped) => Ok(None),
        Err(error @ (StackError::Read { .. } | StackError::Memory { .. })) => {
            Err(Failure::Run(error.into()))
        }
        Err(error) => Err(Failure::usage(error)),
    }
}

/// Sends all frames, unless a signal came before there was a stack, and reports.
fn perform(
    supervisor: &Supervisor<'_>,
    port: Option<Port<Probed>>,
    config: ImagesConfig,
    stack: Option<&Arc<Stack>>,
    reports: Reports,
) -> Result<(), Failure> {
    let run = match (stack, port) {
        (Some(stack), Some(port)) => match supervisor.cli.rdma {
            Some(to) => through_rdma(port, to, config, stack, supervisor)?,
            None => through_port(port, config, stack, supervisor)?,
        },
        (Some(stack), None) => through_sockets(config, stack, supervisor)?,
        (None, port) => supervisor.not_begun(config, port.map(|port| port.spec().to_owned())),
    };
    let report = run.json();
    let printed = reports.print(&report, |out| write!(out, "{run}"));
    reports.write(&report)?;
    run.verdict().map_err(Failure::Run)?;
    Ok(printed?)
}

fn through_port(
    port: Port<Probed>,
    mut config: ImagesConfig,
    stack: &Arc<Stack>,
    supervisor: &Supervisor<'_>,
) -> Result<Run, Failure> {
    let spec = port.spec().to_owned();
    let capture = spec
        .parse::<PortSpec>()
        .is_ok_and(|spec| spec.driver() == "pcap");
    let offered = port.capabilities();
    // In a recording there is no answer to what is sent now.
    let rx_queues = if capture || offered.max_rx_queues == 0 {
        0
    } else {
        ports::rx_queues(&port, None)
    };
    let layout = *stack.layout();
    let pool = Mempool::new(PoolConfig {
        buffers: BUFFERS * usize::from(rx_queues + 1),
        data_room: (FRAME_OVERHEAD + layout.payload_bytes()).next_multiple_of(64),
        ..PoolConfig::default()
    })
    .context("memory for packets")?;
    let port = port.configure(PortConfig {
        rx_queues,
        ..PortConfig::new(pool.clone())
    })?;
    let started = port.start()?;
    let views = [PortView::new(&started)];
    let StartedPort { port, rx, tx } = started;
    config.addresses.src_mac = config.addresses.src_mac.or(offered.mac);

    let cache = pool.cache(CACHE).context("memory for packets")?;
    let failed = |error: PortError| Failure::Run(error.into());
    let mut link = PortLink::new(&config, &layout, tx, rx, cache, capture).map_err(failed)?;
    if config.addresses.dst_mac.is_none() && offered.mac.is_some() && rx_queues > 0 {
        link.resolve(&mut config, &layout, &TscClock::get(), &supervisor.stop)
            .map_err(failed)?;
    }
    let sent = link.sent_views();
    let port = [port];
    let (mut report, link) = supervisor.launch(&config, stack, link, (&port, &views), || true)?;
    let ledger = link.ledger();
    let (tx, rx) = link.into_queues();
    let stopped = ports::stop(port.into(), rx, tx);
    // What a file or a device refuses late is known only now.
    let errors: u64 = sent.iter().map(SentView::errors).sum();
    let late = errors.saturating_sub(report.send_errors);
    report.packets_sent = report.packets_sent.saturating_sub(late);
    report.send_errors += late;
    Ok(Run {
        spec,
        tx_packets: sent.iter().map(SentView::packets).sum(),
        failed: stopped.err().map(anyhow::Error::new),
        ..supervisor.finish(config, report, &ledger)
    })
}

fn through_sockets(
    config: ImagesConfig,
    stack: &Arc<Stack>,
    supervisor: &Supervisor<'_>,
) -> Result<Run, Failure> {
    let link = SocketLink::open(&config, stack.layout()).map_err(anyhow::Error::new)?;
    let packet = IP_OVERHEAD + stack.layout().payload_bytes();
    if let Some(mtu) = link.mtu().filter(|&mtu| (mtu as usize) < packet) {
        tracing::warn!(
            "{}: the route has an MTU of {mtu} B, below the {packet} B of a packet: the kernel sends \
             fragments, which image-stream does not reassemble; `ip link set dev IF mtu 9000` on all \
             interfaces of the way",
            udp(&config)
        );
    }
    let (report, link) = supervisor.launch(&config, stack, link, (&[], &[]), || true)?;
    let ledger = link.ledger();
    Ok(Run {
        spec: udp(&config),
        tx_packets: report.packets_sent,
        ..supervisor.finish(config, report, &ledger)
    })
}
