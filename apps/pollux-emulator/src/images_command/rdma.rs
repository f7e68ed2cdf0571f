//! A run into the memory of a receiver.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::images::config::ImagesConfig;
use crate::images::link::{PacketLink as _, RdmaError, RdmaLink, RdmaOptions};
use crate::images::stack::Stack;
use anyhow::Context as _;
use pollux_app::Failure;
use pollux_app::ports::{self, PortView};
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::{Port, PortConfig, Probed, StartedPort};

use super::report::Run;
use super::supervisor::Supervisor;

/// Packet buffers of the endpoint, and those in its local cache.
const BUFFERS: usize = 4096;
const CACHE: usize = 256;
/// Bytes of a buffer: a packet of the largest MTU fits.
const ROOM: usize = 5120;
/// How long the receiver may take to listen, and to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes all frames into the memory of the receiver at `to`.
pub(super) fn through_rdma(
    port: Port<Probed>,
    to: SocketAddr,
    mut config: ImagesConfig,
    stack: &Arc<Stack>,
    supervisor: &Supervisor<'_>,
) -> Result<Run, Failure> {
    let spec = port.spec().to_owned();
    let pool = Mempool::new(PoolConfig {
        buffers: BUFFERS,
        data_room: ROOM,
        ..PoolConfig::default()
    })
    .context("memory for packets")?;
    let started = port.configure(PortConfig::new(pool.clone()))?.start()?;
    let views = [PortView::new(&started)];
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = started;
    let offered = port.capabilities();
    config.addresses.src_mac = config.addresses.src_mac.or(offered.mac);
    let queues = rx.pop().zip(tx.pop());
    let queues = queues.with_context(|| format!("{spec}: it has to receive and to send"))?;
    let cache = pool.cache(CACHE).context("memory for packets")?;
    let options = RdmaOptions {
        to,
        waits: supervisor.cli.rdma_wait,
        patience: PATIENCE,
        stop: supervisor.stop.clone(),
    };
    let connected = RdmaLink::connect(&config, stack, &offered, queues, cache, &options);
    if matches!(connected, Err(RdmaError::Stopped)) {
        return Ok(supervisor.not_begun(config, Some(spec)));
    }
    let (link, connections) = connected.context("--rdma")?;
    let port = [port];
    let launched = supervisor.launch(&config, stack, link, (&port, &views), || {
        connections.are_open()
    });
    let (report, link) = launched?;
    let is_receiver_gone = !connections.are_open();
    let (ledger, tx_packets) = (link.ledger(), link.frames_sent());
    let (tx, rx) = link.into_queues();
    let stopped = ports::stop(port.into(), rx, tx);
    Ok(Run {
        spec,
        tx_packets,
        is_receiver_gone,
        failed: stopped.err().map(anyhow::Error::new),
        ..supervisor.finish(config, report, &ledger)
    })
}
