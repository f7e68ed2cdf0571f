//! Endpoints on ports, polled by hand with a clock of the test's own.

use std::net::Ipv4Addr;

use pollux_mempool::region::{MemoryRegion, PageSize};
use pollux_mempool::time::Ns;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::driver::Megabits;
use pollux_pmd::net::MacAddr;
use pollux_pmd::port::{Port, Started};
use pollux_pmd::{
    Balance, Capabilities, Cause, Ledger, PortConfig, Registry, RxQueue, StartedPort, TxQueue,
};
use pollux_rdma::roce::{QpIdentity, RoceCounts, RoceEndpoint, RoceLoop, RoceOptions};
use pollux_rdma::{
    Access, Buffer, Endpoint, Event, Memory, Mtu, PathOptions, Psn, QpAddress, QpKind, QpNumber,
    QpOptions, QueuePair,
};

pub(crate) const IPS: [Ipv4Addr; 3] = [
    Ipv4Addr::new(10, 0, 0, 1),
    Ipv4Addr::new(10, 0, 0, 2),
    Ipv4Addr::new(10, 0, 0, 3),
];
pub(crate) const MACS: [MacAddr; 3] = [
    MacAddr([2, 0, 0, 0, 0, 0xa]),
    MacAddr([2, 0, 0, 0, 0, 0xb]),
    MacAddr([2, 0, 0, 0, 0, 0xc]),
];

pub(crate) fn pool(buffers: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room: 4352,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .unwrap()
}

pub(crate) fn memory(bytes: usize) -> Memory {
    let region = MemoryRegion::builder(bytes).pages(PageSize::Kib4);
    Memory::new(region.build().unwrap())
}

/// A loopback port of two queues: what is sent by one end's queue is received by the other's.
pub(crate) struct Link {
    pub(crate) port: Port<Started>,
    pub(crate) pool: Mempool,
    pub(crate) capabilities: Capabilities,
}

/// A link, and the queues of its ends.
pub(crate) fn link(buffers: usize) -> (Link, [(RxQueue, TxQueue); 2]) {
    let pool = pool(buffers);
    let config = PortConfig::new(pool.clone()).rx_queues(2).tx_queues(2);
    let port = Registry::builtin().open("loopback").unwrap();
    let port = port.configure(config).unwrap();
    let capabilities = port.capabilities();
    let StartedPort { port, rx, tx } = port.start().unwrap();
    let [rx0, rx1] = <[RxQueue; 2]>::try_from(rx).ok().unwrap();
    let [tx0, tx1] = <[TxQueue; 2]>::try_from(tx).ok().unwrap();
    let link = Link {
        port,
        pool,
        capabilities,
    };
    (link, [(rx1, tx0), (rx0, tx1)])
}

/// A port whose other end is another one's, and its queues.
pub(crate) fn port_link(spec: &str) -> (Link, (RxQueue, TxQueue)) {
    let pool = pool(2048);
    let port = Registry::builtin().open(spec).unwrap();
    let port = port.configure(PortConfig::new(pool.clone())).unwrap();
    let capabilities = port.capabilities();
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = port.start().unwrap();
    let queues = (rx.pop().unwrap(), tx.pop().unwrap());
    let link = Link {
        port,
        pool,
        capabilities,
    };
    (link, queues)
}

impl Link {
    /// Stops the port of one end.
    pub(crate) fn stop_one(self, (rx, tx): (RxQueue, Option<TxQueue>)) {
        self.port.stop(vec![rx], tx.into_iter().collect()).unwrap();
        assert_eq!(self.pool.available(), self.pool.buffers());
    }

    /// Stops the port; all buffers are back.
    pub(crate) fn stop(self, ends: [(RxQueue, Option<TxQueue>); 2]) {
        let (rx, tx): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        self.port
            .stop(rx, tx.into_iter().flatten().collect())
            .unwrap();
        assert_eq!(self.pool.available(), self.pool.buffers());
    }
}

/// A host: an endpoint and its loop.
pub(crate) struct Host {
    pub(crate) control: RoceEndpoint,
    pub(crate) endpoint: Endpoint,
    pub(crate) poll: RoceLoop,
    ledger: Ledger,
}

impl Host {
    /// The control side goes, and the loop stays.
    pub(crate) fn without_control(self) -> RoceLoop {
        self.poll
    }

