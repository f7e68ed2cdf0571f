//! The endpoint of a tool, polled by a thread of its own.

use anyhow::{Context as _, Result};
use pollux_app::ports;
use pollux_app::{Failure, LedgerReport};
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::{Clock, Ledger, Port, PortConfig, Registry, Started, StartedPort, TscClock};
use pollux_rdma::Endpoint;
use pollux_rdma::roce::{RoceCounts, RoceEndpoint, RoceLoop, RoceOptions};

use super::args::Options;

/// Buffers of the pool, and in the local cache of the loop.
const BUFFERS: usize = 8192;
const CACHE: usize = 512;
/// Bytes of a buffer: a packet of the largest MTU fits.
const ROOM: usize = 5120;
/// Polls without anything to do, after which the loop lets other threads run.
const IDLE: u32 = 64;

/// An endpoint on a port.
pub(super) struct Host {
    pub(super) endpoint: Endpoint,
    pub(super) roce: RoceEndpoint,
    port: Port<Started>,
    lcore: Lcore<RoceLoop>,
    stop: StopFlag,
    ledger: Ledger,
}

impl Host {
    /// Starts the port, and the loop.
    pub(super) fn start(options: &Options, registry: &Registry) -> Result<Self, Failure> {
        let pool = Mempool::new(PoolConfig {
            buffers: BUFFERS,
            data_room: ROOM,
            ..PoolConfig::default()
        })
        .context("no memory for packet buffers")?;
        let mut opened = ports::open(registry, &[options.port.spec()])?;
        let port = opened.pop().context("no port")?;
        let capabilities = port.capabilities();
        let StartedPort {
            port,
            mut rx,
            mut tx,
        } = port.configure(PortConfig::new(pool.clone()))?.start()?;
        let queues = rx.pop().zip(tx.pop()).context("a queue is missing")?;
        let cache = pool.cache(CACHE).context("no packet buffers")?;
        let roce = RoceOptions {
            mac: options.mac,
            speed: port.link().speed,
            ..RoceOptions::new(options.ip)
        };
        let mut ledger = Ledger::new();
        ledger.add("rx", queues.0.tally());
        let made = RoceEndpoint::new(&roce, &capabilities, queues, cache);
        let (endpoint, roce) = made.map_err(Failure::usage)?;
        ledger.add("rdma", roce.tally());
        let stop = StopFlag::new();
        let flag = stop.clone();
        let lcore = lcore::launch("rdma", None, move || poll(roce, &flag));
        Ok(Self {
            endpoint: endpoint.endpoint(),
            roce: endpoint,
            port,
            lcore: lcore.map_err(anyhow::Error::from)?,
            stop,
            ledger,
        })
    }

    /// Stops both.
    pub(super) fn end(self) -> Result<(RoceCounts, LedgerReport)> {
        self.stop.stop();
        let roce = self.lcore.join()?;
        let counts = roce.counts().get();
        let (rx, tx) = roce.into_queues();
        self.port.stop(vec![rx], tx.into_iter().collect())?;
        Ok((counts, self.ledger.check()?.into()))
    }
}

fn poll(mut roce: RoceLoop, stop: &StopFlag) -> RoceLoop {
    let clock = TscClock::get();
    let begin = clock.now();
    let mut idle = 0;
    while !stop.is_set() {
        let cycles = clock.now().0.wrapping_sub(begin.0);
        if roce.poll(clock.to_ns(cycles)) {
            idle = 0;
        } else if idle < IDLE {
            idle += 1;
        } else {
            std::thread::yield_now();
        }
    }
    roce
}
