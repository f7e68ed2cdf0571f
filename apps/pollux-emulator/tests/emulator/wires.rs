//! The wires of a loopback port with an end for each side, and a clock that a spin advances.

use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::link::PortLink;
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::net::{UDP_HEADERS, UdpTemplate};
use pollux_pmd::{
    Clock, ManualClock, Port, PortConfig, Registry, RxQueue, Started, StartedPort, TxQueue,
};

/// One end of two wires.
pub(crate) struct End {
    pub(crate) tx: TxQueue,
    pub(crate) rx: RxQueue,
    pub(crate) cache: PoolCache,
}

/// Two wires of a loopback port, there and back.
pub(crate) struct Wires {
    pub(crate) port: Port<Started>,
    pub(crate) pool: Mempool,
}

impl Wires {
    pub(crate) fn new(ring: usize) -> (Self, End, End) {
        let pool = Mempool::new(PoolConfig {
            buffers: 2048,
            ..PoolConfig::default()
        })
        .unwrap();
        let config = PortConfig {
            rx_queues: 2,
            tx_queues: 2,
            ring,
            ..PortConfig::new(pool.clone())
        };
        let port = Registry::builtin()
            .open("loopback")
            .unwrap()
            .configure(config)
            .unwrap();
        let StartedPort {
            port,
            mut rx,
            mut tx,
        } = port.start().unwrap();
        let cache = || pool.cache(128).unwrap();
        let (tx1, rx1) = (tx.pop().unwrap(), rx.pop().unwrap());
        let (tx0, rx0) = (tx.pop().unwrap(), rx.pop().unwrap());
        let ours = End {
            tx: tx0,
            rx: rx1,
            cache: cache(),
        };
        let theirs = End {
            tx: tx1,
            rx: rx0,
            cache: cache(),
        };
        (Self { port, pool }, ours, theirs)
    }

    /// Stops the port; no buffer may be missing then.
    pub(crate) fn stop(self, ours: (TxQueue, Vec<RxQueue>), theirs: End) {
        drop(theirs.cache);
        let mut rx = ours.1;
        rx.push(theirs.rx);
        self.port.stop(rx, vec![ours.0, theirs.tx]).unwrap();
        assert_eq!(self.pool.available(), self.pool.buffers());
    }
}

pub(crate) fn link(config: &EmulatorConfig, end: End) -> PortLink {
    PortLink::new(config, end.tx, Some(end.rx), end.cache, false).unwrap()
}

pub(crate) fn send(end: &mut End, frame: &[u8]) {
    let mut burst = Burst::<1>::new();
    burst.push(end.cache.alloc_from(frame).unwrap()).unwrap();
    assert_eq!(end.tx.tx(&mut end.cache, &mut burst), 1);
}

pub(crate) fn datagram(config: &EmulatorConfig, to_port: u16, payload: &[u8]) -> Vec<u8> {
    let mut to = config.addresses.boards();
    to.socket.set_port(to_port);
    let mut bytes = vec![0; UDP_HEADERS];
    bytes.extend(payload);
    assert!(
        UdpTemplate::new(config.addresses.trigger(), to)
            .write(&mut bytes, payload.len())
            .is_some()
    );
    bytes
}

/// A clock of which each spin lasts a microsecond, so that no test waits for a grace to pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct FastClock(ManualClock);

impl Clock for FastClock {
    fn now(&self) -> Tsc {
        self.0.now()
    }

    fn to_ns(&self, cycles: u64) -> Ns {
        self.0.to_ns(cycles)
    }

    fn to_cycles(&self, ns: Ns) -> u64 {
        self.0.to_cycles(ns)
    }

    fn relax(&self) {
        self.0.advance(Ns(1000));
    }
}