    pub(crate) fn new(n: usize, link: &Link, queues: (RxQueue, TxQueue)) -> Self {
        Self::with_speed(n, link, queues, None)
    }

    /// The same, whose port tells a speed.
    pub(crate) fn with_speed(
        n: usize,
        link: &Link,
        queues: (RxQueue, TxQueue),
        speed: Option<Megabits>,
    ) -> Self {
        let options = RoceOptions {
            mac: Some(MACS[n]),
            speed,
            ..RoceOptions::new(IPS[n])
        };
        let cache = link.pool.cache(256).unwrap();
        let (control, poll) =
            RoceEndpoint::new(&options, &link.capabilities, queues, cache).unwrap();
        let mut ledger = Ledger::new();
        ledger.add("port", poll.rx_tally());
        ledger.add("roce", poll.tally());
        Self {
            endpoint: control.endpoint(),
            control,
            poll,
            ledger,
        }
    }

    /// A queue pair with a chosen number and first sequence number.
    pub(crate) fn queue_pair(&self, kind: QpKind, number: u32, psn: u32) -> QueuePair {
        let options = QpOptions {
            kind,
            ..QpOptions::default()
        };
        let identity = QpIdentity {
            number: QpNumber::new(number).unwrap(),
            psn: Psn::new(psn),
        };
        self.control
            .create_queue_pair_as(&options, identity)
            .unwrap()
    }

    pub(crate) fn register(&mut self, memory: &Memory, access: Access) -> Buffer {
        let range = 0..memory.len();
        self.endpoint
            .register_buffer(memory, range, access)
            .unwrap()
    }

    pub(crate) fn counts(&self) -> RoceCounts {
        self.poll.counts().get()
    }

    pub(crate) fn balance(&self) -> Balance {
        self.ledger.check().unwrap()
    }

    pub(crate) fn dropped(&self, cause: &str) -> u64 {
        let cause = Cause::all().find(|known| known.name() == cause).unwrap();
        self.balance().dropped_for(cause)
    }
}

/// Two hosts on a link.
pub(crate) struct Pair {
    pub(crate) hosts: [Host; 2],
    pub(crate) link: Link,
    pub(crate) now: Ns,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let (link, [a, b]) = link(8192);
        let hosts = [Host::new(0, &link, a), Host::new(1, &link, b)];
        Self {
            hosts,
            link,
            now: Ns(0),
        }
    }

    /// A connected queue pair at each end.
    pub(crate) fn connect(&mut self, kind: QpKind, path: &PathOptions) -> [QueuePair; 2] {
        let options = QpOptions {
            kind,
            ..QpOptions::default()
        };
        let qps = [0, 1].map(|n| {
            let endpoint = &mut self.hosts[n].endpoint;
            endpoint.create_queue_pair(&options).unwrap()
        });
        self.join(&qps, path);
        qps
    }

    /// Connects two queue pairs.
    pub(crate) fn join(&mut self, qps: &[QueuePair; 2], path: &PathOptions) {
        for n in [0, 1] {
            let peer = qps[1 - n].address();
            self.hosts[n]
                .endpoint
                .connect(&qps[n], &peer, path)
                .unwrap();
        }
    }

    /// One poll of each, a microsecond later.
    pub(crate) fn step(&mut self) {
        self.now.0 += 1000;
        for host in &mut self.hosts {
            host.poll.poll(self.now);
        }
    }

    /// Polls until there is an event.
    pub(crate) fn event(&mut self, qp: &mut QueuePair) -> Event {
        for _ in 0..2_000_000 {
            if let Some(event) = qp.poll_event() {
                return event;
            }
            self.step();
        }
        panic!("no event");
    }

    /// Polls until both loops have nothing to do.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1000 {
            self.step();
        }
    }

    /// Stops everything: the ledgers balance and all buffers are back.
    pub(crate) fn stop(self) {
        for host in &self.hosts {
            host.balance();
        }
        let ends = self.hosts.map(|host| host.poll.into_queues());
        self.link.stop(ends);
    }
}

pub(crate) fn path(mtu: Mtu) -> PathOptions {
    PathOptions {
        mtu,
        ..PathOptions::default()
    }
}

/// The peer's address of a queue pair.
pub(crate) fn address(n: usize, number: u32, psn: u32) -> QpAddress {
    QpAddress {
        number: QpNumber::new(number).unwrap(),
        psn: Psn::new(psn),
        ip: IPS[n],
        mac: Some(MACS[n]),
    }
}
