//! The endpoint of a tool, polled by the thread that works with it, or by one of its own meanwhile.

use anyhow::{Context as _, Result};
use pollux_app::ports;
use pollux_app::{Failure, LedgerReport};
use pollux_pmd::lcore::idle::{Idle, IdleError, IdlePolicy};
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::mempool::time::{Ns, Tsc};
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
/// Longest sleep of the loop, after which it does what was posted meanwhile.
const LONGEST: Ns = Ns(1_000_000);
/// Polls without anything to do, after which other threads run.
const YIELD: u32 = 64;

/// An endpoint on a port.
pub(super) struct Host {
    pub(super) endpoint: Endpoint,
    pub(super) roce: RoceEndpoint,
    port: Port<Started>,
    /// `None` while a caller polls.
    background: Option<Background>,
    ledger: Ledger,
}

/// The thread that polls while this end does something else: an exchange, or nothing.
struct Background {
    lcore: Lcore<Poller>,
    stop: StopFlag,
}

impl Background {
    fn start(mut poller: Poller) -> Result<Self> {
        let stop = StopFlag::new();
        let flag = stop.clone();
        let lcore = lcore::launch("rdma", None, move || {
            while !flag.is_set() {
                poller.poll();
            }
            poller
        })?;
        Ok(Self { lcore, stop })
    }

    fn end(self) -> Result<Poller> {
        self.stop.stop();
        Ok(self.lcore.join()?)
    }
}

/// The endpoint's loop, and its rests.
pub(super) struct Poller {
    roce: RoceLoop,
    idle: Idle,
    policy: IdlePolicy,
    clock: TscClock,
    begin: Tsc,
    /// Polls since the last one that had something to do.
    empty: u32,
}

impl Poller {
    fn new(roce: RoceLoop, policy: IdlePolicy) -> Result<Self, IdleError> {
        let clock = TscClock::get();
        Ok(Self {
            idle: roce.idle(policy, LONGEST)?,
            roce,
            policy,
            clock,
            begin: clock.now(),
            empty: 0,
        })
    }

    /// One poll, and a rest if there was nothing to do.
    pub(super) fn poll(&mut self) {
        let cycles = self.clock.now().0.wrapping_sub(self.begin.0);
        let is_busy = self.roce.poll(self.clock.to_ns(cycles));
        self.empty = if is_busy {
            0
        } else {
            self.empty.saturating_add(1)
        };
        self.roce.rest(&mut self.idle, &self.clock, is_busy);
        if self.policy == IdlePolicy::Busy && self.empty > YIELD {
            std::thread::yield_now();
        }
    }
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
        let poller = Poller::new(roce, options.idle).context("--idle");
        let poller = poller.map_err(Failure::Usage)?;
        Ok(Self {
            endpoint: endpoint.endpoint(),
            roce: endpoint,
            port,
            background: Some(Background::start(poller)?),
            ledger,
        })
    }

    /// Has the caller poll the loop during `work`: no other thread has to be woken for an event.
    pub(super) fn foreground<T>(&mut self, work: impl FnOnce(&mut Poller) -> T) -> Result<T> {
        let mut poller = self.take()?;
        let done = work(&mut poller);
        self.background = Some(Background::start(poller)?);
        Ok(done)
    }

    fn take(&mut self) -> Result<Poller> {
        let background = self.background.take();
        background.context("the endpoint's loop is gone")?.end()
    }

    /// Stops both.
    pub(super) fn end(mut self) -> Result<(RoceCounts, LedgerReport)> {
        let Poller { roce, .. } = self.take()?;
        let counts = roce.counts().get();
        let (rx, tx) = roce.into_queues();
        self.port.stop(vec![rx], tx.into_iter().collect())?;
        Ok((counts, self.ledger.check()?.into()))
    }
}
