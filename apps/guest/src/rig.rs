//! Two ports back to back, and the books of what passes between them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pollux_interop::exchange::{Exchange, Job};
use pollux_interop::frames::{Frames, Kind, Returned};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::net::{MacAddr, UdpEndpoint};
use pollux_pmd::port::{Configured, Started};
use pollux_pmd::{Ledger, Port, PortConfig, Registry, RxQueue, StartedPort, TxQueue};

use crate::bench::Bench;
use crate::nic::{PATIENCE, wait_until};

/// One end: a started port.
pub(crate) struct End {
    pub(crate) port: Port<Started>,
    pub(crate) rx: Vec<RxQueue>,
    pub(crate) tx: Vec<TxQueue>,
}

/// Which way frames go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    AtoB,
    BtoA,
}

pub(crate) const BOTH_WAYS: [Way; 2] = [Way::AtoB, Way::BtoA];

/// How the ports are set up.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) queues: u16,
    pub(crate) ring: usize,
    /// Buffers of the pool that both ports share.
    pub(crate) buffers: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            queues: 1,
            ring: 512,
            buffers: 4096,
        }
    }
}

pub(crate) struct Rig {
    pub(crate) a: End,
    pub(crate) b: End,
    pub(crate) pool: Mempool,
    pub(crate) ledger: Ledger,
}

/// The station and socket of an end; the devices have these addresses.
pub(crate) fn endpoint(end: u8) -> UdpEndpoint {
    UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, end]),
        socket: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, end), 9000),
    }
}

/// Opens and starts a port; waits until its link is up.
pub(crate) fn start(spec: &str, pool: &Mempool, setup: Setup) -> Result<End> {
    let config = PortConfig {
        rx_queues: setup.queues,
        tx_queues: setup.queues,
        ring: setup.ring,
        ..PortConfig::new(pool.clone())
    };
    let StartedPort { port, rx, tx } =
        Registry::builtin().open(spec)?.configure(config)?.start()?;
    wait_until("the link is up", || port.link().up).context(spec.to_owned())?;
    Ok(End { port, rx, tx })
}

pub(crate) fn pool(buffers: usize) -> Result<Mempool> {
    Ok(Mempool::new(PoolConfig {
        buffers,
        ..PoolConfig::default()
    })?)
}

/// What a device has counted, without zeros.
fn counted(port: &Port<Started>) -> String {
    let statistics = port.statistics();
    let counters = statistics.iter().filter(|(_, count)| *count > 0);
    let words: Vec<_> = counters
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    words.join(", ")
}

impl Rig {
    pub(crate) fn open(bench: &Bench, setup: Setup) -> Result<Self> {
        let pool = pool(setup.buffers)?;
        let owner = bench.machine.owner;
        let a = start(&owner.spec(&bench.a)?, &pool, setup)?;
        let b = start(&owner.spec(&bench.b)?, &pool, setup)?;
        let mut ledger = Ledger::new();
        for queue in a.rx.iter().chain(&b.rx) {
            ledger.add("port", queue.tally());
        }
        Ok(Self { a, b, pool, ledger })
    }

    /// Stops port `a`, and starts it again.
    pub(crate) fn restart_a(mut self) -> Result<Self> {
        self.a = End::of(self.a.stop()?.start()?)?;
        for queue in &self.a.rx {
            self.ledger.add("port", queue.tally());
        }
        Ok(self)
    }

    /// Sends frames of these sizes (in bytes, with the frame check sequence) one way, by turns
    /// through all queues; each must come, right in every byte.
    pub(crate) fn exchange(&mut self, way: Way, count: u64, sizes: &[usize]) -> Result<()> {
        let (from, to, ends) = match way {
            Way::AtoB => (&mut self.a, &mut self.b, (endpoint(0x0a), endpoint(0x0b))),
            Way::BtoA => (&mut self.b, &mut self.a, (endpoint(0x0b), endpoint(0x0a))),
        };
        let job = Job {
            send: count,
            receive: count,
            window: 64,
            patience: PATIENCE,
            limit: None,
            tolerate_loss: false,
            pause: Duration::ZERO,
        };
        let mut frames = Frames::new(ends, Kind::Udp, 1, sizes, Returned::Same)?;
        let exchange = Exchange::new(&self.pool, &mut to.rx, &mut from.tx, &mut self.ledger)?;
        let outcome = exchange.run(&job, &mut frames, &StopFlag::new())?;
        ensure!(
            outcome.received == count && outcome.corrupt + outcome.duplicate + outcome.foreign == 0,
            "{way:?}: {}; {}; devices: a {}, b {}",
            serde_json::to_string(&outcome)?,
            self.ledger.balance(),
            counted(&self.a.port),
            counted(&self.b.port)
        );
        Ok(())
    }

    /// Stops both ports. The ledger must balance, and the pool be full again.
    pub(crate) fn finish(self) -> Result<()> {
        for end in [self.a, self.b] {
            drop(end.stop()?);
        }
        let balance = self.ledger.check()?;
        println!("{balance}");
        ensure!(
            self.pool.available() == self.pool.buffers(),
            "{} of {} buffers are in the pool after the stop",
            self.pool.available(),
            self.pool.buffers()
        );
        Ok(())
    }
}

impl End {
    /// Stops the port.
    pub(crate) fn stop(mut self) -> Result<Port<Configured>> {
        for queue in &mut self.rx {
            queue.sync_counters();
        }
        let Self { port, rx, tx } = self;
        Ok(port.stop(rx, tx)?)
    }

    fn of(started: StartedPort) -> Result<Self> {
        let StartedPort { port, rx, tx } = started;
        wait_until("the link is up", || port.link().up).context(port.spec().to_owned())?;
        Ok(Self { port, rx, tx })
    }
}
